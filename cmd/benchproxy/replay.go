package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/telemetry"
	"github.com/benchproxy/benchproxy/internal/web"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
)

func (p *program) replayCommand() *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "send a recorded workload to an engine and record what comes of it, or answer from it",
		ArgsUsage: "RUN|FILE",
		Description: "RUN is the id or name of a recorded run; FILE is a workload file. By default one request runs at a time.\n" +
			"--concurrency N keeps N running, --waves N sends N at once and waits for all, --rate R sends R a second whatever\n" +
			"the answers do, and --timing recorded sends at the recorded instants. Turns of a conversation are sent in order,\n" +
			"each when the one before was answered in full. With a rate or recorded instants the run says how late requests\n" +
			"were sent; one that missed its schedule is marked invalid, and the exit code is 9.\n\n" +
			"Several targets get each request one after the other in random order, and a run each: compare them with\n" +
			"'benchproxy compare'. A request is sent once; only a 503 that says when to come back is followed by another.\n\n" +
			"   benchproxy replay agent --target http://127.0.0.1:8080 --run candidate\n" +
			"   benchproxy replay agent --target http://127.0.0.1:8080 --rate 4 --arrivals poisson --warmup 2 --nonce\n" +
			"   benchproxy replay agent --target a=http://127.0.0.1:8080 --target b=http://127.0.0.1:8081 --repeats 5" + serveHelp + revalidateHelp,
		Flags:  slices.Concat(replayFlags(), serveFlags(), revalidateFlags()),
		Action: p.revalidateOr(p.replayOrServe),
	}
}

func (p *program) replay(c *cli.Context) error {
	if err := exactArgs(c, "RUN|FILE"); err != nil {
		return err
	}
	s, err := p.replaySettings(c)
	if err != nil {
		return err
	}
	r := &replaying{env: p.env, s: s}
	defer r.Close()
	if err := r.open(c.Context, c.Args().First()); err != nil {
		return err
	}
	return r.run(c.Context)
}

// replaying is a replay with all that stands around it.
type replaying struct {
	env     env
	s       replaySettings
	store   *recorder.Store
	from    reading     // the store that has the run, where that is another one; nil otherwise
	source  string      // of the workload, for the run
	origin  string      // name of the recorded run, "" for a file
	found   []discovery // by target, once they were asked
	plan    *replay.Plan
	driver  *replay.Driver
	bar     *progress // nil where none is drawn
	targets []*replayTarget
	telling telling

	recorded map[exchange.ID]exchange.SpanContext // spans of the recorded exchanges that are sent again
}

// replayTarget is one target with its run.
type replayTarget struct {
	up       upstream
	upstream *proxy.Upstream
	session  *proxy.Session
	writer   *recorder.Writer
	counters *soloCounters // nil where requests overlap
	failures *failureNotes
	models   engines.ModelWatch
	trace    *telemetry.Run

	load *compare.LoadMeter

	mu    sync.Mutex
	total measure.Totals
}

// open reads the workload, plans, and prepares the targets and their runs. Nothing is sent.
func (r *replaying) open(ctx context.Context, name string) error {
	r.bar = newProgress(r.env, r.s.json || r.s.quiet, func() replay.Progress { return r.driver.Progress() })
	err := r.openTelling()
	if err != nil {
		return err
	}
	r.store, err = recorder.Open(r.s.store, recorder.Options{Sync: r.s.sync, Harness: version(), Host: thisHost().Fingerprint(),
		Log: slog.New(slog.NewTextHandler(r.notes(), nil))})
	if errors.Is(err, exchange.ErrLocked) {
		return fmt.Errorf("%w; --from DIR reads a run of a store in use, --store DIR is another one for the new run", err)
	}
	if err != nil {
		return err
	}
	if r.s.openFrom != nil {
		if r.from, err = r.s.openFrom(); err != nil {
			return err
		}
	}
	w, err := r.workload(ctx, name)
	if err != nil {
		return err
	}
	for _, n := range w.Notes {
		note(r.env.Stderr, "workload: %s", n)
	}
	if err := r.bridgeTargets(ctx, w); err != nil {
		return err
	}
	if err := r.settleModel(ctx, w); err != nil {
		return err
	}
	group := exchange.NewID(clock.Now())
	r.s.plan.Salt = string(group)
	if r.plan, err = replay.NewPlan(w, r.s.plan); err != nil {
		return err
	}
	if err := r.checkPlan(); err != nil {
		return err
	}
	r.source = w.Source
	var targets []replay.Target
	for i, u := range r.s.targets {
		t, err := r.openTarget(i, u, group)
		if err != nil {
			return err
		}
		targets = append(targets, replay.Target{Session: t.session, Upstream: t.upstream})
	}
	r.driver = replay.NewDriver(r.plan, targets)
	return nil
}

