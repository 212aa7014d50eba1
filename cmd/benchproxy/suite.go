package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/bridge"
)

// suiteFlags are the flags of commands that ask an engine the built-in scenarios.
func suiteFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "target", Usage: "`[NAME=]URL` of the engine, a target of the config, or ENGINE:MODEL to start"},
		configFlag(), storeFlag(),
		&cli.StringFlag{Name: "run", Usage: "`NAME` of the run that keeps the exchanges"},
		&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` to keep with the run; repeatable"},
		&cli.StringFlag{Name: "model", Usage: "`NAME` of the model to ask for (default: the one the engine serves)"},
		&cli.StringSliceFlag{Name: "header", Usage: "`\"NAME: VALUE\"` to send with every request; repeatable"},
		&cli.StringFlag{Name: "session-header", Usage: "`NAME` of a header that gets one value a conversation, whatever the target's config says"},
		&cli.IntFlag{Name: "warmup", Value: 1, Usage: "`N` requests before the first wave; they are in no case"},
		&cli.StringFlag{Name: "durability", Value: "async", Usage: "`WHEN` a record counts as stored: async survives a killed process, sync a loss of power too"},
		maxBodyFlag(), budgetFlag(),
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress"},
		jsonFlag(),
	}, append(bridgeFlags(), engineFlags()...)...)
}

// suiteSettings reads them. What a replay would plan stays empty.
func (p *program) suiteSettings(c *cli.Context) (s replaySettings, err error) {
	s = replaySettings{name: c.String("run"), device: c.String("device"), identify: !c.Bool("no-identify"), json: c.Bool("json"), quiet: c.Bool("quiet")}
	if exchange.ValidID(s.name) {
		return s, usagef("--run %q has the form of an id; choose another name", s.name)
	}
	if n := c.Int("warmup"); n < 0 || n > 100 {
		return s, usagef("--warmup %d is not a number from 0 to 100", n)
	}
	for _, step := range []func(*cli.Context, *replaySettings) error{p.replayTargets, p.replayStore, p.replayBridge} {
		if err := step(c, &s); err != nil {
			return s, err
		}
	}
	if len(s.targets) != 1 {
		return s, usagef("one engine is judged at a time, and %d targets are named", len(s.targets))
	}
	s.plan.Changes.Headers, err = headerFlags(c)
	return s, err
}

// ollamaID is the profile of Ollama, and the value of --to for its own API.
const ollamaID = "ollama"

// suiteSitting is a suite at one target with all that stands around it.
type suiteSitting struct {
	replaying
	model   string
	session string // header that carries one value a conversation; "" = none
	native  bool   // an engine whose own API says more of tools than the one it shares is spoken to in its own
	suite   *replay.Suite
	count   *replay.Tally     // of the exchanges; nil is the suite's
	machine *exchange.Machine // as it was before; nil where nobody looked
	target  *replayTarget
	engines []*suiteEngine // that are started here, by target; nil for those that run already
}

// openStore opens what keeps the exchanges, and what tells of them.
func (s *suiteSitting) openStore() error {
	err := s.openTelling()
	if err != nil {
		return err
	}
	s.store, err = recorder.Open(s.s.store, recorder.Options{Sync: s.s.sync, Harness: version(), Host: thisHost().Fingerprint(),
		Log: slog.New(slog.NewTextHandler(s.env.Stderr, nil))})
	return err
}

// settle finds out how the engine is asked, and for which model.
func (s *suiteSitting) settle(ctx context.Context, model string) error {
	s.s.targets[0].model = model
	if err := s.discover(ctx); err != nil {
		return err
	}
	s.model = model
	if len(s.found) > 0 && s.model == "" {
		if errors.Is(s.found[0].err, exchange.ErrUnreachable) {
			return s.found[0].err
		}
		if d := s.found[0].is; d.Model != nil {
			s.model = *d.Model
		}
	}
	if s.model == "" {
		return usagef("the engine does not tell which model it serves; say --model NAME")
	}
	u := &s.s.targets[0]
	s.session = u.session
	if name := s.s.plan.SessionHeader; name != "" {
		s.session = name
	}
	if s.native && s.hasOwnAPI() {
		s.s.bridge.to = ollamaID
	}
	e := s.s.bridge.endpoint(*u, s.profile(0))
	translated, heard := e.Outcome(map[wire.Dialect]int{wire.DialectChat: 1})
	u.credentials = credentialsFor(u.credentials, heard)
	if translated > 0 {
		s.s.plan.Changes.Bridges = []bridge.Endpoint{e}
	}
	return nil
}

// dialect is the one that the engine is asked in.
func (s *suiteSitting) dialect() wire.Dialect {
	if b := s.s.plan.Changes.Bridges; len(b) > 0 {
		return b[0].Dialect
	}
	return wire.DialectChat
}

