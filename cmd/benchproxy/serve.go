package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/telemetry"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
)

// What a stand-in does with a request that is not recorded.
const (
	missError  = "error"       // refuses it; nothing by which it could be sent exists
	missRecord = "record"      // passes it on, records it, and answers from that the next time
	missPass   = "passthrough" // passes it on
)

// manyRecords is from how many records on it takes a while to read them all.
const manyRecords = 5000

const serveHelp = "\n\nWith --serve nothing is sent: it answers from RUN or FILE, byte for byte and at the recorded pace, as the engine did\n" +
	"that was recorded. A request that is not recorded gets a 404 that says what is nearest and where it differs, and the\n" +
	"exit code is 4. The answers to one request come in their order, then the last one again.\n\n" +
	"   benchproxy replay --serve agent\n" +
	"   benchproxy replay --serve agent --speed 0 --strict --relax '$.temperature'\n" +
	"   benchproxy replay --serve agent --on-miss record --target http://127.0.0.1:8080"

// serveFlags are the flags of replay that go with --serve only.
func serveFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "serve", Usage: "answer from RUN or FILE instead of sending it"},
		&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8093", Usage: "`ADDR` to serve"},
		&cli.BoolFlag{Name: "strict", Usage: "give each recorded answer once; one request more is a miss"},
		&cli.StringSliceFlag{Name: "relax", Usage: "`PATH` of a JSON body at which a request may differ from the recorded one, as $.temperature or $.messages[*].id; repeatable"},
		&cli.StringFlag{Name: "on-miss", Value: missError, Usage: "`WHAT` to do with a request that is not recorded: error, or with --target record or passthrough"},
		&cli.BoolFlag{Name: "insecure", Usage: "allow serving beyond this machine"},
	}
}

// servesToo are the flags of replay that mean something with --serve, beside those for it alone.
var servesToo = []string{
	"target", "config", "store", "from", "run", "label", "speed", "only-model", "only-path", "only-id", "since", "input", "unit",
	"durability", "quiet", "json", "admin-key-file",
}

// replayOrServe is the action of replay: it sends, or it answers.
func (p *program) replayOrServe(c *cli.Context) error {
	serve := c.Bool("serve")
	own := flagNames(serveFlags())
	engine := flagNames(engineFlags())
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		switch mine := slices.Contains(own, name); {
		case !c.IsSet(name):
		case mine && !serve:
			return usagef("--%s goes with --serve", name)
		case serve && !mine && !slices.Contains(servesToo, name) && !slices.Contains(engine, name):
			return usagef("--%s does not go with --serve, which sends nothing", name)
		}
	}
	if serve {
		return p.serve(c)
	}
	return p.interruptible(p.replay)(c)
}

func flagNames(flags []cli.Flag) (out []string) {
	for _, f := range flags {
		out = append(out, f.Names()[0])
	}
	return out
}

// serveSettings are what --serve was asked for.
type serveSettings struct {
	replaySettings
	what    replay.ServeOptions
	onMiss  string
	listen  string
	exactly bool // that address and no other
}

func (p *program) serveSettings(c *cli.Context) (s serveSettings, err error) {
	s = serveSettings{onMiss: c.String("on-miss"), listen: c.String("listen"), exactly: c.IsSet("listen")}
	s.name, s.json, s.quiet = c.String("run"), c.Bool("json"), c.Bool("quiet")
	s.identify, s.device = !c.Bool("no-identify"), c.String("device")
	s.what = replay.ServeOptions{Speed: c.Float64("speed"), Strict: c.Bool("strict")}
	if err := s.what.Validate(); err != nil {
		return s, err
	}
	for _, text := range c.StringSlice("relax") {
		rule, err := replay.ParseRelax(text)
		if err != nil {
			return s, err
		}
		s.what.Relax = append(s.what.Relax, rule)
	}
	if _, _, err := net.SplitHostPort(s.listen); err != nil {
		return s, usagef("--listen %q is not HOST:PORT", s.listen)
	}
	if !loopback(s.listen) && !c.Bool("insecure") {
		return s, usagef("%s can be reached from other machines; say --insecure if that is meant", s.listen)
	}
	steps := []func(*cli.Context, *replaySettings) error{replayInput, p.replayStore}
	switch s.onMiss {
	case missError:
		if len(c.StringSlice("target")) > 0 {
			return s, usagef("--target is where misses go; say --on-miss record or --on-miss passthrough with it")
		}
	case missRecord, missPass:
		steps = append(steps, p.replayTargets, p.replayCatalog)
	default:
		return s, usagef("--on-miss is error, record or passthrough, not %q", s.onMiss)
	}
	for _, step := range steps {
		if err := step(c, &s.replaySettings); err != nil {
			return s, err
		}
	}
	switch {
	case len(s.targets) > 1:
		return s, usagef("--serve passes misses on to one target, not to %d", len(s.targets))
	case exchange.ValidID(s.name):
		return s, usagef("--run %q has the form of an id; choose another name", s.name)
	case s.name != "" && s.onMiss != missRecord:
		return s, usagef("--run names the run of recorded misses; say --on-miss record with it")
	}
	return s, nil
}

