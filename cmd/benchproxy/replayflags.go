package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/replay"
)

// replayFlags are the flags of replay.
func replayFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "target", Usage: "`[NAME=]URL` of an engine, or a target of the config; several are sent to in random order"},
		configFlag(), storeFlag(),
		&cli.StringFlag{Name: "from", Usage: "`DIR` of the store that has RUN, where it is not --store; one that a running proxy holds is read through it"},
		&cli.StringFlag{Name: "run", Usage: "`NAME` of the new run; with several targets theirs is added"},
		&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` to keep with the run; repeatable"},

		&cli.IntFlag{Name: "concurrency", Usage: "`N` requests at a time (default: 1); with --rate or --timing the most at once (default: 4096)"},
		&cli.IntFlag{Name: "waves", Usage: "`N` requests at once, and the next N when all have ended"},
		&cli.Float64Flag{Name: "rate", Usage: "`R` conversations a second, all targets together"},
		&cli.StringFlag{Name: "arrivals", Value: replay.ArrivalsConstant, Usage: "`HOW` a rate arrives: constant or poisson"},
		&cli.StringFlag{Name: "timing", Usage: "`HOW` recorded instants are used: recorded"},
		&cli.Float64Flag{Name: "speed", Value: 1, Usage: "`X` times the recorded pace; 0 is all at once"},
		&cli.DurationFlag{Name: "max-gap", Usage: "longest `DURATION` between two sends at recorded instants"},
		&cli.DurationFlag{Name: "max-lag", Value: replay.DefaultMaxLag, Usage: "a p99 of the lateness above this `DURATION` makes the run invalid"},
		sloFlag(),
		&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`N` of arrivals and of the order of targets"},

		&cli.IntFlag{Name: "repeats", Value: 1, Usage: "send the workload `N` times"},
		&cli.BoolFlag{Name: "keep-seed", Usage: "repeats of requests that sample keep their seed; without it each repeat has a recorded one of its own"},
		&cli.IntFlag{Name: "warmup", Usage: "`N` requests in the form of the first one before the measuring begins; they are in no figure"},
		&cli.BoolFlag{Name: "nonce", Usage: "put a text of its own before each prompt, against caches of prefixes"},
		&cli.IntFlag{Name: "max-requests", Usage: "send at most `N` requests to each target"},
		&cli.DurationFlag{Name: "duration", Usage: "send nothing later than this `DURATION` after the start"},
		&cli.IntFlag{Name: "retries", Value: replay.DefaultRetries, Usage: "`N` more attempts where the engine answers 503 and says when to come back"},

		&cli.StringFlag{Name: "model", Usage: "`NAME` of the model to ask for instead"},
		&cli.StringSliceFlag{Name: "header", Usage: "`\"NAME: VALUE\"` to send instead; repeatable"},
		&cli.StringSliceFlag{Name: "set", Usage: "`PATH=JSON` to set in each body, like temperature=0 or messages[0].role='\"user\"'; repeatable"},
		&cli.StringSliceFlag{Name: "unset", Usage: "`PATH` to remove from each body; repeatable"},
		&cli.StringFlag{Name: "session-header", Usage: "`NAME` of a header that gets one value a conversation, whatever the targets of the config say"},
		&cli.BoolFlag{Name: "live-history", Usage: "later turns repeat what the engine answered now, not what was recorded"},

		&cli.StringSliceFlag{Name: "only-model", Usage: "only requests for this recorded `MODEL`; repeatable"},
		&cli.StringSliceFlag{Name: "only-path", Usage: "only requests to this `PATH`, * for any text without a slash; repeatable"},
		&cli.StringSliceFlag{Name: "only-id", Usage: "only the recorded exchange of this `ID`; repeatable"},
		&cli.StringFlag{Name: "since", Usage: "only what was recorded at this `TIME` or later, as 2026-01-31T12:00:00Z"},
		&cli.StringFlag{Name: "input", Usage: "`FORMAT` of a workload file, where it cannot be told from its beginning: " + strings.Join(inFormats(), ", ")},
		&cli.StringFlag{Name: "unit", Usage: "`UNIT` of a trace's instants: ms or s"},

		&cli.StringFlag{Name: "durability", Value: "async", Usage: "`WHEN` a record counts as stored: async survives a killed process, sync a loss of power too"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
		maxBodyFlag(), budgetFlag(),
		jsonFlag(),
	}, append(bridgeFlags(), engineFlags()...)...)
}

func inFormats() []string {
	var out []string
	for _, f := range replay.InFormats() {
		out = append(out, string(f))
	}
	return out
}

