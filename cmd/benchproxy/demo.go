package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report/build"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/stat"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
)

func (p *program) demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "record a small workload from a scripted engine; needs nothing installed",
		Description: "It starts a scripted engine and a recording proxy on loopback, sends a dozen requests that go well and badly in the ways\n" +
			"engines do, and prints what was recorded. The engine knows when it wrote each byte, so the demo also prints how far\n" +
			"our stamps are off. A report of it all is left as report.html in the store's directory, or in --report.",
		Flags: []cli.Flag{storeFlag(), jsonFlag(), &cli.StringFlag{Name: "report", Usage: "`FILE` of the report (default: report.html in the store's directory)"}},
		Action: p.interruptible(func(c *cli.Context) error {
			if err := exactArgs(c); err != nil {
				return err
			}
			return p.demo(c)
		}),
	}
}

// demoStep is one request of the demo.
type demoStep struct {
	what     string
	sim      string // options of the scripted engine for this request
	body     string
	leave    int // > 0: leave after this many bytes of the answer
	together int // requests with the same number > 0 run at the same time
}

// demoHeader carries the number of a step, so that a recorded exchange finds its request in the engine's own account.
const demoHeader = "X-Demo-Step"

func demoSteps() []demoStep {
	chat := func(words int, rest string) string {
		return `{"model":"sim","stream":true,"stream_options":{"include_usage":true},` + rest +
			`"messages":[{"role":"user","content":"` + strings.TrimSpace(strings.Repeat("word ", words)) + `"}]}`
	}
	return []demoStep{
		{what: "a short question", body: chat(12, `"max_tokens":48,`)},
		{what: "the same question again", body: chat(12, `"max_tokens":48,`)},
		{what: "a long prompt", body: chat(2000, `"max_tokens":32,`)},
		{what: "thinking before the answer", sim: "reasoning=24", body: chat(40, `"max_tokens":64,`)},
		{what: "a tool call", body: chat(30, `"tools":[{"type":"function","function":{"name":"weather","parameters":`+
			`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}],`)},
		{what: "no stream", body: strings.Replace(chat(20, `"max_tokens":24,`), `"stream":true,"stream_options":{"include_usage":true},`, "", 1)},
		{what: "an answer without usage", sim: "usage=none", body: chat(20, `"max_tokens":24,`)},
		{what: "four at once", body: chat(50, `"max_tokens":40,`), together: 1},
		{what: "four at once", body: chat(51, `"max_tokens":40,`), together: 1},
		{what: "four at once", body: chat(52, `"max_tokens":40,`), together: 1},
		{what: "four at once", body: chat(53, `"max_tokens":40,`), together: 1},
		{what: "an error inside the stream", sim: "fault=error_done@10", body: chat(20, "")},
		{what: "a stream that breaks off", sim: "fault=no_last_chunk@12", body: chat(20, "")},
		{what: "a client that leaves", body: chat(20, `"max_tokens":64,`), leave: 1500},
		{what: "a refused request", sim: "status=429", body: chat(20, "")},
	}
}

// demoRun is the name of the run that the demo records.
const demoRun = "demo"

func (p *program) demo(c *cli.Context) error {
	engine, err := startScripted("127.0.0.1:0", true,
		sim.Config{Options: sim.Options{TTFT: 60 * time.Millisecond, PrefillTPS: 8000, DecodeTPS: 150, Jitter: 0.2}})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }() // it has nothing to lose
	ups := []upstream{{name: "engine", url: engine.url}}
	s := captureSettings{upstreams: ups, listen: "127.0.0.1:0", admin: adminOff, run: newRun("record", demoRun, ups), drain: 10 * time.Second,
		session: proxy.SessionOptions{Identity: exchange.Identity{Engine: "sim", Version: version(), Basis: "label"}}}
	s.run.Identity = s.session.Identity
	if s.store, err = p.storeDir(c); err != nil {
		return err
	}
	if c.Bool("json") {
		s.form = boardJSON
	}
	note(p.Stderr, "A scripted engine answers at %s; the proxy in front of it records.\n", ups[0].url)
	proxied, err := startCapture(p.env, s)
	if err != nil {
		return err
	}
	client := demoClient{base: proxied.base(0), http: &http.Client{Transport: &http.Transport{}}}
	err = client.run(c.Context, demoSteps())
	client.Close()
	run, closeErr := proxied.Close(p.Signals)
	if err := errors.Join(err, closeErr); err != nil {
		return err
	}
	out := p.Stdout
	if c.Bool("json") {
		out = p.Stderr
	}
	printSummary(out, run, proxied.board.Total())
	if err := demoTruth(out, s.store, run.ID, engine.Records()); err != nil {
		return err
	}
	if err := demoGates(c.Context, out, s.store, run.ID); err != nil {
		return err
	}
	page := cmp.Or(c.String("report"), filepath.Join(s.store, "report.html"))
	if err := p.demoReport(c, s.store, page); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nReport:       %s\nLook closer:  benchproxy store ls %s\n              benchproxy store show %s/4\n              benchproxy replay --revalidate %s\n",
		page, demoRun, demoRun, demoRun)
	return nil
}