func (p *program) serve(c *cli.Context) error {
	if err := exactArgs(c, "RUN|FILE"); err != nil {
		return err
	}
	s, err := p.serveSettings(c)
	if err != nil {
		return err
	}
	i := newInterruption(c.Context, p.Signals)
	defer i.Close()
	c.Context = i.ctx
	v := &serving{env: p.env, s: s, failed: make(chan error, 1)}
	if err := v.open(c, p); err != nil {
		if cause := context.Cause(i.ctx); cause != nil {
			err = cause // a signal, before anything was served
		}
		return errors.Join(err, v.Close())
	}
	if err := v.announce(); err != nil {
		return errors.Join(err, v.Close())
	}
	select {
	case <-c.Context.Done(): // at the first signal
	case err := <-v.failed:
		return errors.Join(err, v.Close())
	case err := <-v.server.served:
		v.server.served <- nil
		return errors.Join(err, v.Close())
	}
	if err := v.Close(); err != nil {
		return err
	}
	report := v.standIn.Report()
	return errors.Join(v.print(&report), v.verdict(&report))
}

// verdict is what speaks against what the stand-in did, with what can be done about it.
func (v *serving) verdict(r *replay.ServeReport) error {
	err := r.Err()
	if err == nil {
		return nil
	}
	e := &exchange.Error{Op: "serve", Object: v.named, Side: exchange.SideClient, Cause: err,
		Hint: "--relax PATH lets requests differ there, --on-miss record asks an engine"}
	if r.Failed > 0 {
		e.Side, e.Hint = exchange.SideStore, ""
		if errors.Is(err, exchange.ErrDamaged) {
			e.Hint = "store check tells what is damaged"
		}
	}
	return e
}

// serving is a stand-in with all that stands around it.
type serving struct {
	env     env
	s       serveSettings
	source  replay.Source
	named   string // what is served, for people and for the run of misses
	reading reading
	standIn *replay.StandIn
	server  *scripted
	misses  missNotes
	telling telling
	trace   *telemetry.Run // nil: nothing is traced

	// What takes the misses; all nil where they are refused.
	store    *recorder.Store
	writer   *recorder.Writer
	upstream *proxy.Upstream
	session  *proxy.Session
	front    *proxy.Server
	ident    *identifier // nil: nobody is asked
	counting *counting   // nil: as ident
	meter    *meter      // of misses that are passed on and traced
	inside   *sim.PipeListener
	failed   chan error // front stopped by itself
	wg       sync.WaitGroup
}

// open reads the index, and begins to serve.
func (v *serving) open(c *cli.Context, p *program) error {
	if err := v.openTelling(); err != nil {
		return err
	}
	run, err := v.find(c, p)
	if err != nil {
		return err
	}
	o, err := v.options()
	if err != nil {
		return err
	}
	if run.Counts.Stored >= manyRecords && len(o.Relax) > 0 && !v.s.quiet {
		note(v.env.Stderr, "reading %s, to leave out where they may differ", countOf(int(run.Counts.Stored), "recorded request"))
	}
	if v.standIn, err = replay.NewStandIn(c.Context, v.source, run, v.s.filter, o); err != nil {
		return err
	}
	if v.server, err = startScripted(v.s.listen, v.s.exactly, v.standIn.Config()); err != nil {
		return err
	}
	return v.begin()
}

// options are those of the stand-in, with a way out only where misses are to take it.
func (v *serving) options() (o replay.ServeOptions, err error) {
	o = v.s.what
	v.misses.out = v.env.Stderr
	o.OnMiss, o.OnAnswer = v.missed, v.given()
	if v.s.onMiss != missError {
		o.Forward, err = v.openFront()
	}
	return o, err
}

// find opens what is served: the run of that name, or else the file.
func (v *serving) find(c *cli.Context, p *program) (*exchange.Run, error) {
	name := c.Args().First()
	if info, err := os.Stat(name); err == nil && !info.IsDir() && v.s.openFrom == nil && !v.isRun(c, p, name) {
		return v.hold(c.Context, name)
	}
	if err := v.openRuns(c, p); err != nil {
		return nil, err
	}
	run, err := v.reading.Run(name)
	if err != nil {
		return nil, err
	}
	v.source, v.named = v.reading, "run "+runName(run)
	return &run, nil
}

// isRun reports whether a run has the name of a file. Runs go first, as with replay; a store that cannot be opened has none,
// for then a file can still be served.
func (v *serving) isRun(c *cli.Context, p *program, name string) bool {
	if err := v.openRuns(c, p); err != nil {
		return false
	}
	_, err := v.reading.Run(name)
	return err == nil
}

