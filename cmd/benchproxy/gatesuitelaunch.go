package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/engines/weights"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/replay"
)

// gateLaunchFlags say how the engines of a gate suite are started. Model and context are named otherwise there; what is
// true of one build alone has a flag for the reference beside it.
func gateLaunchFlags() []cli.Flag {
	shared := slices.DeleteFunc(launchFlags(), func(f cli.Flag) bool {
		return slices.Contains([]string{"model", "context", "reap"}, f.Names()[0])
	})
	return append(shared,
		&cli.StringFlag{Name: "reference-backend", Usage: "`BACKEND` of the reference that is started (default: the engine chooses)"},
		&cli.StringFlag{Name: "reference-binary", Usage: "`FILE` to run as the reference instead of the engine's usual program"},
		&cli.StringSliceFlag{Name: "reference-arg", Usage: "further `ARG` of the reference's command line; repeatable"},
		&cli.StringSliceFlag{Name: "reference-env", Usage: "`NAME=VALUE` set for the reference; repeatable"},
		&cli.StringFlag{Name: "reference-command", Usage: "`COMMAND` that starts the reference, as --engine-command does the target"},
	)
}

// gateEngine is an engine that a gate suite starts and stops, as often as it is its turn: a replay.Party.
type gateEngine struct {
	spec    launch.Spec
	reach   proxy.UpstreamOptions // without the URL
	session *proxy.Session        // set before the suite runs
	tell    func(format string, args ...any)

	build    string            // launch.Identity.Digest, before the first start; "" when unknown
	known    exchange.Identity // of an earlier start of this very build that is on record
	variant  string            // flags with which it was started, beside its usual ones
	starts   int
	process  *launch.Process // nil while it is down
	upstream *proxy.Upstream // of the process; nil until it is asked
}

// launchable is what ENGINE:MODEL means, after a name or without one. A URL and the name of a target are none.
func launchable(cfg config, catalog *engines.Catalog, arg string) (name string, profile engines.Profile, model string, ok bool) {
	if _, named := cfg.Targets[arg]; named || nameAndURL.MatchString(arg) || nameAndURL.MatchString("x="+arg) {
		return "", profile, "", false
	}
	id, model, _ := strings.Cut(arg, ":")
	if before, after, named := strings.Cut(id, "="); named {
		name, id = before, after
	}
	profile, ok = catalog.Lookup(id)
	return name, profile, model, ok && model != ""
}

// launches finds out which of the engines are to be started, and how. Nothing is started yet.
func (p *program) launches(c *cli.Context, g *gating) error {
	cfg, err := p.readConfig(c)
	if err != nil {
		return err
	}
	g.engines = make([]*gateEngine, len(g.s.targets))
	for i, arg := range []string{c.StringSlice("target")[0], c.String("reference")}[:len(g.s.targets)] {
		name, profile, model, ok := launchable(cfg, g.s.bridge.catalog, arg)
		if !ok {
			continue
		}
		spec, err := p.gateSpec(c, profile, model, i > 0)
		if err != nil {
			return err
		}
		u := &g.s.targets[i]
		u.name, u.url = cmp.Or(name, u.name), "http://"+spec.Host
		if u.label == "" && profile.ID != genericID {
			u.label = profile.ID // we know what we start
		}
		if profile.Launch != nil && profile.Launch.Serves == engines.ServesRequested {
			u.model = cmp.Or(u.model, model)
		}
		if u.credentials != nil {
			spec.Headers = u.credentials()
		}
		g.engines[i] = &gateEngine{spec: spec, tell: func(format string, args ...any) {
			if !g.s.quiet && !g.s.json {
				note(g.env.Stderr, format, args...)
			}
		}}
	}
	if len(g.s.targets) > 1 && g.s.targets[0].name == g.s.targets[1].name {
		return usagef("target and reference are both called %q", g.s.targets[0].name)
	}
	return g.launchFlagsFit(c)
}

// launchFlagsFit holds that nothing is said of how an engine is started that runs already.
func (g *gating) launchFlagsFit(c *cli.Context) error {
	target := g.engines[0] != nil
	reference := len(g.engines) > 1 && g.engines[1] != nil
	for _, f := range gateLaunchFlags() {
		name := f.Names()[0]
		switch {
		case !c.IsSet(name):
		case strings.HasPrefix(name, "reference-") && !reference:
			return usagef("--%s goes with a --reference that is to be started: ENGINE:MODEL", name)
		case !target && !reference:
			return usagef("--%s goes with an engine that is to be started: --target ENGINE:MODEL", name)
		}
	}
	return nil
}