// demoReport writes the report of the newest demo, with the definitions of every tool.
func (p *program) demoReport(c *cli.Context, dir, page string) error {
	store, err := p.openReadingIn(c, dir)
	if err != nil {
		return err
	}
	defer store.Close()
	sets, _ := build.Sets("all")
	r := &reporting{program: p, c: c, store: store, sets: sets, evidence: newEvidence("The demo of benchproxy", []string{"benchproxy demo", "benchproxy report " + demoRun + " --definitions all --html report.html"})}
	run, _, err := r.readRun(store, demoRun, false)
	if err != nil {
		return err
	}
	r.evidence.Runs = []*build.Run{run}
	files := &outFiles{force: true}
	defer files.discard()
	w, err := files.create(page)
	if err != nil {
		return err
	}
	if err := build.Document(r.evidence).HTML(w); err != nil {
		return fmt.Errorf("write %s: %w", page, err)
	}
	return files.keep()
}

// demoClient sends the demo's requests.
type demoClient struct {
	base string
	http *http.Client
}

// Close frees the connections.
func (d *demoClient) Close() { d.http.CloseIdleConnections() }

// run sends the steps in order; those that belong together at once.
func (d *demoClient) run(ctx context.Context, steps []demoStep) error {
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, s := range steps {
		if i > 0 && (s.together == 0 || s.together != steps[i-1].together) {
			wg.Wait()
		}
		wg.Go(func() { errs[i] = d.send(ctx, i, s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// send makes one request and reads its answer, or as much as the step wants.
func (d *demoClient) send(ctx context.Context, number int, s demoStep) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base+"/v1/chat/completions", strings.NewReader(s.body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(demoHeader, strconv.Itoa(number))
	if s.sim != "" {
		req.Header.Set("X-Sim", s.sim)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return fmt.Errorf("demo request %q: %w", s.what, err)
	}
	defer resp.Body.Close()
	if s.leave > 0 {
		_, err = io.CopyN(io.Discard, resp.Body, int64(s.leave))
		return err
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil && !strings.HasPrefix(s.sim, "fault=") {
		return fmt.Errorf("demo request %q: %w", s.what, err)
	}
	return nil
}

// demoTruth compares the stamps of every recorded read with the instant at which the engine wrote its last byte.
func demoTruth(w io.Writer, dir string, run exchange.ID, records []sim.Record) error {
	store, err := recorder.Open(dir, recorder.Options{Harness: version()})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // nothing was written
	byStep := map[string]sim.Record{}
	for _, r := range records {
		if step, ok := exchange.HeaderValue(r.Headers, demoHeader); ok {
			byStep[step] = r
		}
	}
	var errs []float64
	for row, err := range store.Summaries(run) {
		if err != nil {
			return err
		}
		x, _, err := store.Exchange(row.ID)
		if err != nil {
			return err
		}
		step, _ := exchange.HeaderValue(x.Request.Headers, demoHeader)
		errs = append(errs, stampErrors(x, byStep[step])...)
	}
	s := stat.Summarize(errs)
	fmt.Fprintf(w, "\nOur stamp against the engine's own write, %d reads: median %s us, p90 %s us, max %s us\n",
		s.N, value(s.Median, exchange.BasisMeasured), value(s.P90, exchange.BasisMeasured), value(s.Max, exchange.BasisMeasured))
	return nil
}

// demoGates judges what was recorded, from the store alone. Some of it was made to fail.
func demoGates(ctx context.Context, w io.Writer, dir string, id exchange.ID) error {
	store, err := recorder.Open(dir, recorder.Options{Harness: version()})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // nothing was written
	run, err := store.Run(string(id))
	if err != nil {
		return err
	}
	r, err := replay.Revalidate(ctx, store, &run, replay.RevalidateOptions{Harness: version()})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Judged from the recording by %d gates: %s\n", len(r.Gates), statusesText(r.Statuses))
	return nil
}

// stampErrors are, for each read, the microseconds from the engine's newest write in it to our stamp.
func stampErrors(x *exchange.Exchange, truth sim.Record) []float64 {
	var out []float64
	got, at := 0, 0
	for _, r := range x.Timeline.Reads {
		got += r.Size
		newest := int64(0)
		for ; at < len(truth.Writes) && truth.Writes[at].Body <= got; at++ {
			newest = truth.Writes[at].Wall
		}
		if r.Size > 0 && newest > 0 {
			out = append(out, float64(x.Timeline.Wall.UnixNano()+r.At-newest)/1e3)
		}
	}
	return out
}