// hasOwnAPI reports whether the engine's own API says more of tools than the one it shares, and nobody said in which one it is
// spoken to.
func (s *suiteSitting) hasOwnAPI() bool {
	return s.s.bridge.to == "" && s.s.targets[0].dialect == "" && s.profile(0).ID == ollamaID
}

// translatedSpelling is in a form that the translation of requests knows.
func translatedSpelling() replay.Spelling {
	return replay.Spelling{ThinkingOn: json.RawMessage(`{"chat_template_kwargs":{"enable_thinking":true}}`)}
}

// spelling is how the engine spells what the scenarios leave open.
func (s *suiteSitting) spelling() replay.Spelling {
	if len(s.s.plan.Changes.Bridges) > 0 {
		return translatedSpelling()
	}
	q := s.profile(0).Requests
	sp := replay.Spelling{Timings: q.Timings}
	if t := q.Thinking; t != nil {
		sp.ThinkingOn, sp.ThinkingOff = t.On, t.Off
	}
	return sp
}

// begin plans a suite and begins its run. Nothing is sent.
func (s *suiteSitting) begin(o replay.SuiteOptions) (err error) {
	o.Options.Model = s.model
	o.Spelling, o.Changes, o.Session, o.Salt = s.spelling(), s.s.plan.Changes, s.session, string(exchange.NewID(clock.Now()))
	if s.suite, err = replay.NewSuite(o); err != nil {
		return err
	}
	return s.beginRun("gate", s.suite.Planned())
}

// beginRun begins the run of what is sent.
func (s *suiteSitting) beginRun(mode string, planned exchange.Replay) error {
	u := s.s.targets[0]
	up := s.s.upstream
	up.Name, up.URL, up.Credentials = u.name, u.url, u.credentials
	engine, err := proxy.NewUpstream(up)
	if err != nil {
		return fmt.Errorf("--target: %w", err)
	}
	t := &replayTarget{up: u, upstream: engine, failures: &failureNotes{out: s.env.Stderr}, total: measure.Totals{Limit: sampleLimit}}
	t.trace = s.telling.tracing.NewRun()
	s.target, s.targets = t, []*replayTarget{t}
	run := newRun(mode, s.s.name, []upstream{u})
	run.Labels, run.Identity = s.s.labels, identity(u.label)
	run.Replay, run.Machine, run.MadeBy = &planned, s.machine, redact.Args(s.env.Args)
	t.writer, err = s.store.NewWriter(run, recorder.WriterOptions{Derive: s.derive,
		OnStored:  func(row exchange.Summary) { s.stored(t, row) },
		OnDropped: func(id exchange.ID, _ recorder.DropReason) { s.telling.tracing.Dropped(id) },
	})
	if err != nil {
		return err
	}
	so := s.s.session
	so.Dialect = s.answersOf(0)
	so.Run, so.Mode, so.Harness, so.Sink, so.Identity = run.ID, run.Mode, version(), s.telling.sink(t.writer), run.Identity
	so.Tracer = tracerOf(t.trace)
	t.session = proxy.NewSession(so)
	return s.identify(context.Background())
}

// derive makes the row of an exchange and counts it.
func (s *suiteSitting) derive(x *exchange.Exchange) exchange.Summary {
	a := measure.Analyze(x)
	s.telling.measured(x, a)
	tally := s.count
	if tally == nil {
		tally = s.suite.Tally()
	}
	tally.Add(x, a)
	word := s.target.models.Observe(engines.AnsweredBy(x, a.Request.Model, a.Transcript.Model))
	if word.First {
		s.target.writer.NameModel(exchange.ModelNamed{Upstream: x.Upstream, Asked: a.Request.Model, Named: a.Transcript.Model})
	}
	return measure.Summarize(x, a).WithFlags(word.Flags)
}

// run sends the suite, ends the engine where it was started here, and closes the run. The first error is why the suite did not come to its end, the second one that of
// the store.
func (s *suiteSitting) run(ctx context.Context) (sent, stored error) {
	sent = s.suite.Run(ctx, replay.Target{Session: s.target.session, Upstream: s.target.upstream})
	if len(s.engines) > 0 {
		_ = s.target.upstream.Close() // nothing runs on it; an engine that ends may wait for its connections
	}
	sent = s.down(sent)
	s.target.writer.Drain(context.Background())
	s.target.writer.Replay(s.suite.Report(sent))
	run, stored := s.target.writer.Close(context.Background())
	s.endTrace(s.target, &run)
	return sent, stored
}

// degreesOf reads a list of numbers like 1,4: from 1, each once, in the order given.
func degreesOf(flag, text string) ([]int, error) {
	var out []int
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > 1024 {
			return nil, usagef("--%s %q is not a list of numbers from 1 to 1024, like 1,4", flag, text)
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}