// gateSpec is how one engine is started. The reference shares what belongs to the machine and to the model, and does not
// draft.
func (p *program) gateSpec(c *cli.Context, profile engines.Profile, model string, reference bool) (launch.Spec, error) {
	o, err := p.launchOptions(c, profile)
	if err != nil {
		return launch.Spec{}, err
	}
	o.Model, o.Context = model, c.Int("context")
	if reference {
		o.Backend, o.Extra, o.Command = c.String("reference-backend"), c.StringSlice("reference-arg"), strings.Fields(c.String("reference-command"))
		o.Draft, o.Drafter, o.DraftDepth = "", "", 0
		if o.Env, err = engineEnv(c, "reference-env"); err != nil {
			return launch.Spec{}, err
		}
		o.Program, o.File = "", ""
		p.launchProgram(c.String("reference-binary"), profile, &o)
	}
	spec, err := p.launchSpec(c, profile, o)
	if reference && spec.LogFile != "" {
		spec.LogFile = strings.TrimSuffix(spec.LogFile, ".log") + "-reference.log"
	}
	return spec, err
}

// open opens the store, meets the engines, and finds out how and for which model they are asked.
func (g *gating) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{func(context.Context) error { return g.openStore() }, g.builds, g.meet, g.weigh} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if len(g.s.targets) > 1 {
		g.refModel = g.s.targets[1].model
	}
	return g.settle(ctx, g.s.targets[0].model)
}

// builds reads what exactly is to be started: a pass of before stands for the same bytes only. A build that was started for
// another suite needs no start to be known.
func (g *gating) builds(ctx context.Context) error {
	if !g.launched() {
		return nil
	}
	runs, err := g.store.Runs()
	if err != nil {
		return err
	}
	for _, e := range g.engines {
		if e == nil {
			continue
		}
		id, err := launch.IdentityOf(ctx, e.spec)
		if err != nil {
			return err
		}
		if e.build = id.Digest; e.build == "" {
			e.tell("%s: its build is not known, so that no pass of before stands: %s", e.spec.Program, id.Why)
			continue
		}
		for _, run := range runs {
			for _, d := range run.Deployments {
				if d.Launch == e.build && d.Version != "" {
					e.known = d.Identity
				}
			}
		}
	}
	return nil
}

// launched reports whether any of the engines is started here.
func (g *gating) launched() bool {
	return slices.ContainsFunc(g.engines, func(e *gateEngine) bool { return e != nil })
}

// Close ends the engines that are up, and frees what the suite holds.
func (g *gating) Close() {
	for _, e := range g.engines {
		if e == nil {
			continue
		}
		if err := e.Stop(context.Background()); err != nil {
			note(g.env.Stderr, "%v", err)
		}
	}
	g.suiteSitting.Close()
}

// meet finds out what the engines are. A reference that the suite starts is met when it is its turn: until then what is
// known of its build has to do. One of no engine that we know must be met before, since how it is spoken to depends on it;
// then it comes first, since the target has the first turn and stays up for it.
func (g *gating) meet(ctx context.Context) error {
	if !g.launched() || !g.s.identify {
		return nil
	}
	last := len(g.engines) - 1
	if last > 0 && g.engines[last] != nil && g.engines[last].spec.Engine.ID != genericID {
		last--
	}
	found := make([]discovery, last+1)
	for i := last; i >= 0; i-- {
		e := g.engines[i]
		if e != nil {
			if err := e.launch(ctx, ""); err != nil {
				return err
			}
		}
		one, err := g.discovered(ctx, i)
		if err != nil {
			return err
		}
		found[i] = one
		if e != nil && i > 0 {
			if err := e.Stop(ctx); err != nil {
				return err
			}
		}
	}
	g.found = found
	return nil
}

// discovered finds out what an engine is that is up.
func (g *gating) discovered(ctx context.Context, i int) (discovery, error) {
	e := g.engines[i]
	if e != nil {
		g.s.targets[i].url = e.process.URL()
	}
	one := replaying{env: g.env, s: g.s}
	one.s.targets = g.s.targets[i : i+1]
	if err := one.discover(ctx); err != nil {
		return discovery{}, err
	}
	if e != nil {
		one.found[0].is = engines.WithLaunch(one.found[0].is, e.build)
	}
	return one.found[0], nil
}

