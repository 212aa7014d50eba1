package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines/host"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay/bench"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

func (p *program) benchCommand() *cli.Command {
	return &cli.Command{
		Name:      "bench",
		Usage:     "start engines, ask each the scenarios of a matrix, and keep a record of every cell",
		ArgsUsage: "[FILE]",
		Description: "FILE is the config (config schema tells its form). Each engine is started once for each group of cells, asked, and\n" +
			"ended with all that it started; its exchanges are a run of the store, and each cell is a file of --results. A cell that\n" +
			"fails does not stop the others. One that needs tools, images or audio of an engine that says in so many words that it has\n" +
			"none is unsupported, not failed; a server is asked for each of them once a model, the warm-up aside, and further cells that\n" +
			"need it are not sent. --skip-existing asks again for all that is not ok, --only-failed for what failed alone.\n" +
			"Exit code 1 when a cell failed or none is ok, 9 when the matrix did not come to its end; skipped and unsupported cells have\n" +
			"not failed.\n\n" +
			"   benchproxy bench bench.json --dry-run\n" +
			"   benchproxy bench bench.json --engines llamacpp,tensorsharp --scenarios text_short,prefill_2k --repeats 3\n" +
			"   benchproxy bench bench.json --skip-existing",
		Flags: append(benchConfigFlags(),
			&cli.BoolFlag{Name: "dry-run", Usage: "print the plan, and start nothing"},
			&cli.BoolFlag{Name: "skip-existing", Usage: "leave out cells whose result is ok and of the same definition"},
			&cli.BoolFlag{Name: "only-failed", Usage: "measure only cells whose result is a failure"},
			&cli.BoolFlag{Name: "force", Usage: "measure on a machine that is busy; the records say so"},
			&cli.BoolFlag{Name: "reap", Usage: "first end what a run that was killed has left"},
			&cli.DurationFlag{Name: "ready-timeout", Usage: "`DURATION` the start of an engine may take, instead of the config's"},
			storeFlag(),
			&cli.StringFlag{Name: "run", Usage: "`NAME` of the runs: each is called NAME and its group"},
			&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` to keep with the runs; repeatable"},
			&cli.StringFlag{Name: "durability", Value: "async", Usage: "`WHEN` a record counts as stored: async survives a killed process, sync a loss of power too"},
			maxBodyFlag(), budgetFlag(),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
			jsonFlag(),
		),
		Action: p.interruptible(p.bench),
	}
}

// benching is one sitting of a benchmark.
type benching struct {
	*program
	c       *cli.Context
	config  *matrix.Config
	plan    *matrix.Plan
	results string
	claim   io.Closer      // on the results; nil for a plan that is only printed
	s       replaySettings // what all groups share
	machine exchange.Machine
	store   *recorder.Store
	telling telling
	began   time.Time
	salt    string // of the sitting
	grace   *grace // of engines that are to end
	shown   bool   // on a terminal: what is asked now
	up      []*benchServer
	crowded []string // groups of which it is evident that they do not fit beside each other
	records []*matrix.Record
}

func (p *program) bench(c *cli.Context) error {
	b := &benching{program: p, c: c, began: clock.Now()}
	defer b.unclaim()
	if err := b.read(); err != nil {
		return err
	}
	if c.Bool("dry-run") {
		return b.printPlan()
	}
	if err := b.prepare(c.Context); err != nil {
		return err
	}
	defer b.close()
	b.grace = newGrace(c.Context, p.Signals)
	defer b.grace.Close()
	return b.run(c.Context)
}

// read resolves the config and plans. Nothing is touched.
func (b *benching) read() (err error) {
	c := b.c
	if c.Bool("skip-existing") && c.Bool("only-failed") {
		return usagef("--skip-existing and --only-failed exclude each other")
	}
	if b.config, err = b.benchConfig(c); err != nil {
		return err
	}
	for _, w := range b.config.Warnings {
		note(b.Stderr, "warning: %s", w)
	}
	b.results = b.config.Paths.Results
	if !c.Bool("dry-run") {
		if b.claim, err = bench.Claim(b.results); err != nil {
			return err
		}
	}
	o := onThisMachine()
	o.Server = b.server
	o.Resume = matrix.Resume{SkipExisting: c.Bool("skip-existing"), OnlyFailed: c.Bool("only-failed")}
	var broken []string
	if o.Results, broken, err = matrix.ReadResults(b.results); err != nil {
		return err
	}
	for _, text := range broken {
		note(b.Stderr, "no result: %s", printable(text))
	}
	if o.Listed, err = b.installed(c.Context); err != nil {
		return err
	}
	if b.plan, err = matrix.NewPlan(b.config, o); err != nil || b.claim == nil {
		return err
	}
	return bench.Check(b.results, b.plan)
}

// unclaim lets others write results there.
func (b *benching) unclaim() {
	if b.claim != nil {
		_ = b.claim.Close() // it only unlocks
	}
}

func (b *benching) printPlan() error {
	if b.c.Bool("json") {
		return json.NewEncoder(b.Stdout).Encode(b.plan.Masked())
	}
	printLines(b.program, b.plan.Planned())
	if b.plan.Counts().Run > 0 {
		fmt.Fprint(b.Stdout, "\nservers, in the order of their cells:\n")
	}
	for i := range b.plan.Groups {
		if g := &b.plan.Groups[i]; g.Runs() > 0 {
			fmt.Fprintf(b.Stdout, "  %s: %s\n", printable(g.Name), printable(b.brought(g)))
		}
	}
	if skips := b.plan.Skips(); len(skips) > 1 {
		fmt.Fprintln(b.Stdout)
		printLines(b.program, skips)
	}
	fmt.Fprintf(b.Stdout, "\n%s\n", b.plan.Summary())
	return nil
}

// brought is how the server of a group comes to be there.
func (b *benching) brought(g *matrix.Group) string {
	if g.Launch.Transport != matrix.TransportServer {
		return "runs at " + redact.URL(g.Launch.URL)
	}
	spec, err := b.spec(g)
	if err != nil {
		return "cannot be started: " + err.Error()
	}
	return spec.Command(spec.Port)
}

// prepare makes sure of the machine and the model files, and opens the store.
func (b *benching) prepare(ctx context.Context) (err error) {
	c := b.c
	b.s = replaySettings{name: c.String("run"), identify: true, json: c.Bool("json"), quiet: true}
	if exchange.ValidID(b.s.name) {
		return usagef("--run %q has the form of an id; choose another name", b.s.name)
	}
	if err := b.replayStore(c, &b.s); err != nil {
		return err
	}
	if b.s.session.MaxBody, b.s.session.Budget, err = bounds(c); err != nil {
		return err
	}
	b.s.bridge.catalog = b.config.Catalog
	if c.Bool("reap") {
		if err := b.reap(ctx); err != nil {
			return err
		}
	}
	if b.plan.Counts().Run > 0 {
		if err := b.lookAtMachine(ctx); err != nil {
			return err
		}
		if err := b.download(ctx); err != nil {
			return err
		}
		if err := b.fit(); err != nil {
			return err
		}
	}
	if b.telling, err = openTelling(b.env, func(format string, args ...any) { note(b.Stderr, format, args...) }, nil); err != nil {
		return err
	}
	b.salt = string(exchange.NewID(clock.Now()))
	b.store, err = recorder.Open(b.s.store, recorder.Options{Sync: b.s.sync, Harness: version(), Host: thisHost().Fingerprint(),
		Log: slog.New(slog.NewTextHandler(b.Stderr, nil))})
	if err != nil {
		b.telling.Close()
	}
	return err
}

// lookAtMachine refuses a machine that something else uses, or marks what is measured there.
func (b *benching) lookAtMachine(ctx context.Context) error {
	b.machine = host.Look(ctx, host.Options{})
	err := host.Refusal(&b.machine)
	if err == nil {
		return nil
	}
	if !b.c.Bool("force") {
		return fmt.Errorf("%w\n--force measures all the same, and the records say so", err)
	}
	note(b.Stderr, "warning: %v", err)
	return nil
}

func (b *benching) close() {
	if b.store != nil {
		_ = b.store.Close() // every run of it was closed, and its error told
	}
	b.telling.Close()
}

// run carries out the plan and tells what came of it.
func (b *benching) run(ctx context.Context) error {
	r := bench.New(bench.Options{Plan: b.plan, Results: b.results, Place: b, Harness: version(), Build: b.build, Event: b.event})
	if !b.c.Bool("quiet") && !b.s.json {
		note(b.Stderr, "%s\nresults in %s", b.plan.Summary(), b.results)
		for i := range b.plan.Groups {
			for _, c := range b.plan.Groups[i].Cells {
				if c.Do == matrix.DoRun && c.Reason != "" {
					note(b.Stderr, "%s: %s", printable(c.Name), printable(c.Reason))
				}
			}
		}
	}
	ran := r.Run(ctx)
	b.wipe()
	sum := r.Summary()
	if err := b.print(sum, ran); err != nil {
		return errors.Join(ran, err)
	}
	left := sum.Planned - sum.OK - sum.Failed - sum.Skipped - sum.Unsupported - sum.Kept - sum.Left
	switch {
	case ran != nil && errors.Is(context.Cause(ctx), ran):
		return ran
	case errors.Is(ran, exchange.ErrNoSpace):
		return ran
	case ran != nil:
		return fmt.Errorf("%w: %d of %d cells were not measured: %w", exchange.ErrIncomplete, left, sum.Planned, ran)
	case sum.Failed > 0:
		return fmt.Errorf("%s failed", countOf(sum.Failed, "cell"))
	case sum.OK+sum.Kept == 0 && sum.Unsupported > 0:
		return fmt.Errorf("no cell is ok: the engine lacks what %s", needing(sum.Unsupported))
	case sum.OK+sum.Kept == 0:
		return errors.New("no cell is ok")
	}
	return nil
}

// build is the name under which the requests of a scenario are built.
func (b *benching) build(id string) string {
	for i := range b.config.Scenarios {
		if s := &b.config.Scenarios[i]; s.ID == id && s.Build != "" {
			return s.Build
		}
	}
	return id
}

// logPath is where the output of a group's server goes: the name for the record, and the file.
func (b *benching) logPath(g *matrix.Group) (name, path string) {
	name = g.Launch.LogFile
	if name == "" {
		name = bench.LogDir + "/" + g.Name + ".log"
	}
	return name, filepath.Join(b.results, filepath.FromSlash(name))
}