// workload is the run of that name, or else the file.
func (r *replaying) workload(ctx context.Context, name string) (*replay.Workload, error) {
	if r.from != nil { // what it says stands: a file is no run of that store
		run, err := r.from.Run(name)
		if err != nil {
			return nil, err
		}
		return replay.FromRun(ctx, r.linked(r.from), &run, r.s.filter)
	}
	run, err := r.store.Run(name)
	if err == nil {
		r.origin = name
		return replay.FromRun(ctx, r.linked(r.store), &run, r.s.filter)
	}
	if info, statErr := os.Stat(name); statErr != nil || !errors.Is(err, exchange.ErrMiss) {
		return nil, err
	} else if info.IsDir() {
		return nil, usagef("%s is a directory; name a run or a workload file", name)
	}
	if f := r.s.filter.String(); f != "" {
		return nil, usagef("%s is a file, and a filter (%s) is for a recorded run; import it with store import", name, f)
	}
	return replay.OpenFile(name, r.s.file).Load(ctx)
}

// openTarget prepares a target and begins its run.
func (r *replaying) openTarget(i int, u upstream, group exchange.ID) (*replayTarget, error) {
	o := r.s.upstream
	o.Name, o.URL, o.Credentials = u.name, u.url, u.credentials
	up, err := proxy.NewUpstream(o)
	if err != nil {
		return nil, fmt.Errorf("--target: %w", err)
	}
	t := &replayTarget{up: u, upstream: up, failures: &failureNotes{out: r.notes()}, load: compare.NewLoadMeter(r.s.objectives), total: measure.Totals{Limit: sampleLimit}}
	t.trace = r.telling.tracing.NewRun()
	r.targets = append(r.targets, t)
	run := newRun("replay", r.s.name, []upstream{u})
	run.MadeBy = redact.Args(r.env.Args)
	if run.Name != "" && len(r.s.targets) > 1 {
		run.Name += "-" + u.name
	}
	run.Labels, run.Identity = r.s.labels, identity(u.label)
	planned := r.plan.Planned()
	planned.Source = r.source
	if len(r.s.targets) > 1 {
		planned.Group = group
	}
	run.Replay = &planned
	t.writer, err = r.store.NewWriter(run, recorder.WriterOptions{
		Derive:    func(x *exchange.Exchange) exchange.Summary { return r.derive(i, x) },
		OnStored:  func(row exchange.Summary) { r.stored(t, row) },
		OnDropped: func(id exchange.ID, _ recorder.DropReason) { r.telling.tracing.Dropped(id) },
	})
	if err != nil {
		return nil, err
	}
	so := r.s.session
	so.Dialect = r.answersOf(i)
	so.Run, so.Mode, so.Harness, so.Sink, so.Identity = run.ID, run.Mode, version(), r.telling.sink(t.writer), run.Identity
	so.Tracer = tracerOf(t.trace)
	if r.plan.Solo() {
		t.counters = &soloCounters{next: so.Sink}
		so.Sink = t.counters
	}
	t.session = proxy.NewSession(so)
	return t, nil
}

// derive makes the row of an exchange and tells the driver what it came to.
func (r *replaying) derive(target int, x *exchange.Exchange) exchange.Summary {
	a := measure.Analyze(x)
	r.telling.measured(x, a)
	r.driver.Tally(target).Add(x, a)
	t := r.targets[target]
	word := t.models.Observe(engines.AnsweredBy(x, a.Request.Model, a.Transcript.Model))
	if word.First {
		t.writer.NameModel(exchange.ModelNamed{Upstream: x.Upstream, Asked: a.Request.Model, Named: a.Transcript.Model})
	}
	row := measure.Summarize(x, a).WithFlags(word.Flags)
	t.load.Add(x, &row)
	return row
}

// stored takes an exchange whose record is kept.
func (r *replaying) stored(t *replayTarget, s exchange.Summary) {
	r.telling.tracing.Stored(&s)
	t.stored(s)
}

func (t *replayTarget) stored(s exchange.Summary) {
	t.mu.Lock()
	t.total.Add(&s)
	t.mu.Unlock()
	t.failures.add(&s)
}

func (t *replayTarget) sum() measure.Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total.Run()
}

// run sends the plan, closes the runs and prints what they came to.
func (r *replaying) run(ctx context.Context) error {
	if err := r.identify(ctx); err != nil {
		return err
	}
	if !r.s.json && !r.s.quiet {
		note(r.env.Stderr, "%s", r.announcement())
	}
	live := web.NewLive(r.running)
	r.bar.streams = func() []string { return runningLines(live) }
	drawing, stop := context.WithCancel(context.Background())
	var drawn sync.WaitGroup
	drawn.Go(func() { r.bar.Run(drawing) })
	sendErr := r.driver.Run(ctx)
	stop()
	drawn.Wait()
	results, err := r.finish()
	if err != nil {
		return errors.Join(sendErr, err)
	}
	if err := r.print(r.env.Stdout, results); err != nil {
		return err
	}
	return r.verdict(sendErr, results)
}