// replaySettings are what replay was asked for.
type replaySettings struct {
	store       string
	openFrom    func() (reading, error) // the store that has the run; nil for the one that takes the new run
	sync        bool
	name        string
	labels      map[string]string
	plan        replay.PlanOptions
	objectives  []compare.Objective // of goodput
	filter      replay.Filter
	file        replay.FileOptions
	targets     []upstream
	session     proxy.SessionOptions
	upstream    proxy.UpstreamOptions // without name and URL
	device      string
	identify    bool
	bridge      bridgeSettings
	json, quiet bool
}

func (p *program) replaySettings(c *cli.Context) (s replaySettings, err error) {
	s = replaySettings{name: c.String("run"), device: c.String("device"), identify: !c.Bool("no-identify"), json: c.Bool("json"), quiet: c.Bool("quiet")}
	if exchange.ValidID(s.name) {
		return s, usagef("--run %q has the form of an id; choose another name", s.name)
	}
	for _, step := range []func(*cli.Context, *replaySettings) error{p.replayTargets, replayPlan, replayChanges, replayInput, p.replayStore, p.replayBridge} {
		if err := step(c, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// replayTargets reads what is sent to, and how it is reached.
func (p *program) replayTargets(c *cli.Context, s *replaySettings) error {
	if err := checkStated(c); err != nil {
		return err
	}
	cfg, err := p.readConfig(c)
	if err != nil {
		return err
	}
	key, err := p.secret(c, "upstream-key-file", "BENCHPROXY_UPSTREAM_KEY")
	if err != nil {
		return err
	}
	var credentials func() []exchange.Header
	if key != "" {
		credentials = func() []exchange.Header { return []exchange.Header{{Name: "Authorization", Value: "Bearer " + key}} }
	}
	for i, arg := range c.StringSlice("target") {
		u, err := p.named(cfg, arg)
		if err != nil {
			return err
		}
		if u.name == "" {
			u.name = "engine"
			if i > 0 {
				u.name = fmt.Sprintf("engine%d", i+1)
			}
		}
		if slices.Contains(s.plan.Targets, u.name) {
			return usagef("two targets are called %q", u.name)
		}
		u.inherit(credentials, c.String("engine-label"))
		s.targets, s.plan.Targets = append(s.targets, u), append(s.plan.Targets, u.name)
		s.plan.TargetSessions = append(s.plan.TargetSessions, u.session)
	}
	if len(s.targets) == 0 {
		return usagef("no engine is named; say --target URL")
	}
	s.plan.SessionHeader = c.String("session-header")
	if s.plan.SessionHeader != "" && !headerName(s.plan.SessionHeader) {
		return usagef("--session-header %q is not the name of a header", s.plan.SessionHeader)
	}
	if _, err = dialectFor(c.String("format"), nil); err != nil {
		return err
	}
	if _, s.upstream.TLS, err = tlsConfigs(c); err != nil {
		return err
	}
	s.upstream.ConnectTimeout, s.upstream.HeaderTimeout = c.Duration("connect-timeout"), c.Duration("header-timeout")
	s.upstream.IdleTimeout = c.Duration("idle-timeout")
	s.session.MaxBody, s.session.Budget, err = bounds(c)
	return err
}

func headerName(name string) bool { return name != "" && !strings.ContainsAny(name, " \t\r\n:") }

// replayLoop reads what decides when a request is sent.
func replayLoop(c *cli.Context) (replay.Loop, error) {
	loop, ways := replay.LoopClosed, 0
	for _, way := range []struct {
		flag string
		loop replay.Loop
	}{{"rate", replay.LoopRate}, {"timing", replay.LoopRecorded}, {"waves", replay.LoopWaves}} {
		if c.IsSet(way.flag) {
			loop = way.loop
			ways++
		}
	}
	switch {
	case ways > 1 || loop == replay.LoopWaves && c.IsSet("concurrency"):
		return "", usagef("--rate, --timing and --waves exclude each other, and --waves says how many run")
	case c.IsSet("timing") && c.String("timing") != "recorded":
		return "", usagef("--timing is recorded, not %q", c.String("timing"))
	case loop != replay.LoopRecorded && (c.IsSet("speed") || c.IsSet("max-gap")):
		return "", usagef("--speed and --max-gap go with --timing recorded")
	case loop != replay.LoopRate && c.IsSet("arrivals"):
		return "", usagef("--arrivals goes with --rate")
	}
	return loop, nil
}

// replayPlan reads when requests are sent, and how often.
func replayPlan(c *cli.Context, s *replaySettings) (err error) {
	o := &s.plan
	if o.Loop, err = replayLoop(c); err != nil {
		return err
	}
	o.Concurrency = c.Int("concurrency")
	for _, name := range []string{"concurrency", "waves", "repeats", "max-requests"} {
		if c.IsSet(name) && c.Int(name) < 1 {
			return usagef("--%s %d is not a number from 1", name, c.Int(name))
		}
	}
	for _, f := range c.Command.Flags {
		if d, ok := f.(*cli.DurationFlag); ok && c.Duration(d.Name) < 0 {
			return usagef("--%s %s is below 0", d.Name, c.Duration(d.Name))
		}
	}
	if o.Loop == replay.LoopWaves {
		o.Concurrency = c.Int("waves")
	}
	o.Rate, o.Arrivals, o.Seed = c.Float64("rate"), c.String("arrivals"), c.Uint64("seed")
	o.Speed, o.MaxGap, o.MaxLag = c.Float64("speed"), c.Duration("max-gap"), c.Duration("max-lag")
	if s.objectives, err = objectives(c); err != nil {
		return err
	}
	o.KeepSeed = c.Bool("keep-seed")
	o.Repeats, o.Warmup, o.Nonce = c.Int("repeats"), c.Int("warmup"), c.Bool("nonce")
	o.MaxRequests, o.Duration, o.LiveHistory = c.Int("max-requests"), c.Duration("duration"), c.Bool("live-history")
	if o.Retries = c.Int("retries"); o.Retries == 0 {
		o.Retries = -1
	}
	return nil
}

// replayChanges reads what is changed of each request.
func replayChanges(c *cli.Context, s *replaySettings) error {
	ch := &s.plan.Changes
	ch.Model = c.String("model")
	var err error
	if ch.Headers, err = headerFlags(c); err != nil {
		return err
	}
	for _, text := range c.StringSlice("set") {
		e, err := replay.ParseSet(text)
		if err != nil {
			return usagef("--set: %v", err)
		}
		ch.Edits = append(ch.Edits, e)
	}
	for _, text := range c.StringSlice("unset") {
		e, err := replay.ParseUnset(text)
		if err != nil {
			return usagef("--unset: %v", err)
		}
		ch.Edits = append(ch.Edits, e)
	}
	return nil
}

// replayInput reads what is taken of a run or file.
func replayInput(c *cli.Context, s *replaySettings) error {
	s.filter = replay.Filter{Models: c.StringSlice("only-model"), Paths: c.StringSlice("only-path")}
	for _, id := range c.StringSlice("only-id") {
		s.filter.IDs = append(s.filter.IDs, exchange.ID(id))
	}
	if v := c.String("since"); v != "" {
		t, err := time.Parse(time.RFC3339, v)
		if err != nil {
			return usagef("--since %q is not a time like 2026-01-31T12:00:00Z", v)
		}
		s.filter.Since = t
	}
	if f := c.String("input"); f != "" && !slices.Contains(inFormats(), f) {
		return usagef("there is no format %q; there is %s", f, strings.Join(inFormats(), ", "))
	}
	s.file = replay.FileOptions{Format: replay.Format(c.String("input")), Trace: replay.TraceOptions{Unit: c.String("unit"), Model: c.String("model")}}
	return s.filter.Validate()
}

func (p *program) replayStore(c *cli.Context, s *replaySettings) (err error) {
	switch d := c.String("durability"); d {
	case "async":
	case "sync":
		s.sync = true
	default:
		return usagef("--durability is async or sync, not %q", d)
	}
	if s.labels, err = labels(c); err != nil {
		return err
	}
	if s.store, err = p.storeDir(c); err != nil {
		return err
	}
	s.openFrom, err = p.fromAnother(c, s.store)
	return err
}

// fromAnother opens the store that --from names, nil where that is none or the one of the command itself.
func (p *program) fromAnother(c *cli.Context, store string) (open func() (reading, error), err error) {
	dir := c.String("from")
	if c.IsSet("from") && dir == "" {
		return nil, usagef("--from names no directory")
	}
	if dir == "" || sameDir(dir, store) {
		return nil, nil
	}
	return func() (reading, error) { return p.openReadingIn(c, dir) }, nil
}

// sameDir reports whether two names are of one directory.
func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// headerFlags are the --header flags.
func headerFlags(c *cli.Context) (hs []exchange.Header, err error) {
	for _, h := range c.StringSlice("header") {
		name, value, ok := strings.Cut(h, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name+value, "\r\n") || strings.ContainsAny(name, " \t") {
			return nil, usagef("--header %q is not \"NAME: VALUE\"", name)
		}
		hs = append(hs, exchange.Header{Name: name, Value: value})
	}
	return hs, nil
}