// meetReference finds out what the reference is that was started, and tells the run.
func (g *gating) meetReference(ctx context.Context) (replay.GateMet, error) {
	found, err := g.discovered(ctx, 1)
	if err != nil {
		return replay.GateMet{}, err
	}
	g.found = append(g.found[:1:1], found)
	g.describe(ctx, 1)
	p := g.party(1, cmp.Or(g.refModel, g.served(1), g.model))
	if p.Identity.Basis == "label" {
		g.reference.session.SetIdentity(g.reference.up.name, p.Identity)
	}
	return replay.GateMet{Identity: p.Identity, Model: p.Model, Weights: p.Weights, Drafting: p.Drafting, References: g.referencesOf(&p)}, nil
}

// weigh fills in the weights of engines that were started with a model file: its digest.
func (g *gating) weigh(ctx context.Context) error {
	w := weigher{known: g.store, warn: func(format string, args ...any) { note(g.env.Stderr, format, args...) }}
	for i, e := range g.engines {
		if e == nil || g.weights[i] != "" || i < len(g.found) && g.found[i].is.WeightsDigest != nil {
			continue
		}
		if _, err := weights.ReadGGUF(e.spec.Model); err != nil {
			continue // a name, or a file of another form: unknown, as for an engine that runs
		}
		digest, err := w.digest(ctx, e.spec.Model)
		if err != nil {
			return fmt.Errorf("read weights: %w", err)
		}
		g.weights[i] = digest
	}
	return nil
}

// launch starts the engine and waits until it can answer.
func (e *gateEngine) launch(ctx context.Context, variant string) error {
	spec := e.spec
	spec.Args = append(slices.Clone(spec.Args), strings.Fields(variant)...)
	if e.starts++; e.starts > 1 && spec.LogFile != "" {
		spec.LogFile = fmt.Sprintf("%s-%d.log", strings.TrimSuffix(spec.LogFile, ".log"), e.starts)
	}
	began := clock.Now()
	proc, err := launch.Start(ctx, spec)
	if err != nil {
		return err
	}
	if now := proc.Identity().Digest; now != e.build {
		return errors.Join(fmt.Errorf("start %s: %w: its build was replaced while the suite runs", proc.Command(), exchange.ErrIncomplete), proc.Close())
	}
	e.tell("starting %s, pid %d", proc.Command(), proc.PID())
	if err := proc.WaitReady(ctx); err != nil {
		return errors.Join(err, proc.Close())
	}
	e.tell("%s is ready after %s, %s", spec.Engine.ID, clock.Since(began).Round(10*time.Millisecond), deviceSeen(proc))
	e.process, e.variant = proc, variant
	return nil
}

// Start starts the engine with its usual flags and those of the variant behind them, unless it is up with them.
func (e *gateEngine) Start(ctx context.Context, variant string) (replay.Target, error) {
	if e.process != nil && e.variant != variant {
		if err := e.Stop(ctx); err != nil {
			return replay.Target{}, err
		}
	}
	if e.process == nil {
		if err := e.launch(ctx, variant); err != nil {
			return replay.Target{}, err
		}
	}
	if e.upstream == nil {
		o := e.reach
		o.URL = e.process.URL()
		up, err := proxy.NewUpstream(o)
		if err != nil {
			return replay.Target{}, errors.Join(fmt.Errorf("reach %s: %w", o.Name, err), e.Stop(ctx))
		}
		e.upstream = up
	}
	return replay.Target{Session: e.session, Upstream: e.upstream}, nil
}

// Stop ends the engine and waits until nothing is left of it. The error says, too, that it had ended by itself.
func (e *gateEngine) Stop(ctx context.Context) error {
	proc := e.process
	if proc == nil {
		return nil
	}
	var errs []error
	if e.upstream != nil {
		errs = append(errs, e.upstream.Close())
	}
	e.process, e.upstream = nil, nil
	select {
	case <-proc.Done():
		errs = append(errs, proc.Wait(context.Background()))
	default:
		errs = append(errs, proc.Stop(ctx))
	}
	return errors.Join(errs...)
}

// command is how the engine is started, with a port that is not chosen yet; "" for one that somebody else runs.
func (e *gateEngine) command() string {
	if e == nil {
		return ""
	}
	return strings.Join(redact.Args(slices.Concat(e.spec.Env, []string{e.spec.Program}, e.spec.Args)), " ")
}
