package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/bench"
	"github.com/benchproxy/benchproxy/replay/matrix"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// Open makes the server of a group answer, and begins the run of its exchanges.
func (b *benching) Open(ctx context.Context, g *matrix.Group) (bench.Sitting, error) {
	s := &benchServer{b: b, group: g}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.end())
	}
	b.up = append(b.up, s)
	if len(b.up) > 1 {
		for _, other := range b.up {
			other.beside = true
		}
	}
	return s, nil
}

// benchServer is the server of a group while it is up, with the run of its exchanges.
type benchServer struct {
	suiteSitting
	b       *benching
	group   *matrix.Group
	server  launch.Server
	process *launch.Process // nil for one that is not ours
	holds   bool            // a model for us that is to be unloaded, in an engine that is not ours
	memory  *launch.Sampler
	stop    context.CancelFunc // of the sampler
	wg      sync.WaitGroup
	loadMS  *float64
	beside  bool // another server of this matrix was up at the same time
	facts   bench.Facts
}

// open has the server started or reached, finds out how it is asked, and begins its run.
func (s *benchServer) open(ctx context.Context) error {
	profile, err := s.b.profileOf(s.group)
	if err != nil {
		return err
	}
	up, err := s.b.reach(s.group)
	if err != nil {
		return err
	}
	if s.group.Launch.Transport == matrix.TransportServer {
		err = s.start(ctx)
	} else {
		err = s.connect(ctx, profile, &up)
	}
	if err != nil {
		return err
	}
	up.url = s.server.URL()
	set := s.b.s
	set.targets, set.device = []upstream{up}, s.group.Device
	if set.device == "" && s.process != nil {
		set.device = s.process.Spec().Asked
	}
	set.name = s.runName()
	set.labels = maps.Clone(set.labels)
	if set.labels == nil {
		set.labels = map[string]string{}
	}
	set.labels["plan"], set.labels["group"] = s.b.plan.Hash, s.group.Name
	if s.process != nil {
		labelLaunch(set.labels, s.process, s.b.Environ())
	}
	s.suiteSitting = suiteSitting{replaying: replaying{env: s.b.env, s: set, store: s.b.store, telling: s.b.telling.naming(!s.b.c.Bool("quiet")),
		recorded: map[exchange.ID]exchange.SpanContext{}}, count: replay.NewSuiteTally(), machine: &s.b.machine}
	if err := s.settle(ctx, s.group.Launch.Model.Name); err != nil {
		return err
	}
	if s.process != nil && len(s.found) > 0 {
		s.found[0].is = (&launched{process: s.process}).observe(s.found[0].is)
	}
	if err := s.server.Load(ctx, s.model); err != nil {
		return err
	}
	s.holds = s.process == nil && holdsOnRequest(profile)
	planned := exchange.Replay{Workload: s.b.plan.Hash, Plan: s.b.plan.Hash, Source: "benchmark", Driver: string(replay.LoopWaves)}
	planned.Settings.Targets = 1
	if err := s.beginRun("bench", planned); err != nil {
		return err
	}
	return s.know(ctx)
}

// runName is the name of the group's run.
func (s *benchServer) runName() string {
	return cmp.Or(s.b.s.name, "bench") + "-" + s.group.Name
}

func (b *benching) profileOf(g *matrix.Group) (engines.Profile, error) {
	p, ok := b.config.Catalog.Lookup(g.Launch.Profile)
	if !ok {
		return p, fmt.Errorf("there is no profile of engine %q", g.Launch.Profile)
	}
	return p, nil
}

// reach is how the server of a group is spoken to.
func (b *benching) reach(g *matrix.Group) (upstream, error) {
	a := g.Launch.Access
	return b.upstreamOf(g.Engine, target{URL: g.Launch.URL, Engine: g.Launch.Profile, Dialect: a.Dialect, Headers: a.Headers, KeyEnv: a.KeyEnv, KeyFile: a.KeyFile})
}

// connect waits for a server that somebody else runs.
func (s *benchServer) connect(ctx context.Context, profile engines.Profile, up *upstream) error {
	o := launch.ConnectOptions{Engine: profile, URL: up.url}
	if profile.Daemon != nil && up.url == "" {
		d, err := s.b.findDaemon(profile)
		if err != nil {
			return &bench.NotHere{Skip: matrix.Unreachable("the file of its daemon", err)}
		}
		o.Daemon = d
	}
	if up.credentials != nil {
		o.Headers = up.credentials()
	}
	if t := s.b.c.Duration("ready-timeout"); t > 0 {
		o.Times.Ready = t
	} else {
		o.Times.Ready = connectTime
	}
	s.server = launch.Connect(o)
	if err := s.server.WaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &bench.NotHere{Skip: matrix.Unreachable(up.url, err)}
	}
	return nil
}

