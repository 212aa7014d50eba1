package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
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

// launchFlagsBut are the flags that say how an engine is started, without those of some names.
func launchFlagsBut(names ...string) []cli.Flag {
	return slices.DeleteFunc(launchFlags(), func(f cli.Flag) bool { return slices.Contains(names, f.Names()[0]) })
}

// suiteEngine is an engine that a suite starts and stops, as often as it is its turn: a replay.Party.
type suiteEngine struct {
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

// engineOf makes a target that names ENGINE:MODEL one that is started here, as planned; nil for one that runs already.
func (s *suiteSitting) engineOf(cfg config, i int, arg string, plan func(engines.Profile, string) (launch.Spec, error)) (*suiteEngine, error) {
	name, profile, model, ok := launchable(cfg, s.s.bridge.catalog, arg)
	if !ok {
		return nil, nil
	}
	spec, err := plan(profile, model)
	if err != nil {
		return nil, err
	}
	u := &s.s.targets[i]
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
	return &suiteEngine{spec: spec, tell: func(format string, args ...any) {
		if !s.s.quiet && !s.s.json {
			note(s.env.Stderr, format, args...)
		}
	}}, nil
}

// discovered finds out what an engine is that is up.
func (s *suiteSitting) discovered(ctx context.Context, i int) (discovery, error) {
	e := s.engines[i]
	if e != nil {
		s.s.targets[i].url = e.process.URL()
	}
	one := replaying{env: s.env, s: s.s}
	one.s.targets = s.s.targets[i : i+1]
	if e != nil {
		one.s.device = cmp.Or(one.s.device, e.spec.Asked)
	}
	if err := one.discover(ctx); err != nil {
		return discovery{}, err
	}
	if e != nil {
		one.found[0].is = withProcess(one.found[0].is, e.process)
	}
	return one.found[0], nil
}

// weigh is the digest of the model file that an engine is started with; "" where it tells its weights itself, runs already,
// or has no file of a form that is known.
func (s *suiteSitting) weigh(ctx context.Context, i int) (string, error) {
	e := s.engines[i]
	if e == nil || i < len(s.found) && s.found[i].is.WeightsDigest != nil {
		return "", nil
	}
	if _, err := weights.ReadGGUF(e.spec.Model); err != nil {
		return "", nil // a name, or a file of another form: unknown, as for an engine that runs
	}
	w := weigher{known: s.store, warn: func(format string, args ...any) { note(s.env.Stderr, format, args...) }}
	digest, err := w.digest(ctx, e.spec.Model)
	if err != nil {
		return "", fmt.Errorf("read weights: %w", err)
	}
	return digest, nil
}

// down ends the engines that are up, after what was sent came to its end or to an error. It is that error, but where an
// engine has ended by itself: then nothing else is to be said.
func (s *suiteSitting) down(sent error) error {
	for _, e := range s.engines {
		if e == nil {
			continue
		}
		switch err := e.Stop(context.Background()); {
		case err == nil:
		case sent == nil, errors.Is(sent, exchange.ErrUnreachable):
			sent = err
		default:
			note(s.env.Stderr, "%v", err)
		}
	}
	return sent
}

// Close ends the engines that are up, and frees what the suite holds.
func (s *suiteSitting) Close() {
	if err := s.down(nil); err != nil {
		note(s.env.Stderr, "%v", err)
	}
	s.replaying.Close()
}

// identify reads what exactly is to be started. Where the build is not known, why says so.
func (e *suiteEngine) identify(ctx context.Context) (why string, err error) {
	id, err := launch.IdentityOf(ctx, e.spec)
	if err != nil {
		return "", err
	}
	e.build = id.Digest
	return id.Why, nil
}

// launch starts the engine and waits until it can answer.
func (e *suiteEngine) launch(ctx context.Context, variant string) error {
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
func (e *suiteEngine) Start(ctx context.Context, variant string) (replay.Target, error) {
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
func (e *suiteEngine) Stop(ctx context.Context) error {
	proc := e.process
	if proc == nil {
		return nil
	}
	var errs []error
	if e.upstream != nil {
		errs = append(errs, e.upstream.Close())
	}
	e.process, e.upstream = nil, nil
	awaitEnd(ctx, proc)
	select {
	case <-proc.Done():
		errs = append(errs, proc.Wait(context.Background()))
	default:
		errs = append(errs, proc.Stop(ctx))
	}
	return errors.Join(errs...)
}

// awaitEnd waits a moment for the end of an engine that listens no more: it is ending by itself, which may not have been
// seen yet, and is not to be taken for one that was asked to end.
func awaitEnd(ctx context.Context, proc *launch.Process) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(proc.URL(), "http://"))
	if err == nil {
		_ = c.Close() // it listens
		return
	}
	select {
	case <-proc.Done():
	case <-ctx.Done():
	}
}

// command is how the engine is started, with a port that is not chosen yet; "" for one that somebody else runs.
func (e *suiteEngine) command() string {
	if e == nil {
		return ""
	}
	return strings.Join(redact.Args(slices.Concat(e.spec.Env, []string{e.spec.Program}, e.spec.Args)), " ")
}