// openRuns opens the store that has the run: the one that takes the misses too, or one that is only read.
func (v *serving) openRuns(c *cli.Context, p *program) (err error) {
	switch {
	case v.reading != nil:
	case v.s.openFrom != nil:
		v.reading, err = v.s.openFrom()
	case v.s.onMiss == missRecord:
		if err = v.openStore(); err == nil {
			v.reading = local{v.store}
		}
	default:
		v.reading, err = p.openReadingIn(c, v.s.store)
	}
	return err
}

// hold reads a file into memory. A store that was only opened to see that it has no such run is let go.
func (v *serving) hold(ctx context.Context, name string) (*exchange.Run, error) {
	v.closeReading()
	if f := v.s.filter.String(); f != "" {
		return nil, usagef("%s is a file, and a filter (%s) is for a recorded run; import it with store import", name, f)
	}
	held, err := replay.OpenFile(name, v.s.file).Hold(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range held.Notes {
		note(v.env.Stderr, "workload: %s", n)
	}
	v.source, v.named = held, "file "+name
	return &held.Run, nil
}

func (v *serving) closeReading() {
	if v.reading != nil && v.store == nil {
		v.reading.Close()
	}
	v.reading = nil
}

// announce tells what is served where.
func (v *serving) announce() error {
	r := v.standIn.Report()
	if !v.s.quiet {
		note(v.env.Stderr, "stand-in at %s answers from %s: %s, %s; Ctrl-C ends it", v.server.url, v.named, countOf(r.Recorded, "answer"), paceText(r.Speed))
		for _, why := range slices.Sorted(maps.Keys(r.LeftOut)) {
			note(v.env.Stderr, "left out: %s, for %s", countOf(r.LeftOut[why], "record"), why)
		}
		if len(r.Relax) > 0 {
			note(v.env.Stderr, "a request may differ at %s", strings.Join(r.Relax, ", "))
		}
		if v.s.onMiss != missError {
			note(v.env.Stderr, "what is not recorded goes to %s", redact.URL(v.s.targets[0].url))
		}
	}
	if !v.s.json {
		return nil
	}
	return json.NewEncoder(v.env.Stdout).Encode(map[string]any{"schema": 1, "url": v.server.url, "serves": v.named, "recorded": r.Recorded})
}

func paceText(speed float64) string {
	switch speed {
	case 0:
		return "at once"
	case 1:
		return "at the recorded pace"
	}
	return fmt.Sprintf("at %g times the recorded pace", speed)
}

// print tells what the stand-in did.
func (v *serving) print(r *replay.ServeReport) error {
	v.misses.more()
	out := v.env.Stdout
	if v.s.json {
		doc := struct {
			Schema int          `json:"schema"`
			Run    *exchange.ID `json:"run"` // of the recorded misses
			*replay.ServeReport
		}{Schema: 1, ServeReport: r}
		if v.writer != nil {
			id := v.writer.Run().ID
			doc.Run = &id
		}
		return json.NewEncoder(out).Encode(doc)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "answered    %d of %s", r.Answered, countOf(int(r.Requests), "request"))
	for _, part := range []struct {
		n    int64
		text string
	}{
		{r.Repeated, "with an answer given before"}, {r.Relaxed, "under a relax rule"}, {r.Cut, "not to the end"},
	} {
		if part.n > 0 {
			fmt.Fprintf(&b, ", %d %s", part.n, part.text)
		}
	}
	fmt.Fprintf(&b, "\nnot asked   %d of %s\n", r.Unserved, countOf(r.Recorded, "recorded answer"))
	if r.Probes > 0 {
		fmt.Fprintf(&b, "probes      %d, answered from what the recording names\n", r.Probes)
	}
	if r.Forwarded > 0 {
		fmt.Fprintf(&b, "passed on   %d", r.Forwarded)
		if v.writer != nil {
			fmt.Fprintf(&b, ", recorded in run %s", runName(v.writer.Run()))
		}
		b.WriteByte('\n')
	}
	if r.Misses+r.Failed > 0 {
		fmt.Fprintf(&b, "MISSES      %d, and %d that could not be read\n", r.Misses, r.Failed)
	}
	if len(r.Relax) > 0 {
		fmt.Fprintf(&b, "relaxed     %s\n", strings.Join(r.Relax, ", "))
	}
	if l := r.LateMS; l.N > 0 {
		fmt.Fprintf(&b, "lateness    p50 %.3f ms, p99 %.3f ms, max %.3f ms over %s, %s\n", *l.P50, *l.P99, *l.Max, countOf(l.N, "write"), paceText(r.Speed))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// missNotes tells the first misses as they come.
type missNotes struct {
	out io.Writer
	mu  sync.Mutex
	n   int
}

// toldMisses is how many misses are told one by one.
const toldMisses = 20

func (m *missNotes) add(miss replay.Miss) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n++; m.n <= toldMisses {
		note(m.out, "miss: %s", printable(miss.Text()))
	}
}

func (m *missNotes) more() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.n - toldMisses; n > 0 {
		note(m.out, "and %d misses more", n)
	}
}