// connectTime is how long a server that runs already may take to say that it is ready.
const connectTime = 5 * time.Second

// start launches the server and waits until it can answer.
func (s *benchServer) start(ctx context.Context) error {
	spec, err := s.b.spec(s.group)
	if errors.Is(err, launch.ErrUnsupported) {
		return &bench.NotHere{Skip: &matrix.Skip{Kind: matrix.SkipNoMapping, Reason: err.Error()}}
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(spec.LogFile), 0o755)
	}
	if err != nil {
		return err
	}
	if len(s.b.up) > 0 {
		spec.Group = "" // the first one of those that share the devices holds them for all
	}
	s.memory = launch.NewSampler(launch.MemoryOptions{Held: len(s.b.machine.Engines) > 0 || len(s.b.up) > 0})
	s.memory.Baseline(ctx)
	began := clock.Now()
	proc, err := launch.Start(ctx, spec)
	if err != nil {
		return err
	}
	s.process, s.server = proc, proc
	var sampling context.Context
	sampling, s.stop = context.WithCancel(context.Background())
	s.wg.Go(func() { s.memory.Run(sampling, proc) })
	if err := proc.WaitReady(ctx); err != nil {
		return err
	}
	ms := float64(clock.Since(began)) / float64(time.Millisecond)
	s.loadMS = &ms
	return nil
}

// deviceGroup names what an engine needs alone: the devices of its backend. Servers that the config says fit together
// share them.
func deviceGroup(g *matrix.Group) string {
	if len(g.Launch.Devices) > 0 {
		return "devices " + strings.Join(g.Launch.Devices, ",")
	}
	return ""
}

// know fills in what is known of the server.
func (s *benchServer) know(ctx context.Context) error {
	l := &s.group.Launch
	f := &s.facts
	f.Run, f.Model, f.Spelling, f.Changes, f.Session = s.target.writer.Run().ID, s.model, s.spelling(), s.changes(), s.session
	f.Salt, f.ToolUse = string(f.Run), s.native()
	if s.process == nil { // it may have answered the same in an earlier sitting
		f.Nonce = s.b.salt
	}
	f.Identity = identity(l.Profile)
	f.LoadMS, f.ObservedDevice, f.Busy, f.Crowded = s.loadMS, "unknown", len(s.b.machine.Busy) > 0, slices.Contains(s.b.crowded, s.group.Name)
	if len(s.found) > 0 && s.found[0].err == nil {
		s.deployed(&s.found[0].is)
		listed := s.found[0].is
		listed.Model = nil // it may be the one that was asked for
		if f.Unlisted = !engines.Serves(&listed, s.model); f.Unlisted {
			note(s.b.Stderr, "%s lists %s, and is asked for %s: its records are flagged %s", s.group.Name, printable(strings.Join(listed.Models, ", ")), printable(s.model), bench.FlagUnlisted)
		}
	}
	if f.Window == nil && l.Window > 0 {
		f.Window = &l.Window
	}
	if f.Slots == nil && l.Slots > 0 && s.process != nil {
		f.Slots = &l.Slots
	}
	if s.process != nil {
		spec := s.process.Spec()
		is := s.process.Identity()
		f.Launch, f.Build, f.ModelFiles = is.Digest, is.Build, filesDigest(s.group)
		f.Command = []string{s.process.Command()}
		f.Log, _ = s.b.logPath(s.group)
		f.Environment = matrix.MaskedNames(l.Registry.Env)
		f.RequestedDevice = cmp.Or(f.RequestedDevice, spec.Asked)
		if d := s.process.Status().Device; d != nil && (f.ObservedDevice == "unknown" || f.ObservedDevice == *d) {
			f.ObservedDevice = *d
			f.CPUFallback = engines.CPUFallback(&f.RequestedDevice, d)
		}
	}
	if f.Weights == "" {
		f.Weights = filepath.Base(cmp.Or(l.Model.Weights, l.Model.Name, s.model))
	}
	var err error
	f.Materials, err = s.b.materials(ctx, f.Window)
	return err
}

// deployed takes what was read of the engine.
func (s *benchServer) deployed(d *exchange.Deployment) {
	f := &s.facts
	f.Identity = d.Identity
	if d.Slots != nil {
		n := int(*d.Slots)
		f.Slots = &n
	}
	if d.Window != nil {
		n := int(*d.Window)
		f.Window = &n
	}
	if d.RequestedDevice != nil {
		f.RequestedDevice = *d.RequestedDevice
	}
	if d.ObservedDevice != nil {
		f.ObservedDevice, f.CPUFallback = *d.ObservedDevice, d.CPUFallback
	}
	if d.WeightsDigest != nil {
		f.Weights = *d.WeightsDigest
	}
}

