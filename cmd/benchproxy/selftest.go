package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/selftest"
	"github.com/benchproxy/benchproxy/internal/web"
	"github.com/benchproxy/benchproxy/recorder"
)

func (p *program) selftestCommand() *cli.Command {
	return &cli.Command{
		Name:  "selftest",
		Usage: "measure this machine's own measuring error",
		Description: "It starts a scripted engine and a recording proxy as processes of their own and drives 1, 16, 64 and 256 streams,\n" +
			"directly and through the proxy in turns, on an idle machine and with every core kept busy. It prints what the proxy adds,\n" +
			"how far its stamps are off the engine's own writes, and below which difference numbers of this machine are noise. The\n" +
			"result is kept in the store; runs that are recorded later on this machine carry it.\n\n" +
			"   benchproxy selftest\n" +
			"   benchproxy selftest --quick --json",
		Flags: []cli.Flag{
			storeFlag(),
			&cli.DurationFlag{Name: "duration", Value: selftest.DefaultDuration, Usage: "about how `LONG` to measure; less gives fewer samples, and null where they are too few"},
			&cli.BoolFlag{Name: "quick", Usage: "1 and 16 streams only, in a quarter of the time"},
			jsonFlag(),
			&cli.BoolFlag{Name: "burn", Hidden: true, Usage: "keep every core busy until standard input ends"},
		},
		Action: p.interruptible(func(c *cli.Context) error {
			switch d := c.Duration("duration"); {
			case c.Args().Len() > 0:
				return exactArgs(c)
			case c.Bool("burn"):
				return p.burn(c.Context)
			case d < leastSelftest || d > mostSelftest:
				return usagef("--duration %s is not from %s to %s", d, leastSelftest, mostSelftest)
			}
			return p.selftest(c)
		}),
	}
}

// The bounds of --duration.
const (
	leastSelftest = time.Second
	mostSelftest  = time.Hour
)

func (p *program) selftest(c *cli.Context) (err error) {
	host := thisHost()
	dir, err := p.storeDir(c)
	if err != nil {
		return err
	}
	store, err := recorder.Open(dir, recorder.Options{Harness: version(), Log: p.log()})
	if err != nil {
		return err // before anything is measured that could not be kept
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	p.warnLoad(host)
	report, err := p.measureHost(c, host)
	if err != nil {
		return err
	}
	doc, err := report.JSON()
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := store.PutSelftest(report.Instrument(), doc); err != nil {
		return err
	}
	note(p.Stderr, "kept in %s; runs recorded there on this machine carry it", store.Dir())
	if c.Bool("json") {
		_, err = fmt.Fprintf(p.Stdout, "%s\n", doc)
		return err
	}
	printSelftest(p.Stdout, report)
	return nil
}

// warnLoad says so when the machine had other things to do.
func (p *program) warnLoad(h exchange.Host) {
	if h.Load1 != nil && *h.Load1 > float64(h.Cores)/2 {
		note(p.Stderr, "warning: the load average was %.2f on %d cores before the start: what else runs here is in the result", *h.Load1, h.Cores)
	}
}

// measureHost runs the selftest among processes of its own, none of which is left when it returns.
func (p *program) measureHost(c *cli.Context, host exchange.Host) (report *selftest.Report, err error) {
	limit := 4*c.Duration("duration") + time.Minute
	ctx, cancel := context.WithTimeoutCause(c.Context, limit, fmt.Errorf("%w: the selftest took more than %s; is the machine overloaded?", exchange.ErrIncomplete, limit))
	defer cancel()
	l, err := p.startLab(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return selftest.Run(ctx, selftest.Config{
		Engine: l.engineURL, Proxy: l.proxyURL, Plan: selftest.NewPlan(c.Duration("duration"), c.Bool("quick")),
		Harness: version(), Host: host,
		Busy: l.busy, Settle: l.settle, Records: l.records,
		Progress: func(what string) { note(p.Stderr, "%s", what) },
	})
}

// lab is what a selftest runs on: a scripted engine, a recording proxy in front of it, and a load of the cores.
type lab struct {
	env       env
	dir       string // temporary, of the proxy's store
	engine    *helper
	proxy     *helper
	burner    *helper // nil when the cores are not loaded
	engineURL string
	proxyURL  string
	adminURL  string
	http      *http.Client
}

var (
	engineSays = regexp.MustCompile(`"url":"(http://[^"]+)"`)
	proxySays  = regexp.MustCompile(`(?s)(http://\S+)  ->.*admin (http://\S+)\n`)
	burnerSays = regexp.MustCompile(`burning`)
)

// labPrefix begins the name of a temporary store.
const labPrefix = "benchproxy-selftest-"

// removeLeftovers removes the temporary stores of selftests that were killed: those whose owner is gone.
func removeLeftovers() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), labPrefix+"*")) // a good pattern
	for _, dir := range dirs {
		if _, running := recorder.ReadOwner(dir); running {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "owner.json")); err == nil { // without one it may be just beginning
			_ = os.RemoveAll(dir) // somebody else's: not ours to remove
		}
	}
}

