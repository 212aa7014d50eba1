package main

import (
	"context"
	"maps"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
)

const validateLaunchHelp = "A target ENGINE:MODEL is started with a model file or name, asked, and ended; the flags that say how are those of\n" +
	"'engines launch'. Exit code 5 when it cannot be started or ends by itself.\n\n"

// validateLaunchFlags say how the engine of a validation is started. --model is there what it is asked for.
func validateLaunchFlags() []cli.Flag { return launchFlagsBut("model", "reap") }

// validationEngine finds out whether the engine is to be started, and how. Nothing is started yet.
func (p *program) validationEngine(c *cli.Context, v *validating) error {
	cfg, err := p.readConfig(c)
	if err != nil {
		return err
	}
	e, err := v.engineOf(cfg, 0, c.StringSlice("target")[0], func(profile engines.Profile, model string) (launch.Spec, error) {
		o, err := p.launchOptions(c, profile)
		if err != nil {
			return launch.Spec{}, err
		}
		o.Model = model
		return p.launchSpec(c, profile, o)
	})
	if err != nil {
		return err
	}
	if e != nil {
		v.engines = []*suiteEngine{e}
		return nil
	}
	for _, f := range validateLaunchFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			return usagef("--%s goes with an engine that is to be started: --target ENGINE:MODEL", name)
		}
	}
	return nil
}

// open opens the store, starts the engine where that is asked for, and finds out how and for which model it is asked.
func (v *validating) open(ctx context.Context) error {
	if err := v.openStore(); err != nil {
		return err
	}
	u := &v.s.targets[0]
	if v.launched() {
		if !v.s.identify && u.model == "" {
			return usagef("with --no-identify the engine is not asked which model it serves; say --model NAME")
		}
		if err := v.launch(ctx); err != nil {
			return err
		}
	}
	return v.settle(ctx, u.model)
}

// launch starts the engine, waits until it can answer, and finds out what it is.
func (v *validating) launch(ctx context.Context) error {
	e := v.engines[0]
	why, err := e.identify(ctx)
	if err != nil {
		return err
	}
	if e.build == "" {
		e.tell("%s: its build is not known: %s", e.spec.Program, why)
	}
	if err := e.launch(ctx, ""); err != nil {
		return err
	}
	v.s.targets[0].url = e.process.URL()
	labels := map[string]string{}
	maps.Copy(labels, v.s.labels)
	labelLaunch(labels, e.process, v.env.Environ())
	labels["launch"] = e.command() // the port is another one at each start
	v.s.labels = labels
	if !v.s.identify {
		return nil
	}
	found, err := v.discovered(ctx, 0)
	if err != nil {
		return err
	}
	v.found = []discovery{found}
	if v.facts.WeightsID == "" {
		v.facts.WeightsID, err = v.weigh(ctx, 0)
	}
	return err
}

// launched reports whether the engine is started here.
func (v *validating) launched() bool { return len(v.engines) > 0 }

// describeLaunch fills in what was started, and where it computes as far as that shows.
func (v *validating) describeLaunch() {
	if !v.launched() {
		return
	}
	e, tool := v.engines[0], &v.facts.Tool
	tool.Launch, tool.Build, tool.RequestedDevice = e.command(), e.build, v.s.device
	if tool.RequestedDevice == "" {
		tool.RequestedDevice = e.spec.Asked
	}
	if d := e.process.Status().Device; d != nil {
		tool.ObservedDevice = *d
	}
	if len(v.found) > 0 && v.found[0].is.ObservedDevice != nil {
		tool.ObservedDevice = *v.found[0].is.ObservedDevice
	}
}