// materials are what the scenarios are made of.
func (b *benching) materials(ctx context.Context, window *int) (m scenario.Materials, err error) {
	if window != nil {
		m.Window = *window
	}
	if m.Own, err = ownScenarios(b.config.Own); err != nil {
		return m, err
	}
	p := b.config.Paths
	return replay.MediaFiles{Image: p.Image, Audio: p.Audio, Video: p.Video}.Load(ctx, m), nil
}

// Facts are what is known of the server.
func (s *benchServer) Facts() *bench.Facts { return &s.facts }

// Target is where requests are sent.
func (s *benchServer) Target() replay.Target {
	return replay.Target{Session: s.target.session, Upstream: s.target.upstream}
}

// Tally is given every exchange.
func (s *benchServer) Tally() *replay.Tally { return s.count }

// goneTime is how long the end of a process may take to be noticed after its answers broke off.
const goneTime = 2 * time.Second

// Gone is why the server has ended.
func (s *benchServer) Gone(suspicion bool) error {
	if s.process == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), goneTime)
	defer cancel()
	if !suspicion {
		cancel()
	}
	select {
	case <-s.process.Done():
		if err := s.process.Wait(context.Background()); err != nil {
			return err
		}
		return errors.New("the engine ended by itself")
	case <-ctx.Done():
		return nil
	}
}

// Memory is what the server took so far. What GPUs hold counts all that is on them: beside another server of this matrix
// only what the driver tells of its own processes is its.
func (s *benchServer) Memory() *matrix.Memory {
	if s.memory == nil {
		return nil
	}
	m := s.memory.Memory()
	out := &matrix.Memory{HostPeak: m.HostPeak, HostGrowth: m.HostPeak, GPUPeak: m.GPUPeak, GPUGrowth: m.GPUModel}
	switch {
	case s.beside:
		out.GPUPeak, out.GPUGrowth, out.Why = m.GPUOwnPeak, nil, "another engine of the matrix was up at the same time"
	case m.GPUPeak == nil:
		out.Why = "no tool tells the memory of a GPU"
	case m.GPUModel == nil:
		out.Why = "the GPUs held something when the engine was started"
	}
	return out
}

// Close ends the run and the server.
func (s *benchServer) Close(came func() exchange.Replay) error {
	s.target.writer.Drain(context.Background())
	s.target.writer.Replay(came())
	run, err := s.target.writer.Close(context.Background())
	s.endTrace(s.target, &run)
	return errors.Join(err, s.end())
}

// end ends what was begun of the server. It is for once.
func (s *benchServer) end() (err error) {
	s.b.up = slices.DeleteFunc(s.b.up, func(other *benchServer) bool { return other == s })
	if s.target != nil {
		_ = s.target.upstream.Close() // nothing runs on it
		_, _ = s.target.writer.Close(context.Background())
	}
	if s.holds {
		s.b.freeModel(s.server, s.model)
	}
	if s.server != nil {
		err = s.server.Stop(s.b.grace.ctx)
	}
	if s.stop != nil {
		s.stop()
	}
	s.wg.Wait()
	return err
}

// installed is what the engines list of which the config asks for all installed models.
func (b *benching) installed(ctx context.Context) (map[string][]matrix.Listed, error) {
	out := map[string][]matrix.Listed{}
	if !slices.ContainsFunc(b.config.Defaults.Models, func(a matrix.Address) bool { return a.Model == matrix.Installed }) {
		return out, nil
	}
	for i := range b.config.Engines {
		e := &b.config.Engines[i]
		if e.URL == "" || !b.asksInstalled(e.ID) {
			continue
		}
		up, err := b.upstreamOf(e.ID, target{URL: e.URL, Engine: e.Profile.ID, Dialect: e.Access.Dialect, Headers: e.Access.Headers, KeyEnv: e.Access.KeyEnv, KeyFile: e.Access.KeyFile})
		if err != nil {
			return nil, err
		}
		d := b.identify(ctx, up)
		if d.err != nil {
			return nil, fmt.Errorf("list models of %s: %w", e.ID, d.err)
		}
		for _, id := range d.is.Models {
			out[e.ID] = append(out[e.ID], matrix.Listed{ID: id})
		}
	}
	return out, nil
}

// asksInstalled reports whether the installed models of an engine are asked for.
func (b *benching) asksInstalled(engine string) bool {
	return slices.ContainsFunc(b.config.Defaults.Models, func(a matrix.Address) bool {
		return a.Model == matrix.Installed && (a.Engine == engine || a.Engine == "" && slices.Contains(b.config.Defaults.Engines, engine))
	})
}
