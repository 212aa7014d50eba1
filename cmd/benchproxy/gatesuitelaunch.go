package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/replay"
)

// gateLaunchFlags say how the engines of a gate suite are started. Model and context are named otherwise there; what is
// true of one build alone has a flag for the reference beside it.
func gateLaunchFlags() []cli.Flag {
	return append(launchFlagsBut("model", "context", "reap"),
		&cli.StringFlag{Name: "reference-backend", Usage: "`BACKEND` of the reference that is started (default: the engine chooses)"},
		&cli.StringFlag{Name: "reference-binary", Usage: "`FILE` to run as the reference instead of the engine's usual program"},
		&cli.StringSliceFlag{Name: "reference-arg", Usage: "further `ARG` of the reference's command line; repeatable"},
		&cli.StringSliceFlag{Name: "reference-env", Usage: "`NAME=VALUE` set for the reference; repeatable"},
		&cli.StringFlag{Name: "reference-command", Usage: "`COMMAND` that starts the reference, as --engine-command does the target"},
	)
}

// launches finds out which of the engines are to be started, and how. Nothing is started yet.
func (p *program) launches(c *cli.Context, g *gating) error {
	cfg, err := p.readConfig(c)
	if err != nil {
		return err
	}
	g.engines = make([]*suiteEngine, len(g.s.targets))
	for i, arg := range []string{c.StringSlice("target")[0], c.String("reference")}[:len(g.s.targets)] {
		g.engines[i], err = g.engineOf(cfg, i, arg, func(profile engines.Profile, model string) (launch.Spec, error) {
			return p.gateSpec(c, profile, model, i > 0)
		})
		if err != nil {
			return err
		}
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
	for _, step := range []func(context.Context) error{func(context.Context) error { return g.openStore() }, g.builds, g.meet, g.weighAll} {
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
		why, err := e.identify(ctx)
		if err != nil {
			return err
		}
		if e.build == "" {
			e.tell("%s: its build is not known, so that no pass of before stands: %s", e.spec.Program, why)
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
	return slices.ContainsFunc(g.engines, func(e *suiteEngine) bool { return e != nil })
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

// weighAll fills in the weights that nobody has told yet.
func (g *gating) weighAll(ctx context.Context) (err error) {
	for i := range g.engines {
		if g.weights[i] != "" {
			continue
		}
		if g.weights[i], err = g.weigh(ctx, i); err != nil {
			return err
		}
	}
	return nil
}