// startLab starts engine and proxy. On an error nothing is left.
func (p *program) startLab(ctx context.Context) (l *lab, err error) {
	l = &lab{env: p.env, http: &http.Client{Transport: &http.Transport{}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	removeLeftovers()
	if l.dir, err = os.MkdirTemp("", labPrefix); err != nil {
		return l, fmt.Errorf("make temporary store: %w", err)
	}
	if l.engine, err = startHelper(p.env, "sim", "sim", "--listen", "127.0.0.1:0", "--json"); err != nil {
		return l, err
	}
	said, err := l.engine.says(ctx, engineSays)
	if err != nil {
		return l, err
	}
	l.engineURL = said[0]
	l.proxy, err = startHelper(p.env, "record", "record", "--upstream", l.engineURL, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
		"--store", l.dir, "--engine-label", "sim", "--quiet")
	if err != nil {
		return l, err
	}
	if said, err = l.proxy.says(ctx, proxySays); err != nil {
		return l, err
	}
	l.proxyURL, l.adminURL = said[0], said[1]
	return l, nil
}

// busy loads every core, or stops.
func (l *lab) busy(ctx context.Context, on bool) (err error) {
	if !on {
		l.burner.Close()
		l.burner = nil
		return nil
	}
	if l.burner, err = startHelper(l.env, "selftest --burn", "selftest", "--burn"); err != nil {
		return err
	}
	_, err = l.burner.says(ctx, burnerSays)
	return err
}

// settlePoll is how often the proxy is asked whether it is done.
const settlePoll = 2 * time.Millisecond

// settle waits until the proxy has stored every exchange that it saw.
func (l *lab) settle(ctx context.Context) error {
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	for {
		h, err := l.health(ctx)
		if err != nil || h.Proxy.Running == 0 && h.Recorder != nil && h.Recorder.Acknowledged+h.Recorder.Dropped >= h.Proxy.Accepted {
			return err
		}
		select {
		case <-tick.C:
		case <-l.proxy.ended:
			return l.proxy.failure(fmt.Errorf("it ended: %v", l.proxy.result))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *lab) health(ctx context.Context) (h web.Health, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.adminURL+"/healthz", nil)
	if err != nil {
		return h, err
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return h, l.proxy.failure(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
		return h, fmt.Errorf("read health of the proxy: %w", err)
	}
	return h, nil
}

// records ends the proxy and reads what it stored.
func (l *lab) records(ctx context.Context) iter.Seq2[*exchange.Exchange, error] {
	return func(yield func(*exchange.Exchange, error) bool) {
		if err := l.proxy.End(); err != nil {
			yield(nil, err)
			return
		}
		store, err := recorder.Open(l.dir, recorder.Options{Harness: version()})
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = store.Close() }() // nothing was written
		runs, err := store.Runs()
		if err != nil {
			yield(nil, err)
			return
		}
		for _, run := range runs {
			for row, err := range rowsOf(ctx, local{store}, run.ID) {
				var x *exchange.Exchange
				if err == nil {
					x, _, err = store.Exchange(row.ID)
				}
				if !yield(x, err) || err != nil {
					return
				}
			}
		}
	}
}

// Close ends every process and removes the temporary store.
func (l *lab) Close() error {
	l.http.CloseIdleConnections()
	for _, h := range []*helper{l.burner, l.proxy, l.engine} {
		if h != nil {
			h.Close()
		}
	}
	if l.dir == "" {
		return nil
	}
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("remove temporary store: %w", err)
	}
	return nil
}

// burn keeps every core busy until standard input ends, which it does with the one who started us.
func (p *program) burn(ctx context.Context) error {
	b := &burner{stop: make(chan struct{})}
	note(p.Stderr, "burning %d cores", runtime.NumCPU())
	b.Run(ctx, p.Stdin)
	return context.Cause(ctx)
}

// burner keeps cores busy.
type burner struct {
	stop chan struct{} // closed when it is over
	wg   sync.WaitGroup
}

// Run burns until in or ctx ends.
func (b *burner) Run(ctx context.Context, in io.Reader) {
	for range runtime.NumCPU() {
		b.wg.Go(b.spin)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is all that matters
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	close(b.stop)
	b.wg.Wait()
}

func (b *burner) spin() {
	for n := uint(1); ; n++ {
		if n%(1<<16) != 0 {
			continue
		}
		select {
		case <-b.stop:
			return
		default:
		}
	}
}

// agoText is an age for people.
func agoText(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Minute:
		return "just now"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// instrumentText says what a run's numbers are worth, "" when no selftest does.
func instrumentText(i *exchange.Instrument) string {
	if i == nil {
		return ""
	}
	age := ""
	if i.AgeS != nil {
		age = " (selftest " + agoText(*i.AgeS) + ")"
	}
	return "this machine" + age + ": " + noiseText(i)
}

// noiseText is the noise floor of a machine in words: what grows with the number of streams is said for the ends.
func noiseText(i *exchange.Instrument) string {
	idle, busy := i.Floors(exchange.LoadIdle), i.Floors(exchange.LoadBusy)
	switch {
	case len(idle) > 0 && len(busy) > 0:
		return fmt.Sprintf("differences below %s are noise; with all cores busy below %s", floorText(idle), floorText(busy))
	case len(idle) > 0:
		return fmt.Sprintf("differences below %s are noise; not known with all cores busy", floorText(idle))
	case len(busy) > 0:
		return fmt.Sprintf("differences below %s are noise with all cores busy; not known when idle", floorText(busy))
	}
	return "there were too few samples to say which differences are noise"
}

// floorText is "42 us (1 stream), 2600 us (256)".
func floorText(floors []exchange.NoiseFloor) string {
	first, last := floors[0], floors[len(floors)-1]
	streams := "streams"
	if first.Streams == 1 {
		streams = "stream"
	}
	text := fmt.Sprintf("%s (%d %s)", roundUp(*first.US), first.Streams, streams)
	if len(floors) > 1 {
		text += fmt.Sprintf(", %s (%d)", roundUp(*last.US), last.Streams)
	}
	return text
}

// roundUp is a time in microseconds to two digits, never less than it is.
func roundUp(us float64) string {
	step := 1.0
	for us/step > 100 {
		step *= 10
	}
	n := int64(us / step)
	if float64(n)*step < us {
		n++
	}
	return fmt.Sprintf("%d us", n*int64(step))
}