// notes is where lines for people go while it runs: they and the bar share the screen.
func (r *replaying) notes() io.Writer {
	if r.bar == nil {
		return r.env.Stderr
	}
	return r.bar
}

// running are the requests that run now, of all targets.
func (r *replaying) running() (out []proxy.Live) {
	for _, t := range r.targets {
		out = append(out, t.session.Live()...)
	}
	return out
}

// announcement says what is about to happen.
func (r *replaying) announcement() string {
	p := r.plan
	text := fmt.Sprintf("sending %s as %s, plan %s", countOf(p.Requests, "request"), countOf(p.Items, "item"), p.Hash)
	if p.Requests == p.Items {
		text = fmt.Sprintf("sending %s, plan %s", countOf(p.Requests, "request"), p.Hash)
	}
	for _, t := range r.targets {
		text += fmt.Sprintf("\n  to %s %s, run %s", t.up.name, t.upstream.URL(), runName(t.writer.Run()))
	}
	return text
}

func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// replayResult is what a replay came to at one target.
type replayResult struct {
	Run     exchange.Run `json:"run"`
	Summary measure.Run  `json:"summary"`
	Load    compare.Load `json:"load"`
}

// finish stores what is still on its way, and closes the runs with what became of the plan.
func (r *replaying) finish() (out []replayResult, err error) {
	for i, t := range r.targets {
		t.writer.Drain(context.Background()) // the report counts what the writer derives
		report := r.driver.Report(i)
		planned := t.writer.Run().Replay
		report.Source, report.Group = planned.Source, planned.Group
		t.writer.Replay(report)
		run, closeErr := t.writer.Close(context.Background())
		err = errors.Join(err, closeErr)
		r.endTrace(t, &run)
		t.failures.more()
		out = append(out, replayResult{Run: run, Summary: t.sum(), Load: t.load.Load()})
	}
	return out, err
}

// verdict is the error a replay ends with: what kept it from its end, else what speaks against its runs.
func (r *replaying) verdict(sendErr error, results []replayResult) error {
	complete := 0
	var against []error
	for i, res := range results {
		complete += res.Run.Replay.Items.Complete
		switch {
		case errors.Is(sendErr, exchange.ErrUnreachable):
			return &exchange.Error{Op: "replay workload", Object: r.targets[i].upstream.URL(), Side: exchange.SideEngine, Cause: sendErr,
				Hint: "check that it runs and that --target names its address"}
		case res.Run.State != exchange.RunComplete:
			against = append(against, fmt.Errorf("%w: run %s: %s", exchange.ErrIncomplete, runName(res.Run), whyIncomplete(res.Run)))
		case res.Run.Replay.Invalid != "":
			against = append(against, fmt.Errorf("%w: run %s is no evidence of an open loop: %s", exchange.ErrIncomplete, runName(res.Run), res.Run.Replay.Invalid))
		}
	}
	if len(against) > 0 {
		var signal interrupted
		if errors.As(sendErr, &signal) {
			return signal
		}
		return errors.Join(against...)
	}
	if complete == 0 {
		return errors.New("no request was answered in full; store ls RUN shows why")
	}
	return nil
}

func whyIncomplete(run exchange.Run) string {
	if run.Replay.Incomplete != "" {
		return run.Replay.Incomplete
	}
	return countsText(run.Counts)
}

// Close frees what a replay holds; a run that was not finished stays as it is.
func (r *replaying) Close() {
	for _, t := range r.targets {
		_ = t.upstream.Close() // nothing runs on it
		if t.writer != nil {
			_, _ = t.writer.Close(context.Background()) // closed already, but for an error that is told
		}
	}
	if r.from != nil {
		r.from.Close()
	}
	if r.store != nil {
		_ = r.store.Close() // as above
	}
	r.telling.Close()
}

// failureNotes tells the first failed requests of a run as they come.
type failureNotes struct {
	out io.Writer
	mu  sync.Mutex
	n   int
}

// toldFailures is how many failed requests are told one by one.
const toldFailures = 5

func (f *failureNotes) add(s *exchange.Summary) {
	if s.Outcome == exchange.OutcomeComplete || s.Item == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n++; f.n > toldFailures {
		return
	}
	why := string(s.Outcome)
	if s.Status != 0 {
		why += fmt.Sprintf(", status %d", s.Status)
	}
	if s.Cause != nil {
		why += ": " + s.Cause.Text
	}
	note(f.out, "item %s at %s: %s", printable(s.Item.Item), s.Upstream, printable(why))
}

func (f *failureNotes) more() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.n - toldFailures; n > 0 {
		note(f.out, "and %d more that were not answered in full", n)
	}
}
