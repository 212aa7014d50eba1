package main

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/gates"
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

// start makes the parties, plans the suite and begins its run: one run holds what both engines answer.
func (g *gating) start(c *cli.Context) (err error) {
	translated := g.bridgeReference()
	if err := g.connect(); err != nil {
		return err
	}
	run := newRun("gate", g.s.name, g.s.targets)
	run.MadeBy = redact.Args(g.env.Args)
	run.Labels, run.Identity = g.s.labels, identity(g.s.targets[0].label)
	so := g.s.session
	so.Dialect = g.answersOf(0)
	so.Run, so.Mode, so.Harness, so.Identity = run.ID, run.Mode, version(), run.Identity
	so.Tracer = tracerOf(g.target.trace)
	sink := &lateSink{}
	so.Sink = sink
	session := proxy.NewSession(so)
	for i, t := range g.targets {
		t.session = session
		if e := g.engines[i]; e != nil {
			e.session = session
		}
	}
	g.parties(translated)
	g.o.Session, g.o.Salt, g.o.Told = g.session, string(exchange.NewID(clock.Now())), g.told
	if g.gates, err = replay.NewGateSuite(g.o); err != nil {
		return err
	}
	g.suite = g.gates.Suite()
	planned := g.suite.Planned()
	run.Replay = &planned
	writer, err := g.store.NewWriter(run, recorder.WriterOptions{Derive: g.derive,
		OnStored:  func(row exchange.Summary) { g.stored(g.target, row) },
		OnDropped: func(id exchange.ID, _ recorder.DropReason) { g.telling.tracing.Dropped(id) },
	})
	if err != nil {
		return err
	}
	for _, t := range g.targets {
		t.writer = writer
	}
	sink.Sink = g.telling.sink(writer)
	if err := g.identify(c.Context); err != nil {
		return err
	}
	for i, p := range []*replay.GateParty{&g.o.Candidate, g.o.Reference} {
		if p != nil && p.Identity.Basis == "label" {
			session.SetIdentity(g.s.targets[i].name, p.Identity)
		}
	}
	return nil
}

// lateSink is a sink that is there before the first exchange, and after the session is made: the plan of a run, which its
// writer begins with, names the session's engines.
type lateSink struct{ proxy.Sink }

// connect makes the upstreams of the engines.
func (g *gating) connect() error {
	for _, u := range g.s.targets {
		o := g.s.upstream
		o.Name, o.URL, o.Credentials = u.name, u.url, u.credentials
		up, err := proxy.NewUpstream(o)
		if err != nil {
			return fmt.Errorf("reach %s: %w", u.name, err)
		}
		t := &replayTarget{up: u, upstream: up, failures: &failureNotes{out: g.env.Stderr}, total: measure.Totals{Limit: sampleLimit}}
		t.trace = g.telling.tracing.NewRun()
		if e := g.engines[len(g.targets)]; e != nil {
			e.reach = o
		}
		g.targets = append(g.targets, t)
	}
	if g.target = g.targets[0]; len(g.targets) > 1 {
		g.reference = g.targets[1]
	}
	return nil
}

// bridgeReference decides how the reference is spoken to, and with which credentials; nil for chat completions.
func (g *gating) bridgeReference() []bridge.Endpoint {
	if len(g.s.targets) < 2 {
		return nil
	}
	u := &g.s.targets[1]
	e := g.s.bridge.endpoint(*u, g.profile(1))
	translated, heard := e.Outcome(map[wire.Dialect]int{wire.DialectChat: 1})
	u.credentials = credentialsFor(u.credentials, heard)
	if translated == 0 {
		return nil
	}
	return []bridge.Endpoint{e}
}

// parties says what is known of the engines, of which the reference may be spoken to in another dialect.
func (g *gating) parties(bridged []bridge.Endpoint) {
	candidate := g.party(0, g.model)
	candidate.Changes, candidate.Spelling = g.s.plan.Changes, g.spelled(0, len(g.s.plan.Changes.Bridges) > 0)
	g.o.Candidate = candidate
	g.o.OnRecord = g.onRecord
	g.o.References = g.referencesOf(&replay.GateParty{})
	if g.reference != nil {
		reference := g.party(1, cmp.Or(g.refModel, g.served(1), g.model))
		reference.Changes.Lossy, reference.Changes.Bridges = g.s.plan.Changes.Lossy, bridged
		reference.Spelling = g.spelled(1, len(bridged) > 0)
		if g.engines[1] != nil && g.s.identify && len(g.found) < 2 {
			reference.Meet = g.meetReference
		}
		g.o.Reference, g.o.References = &reference, g.referencesOf(&reference)
	}
}

// referencesOf is what the store keeps of the answers of a reference.
func (g *gating) referencesOf(p *replay.GateParty) replay.References {
	return g.store.CacheOf(recorder.Reference{Weights: p.Weights, Engine: p.Identity, Launch: p.Launch, Build: p.Build}, func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) })
}

// onRecord says whether all of it is in the store, as it was.
func (g *gating) onRecord(sums []exchange.EvidenceSum) bool {
	for _, s := range sums {
		digest := ""
		if s.Kind == "golden" {
			if golden, err := g.store.Golden(exchange.ID(s.ID)); err == nil {
				digest = gates.SumGolden(golden)
			}
		} else if x, _, err := g.store.Exchange(exchange.ID(s.ID)); err == nil {
			digest = gates.SumExchange(x)
		}
		if digest != s.Digest {
			return false
		}
	}
	return true
}

// party is one engine, which somebody else runs or the suite starts.
func (g *gating) party(i int, model string) replay.GateParty {
	t := g.targets[i]
	p := replay.GateParty{Engine: replay.AlwaysUp{Target: replay.Target{Session: t.session, Upstream: t.upstream}}, Model: model,
		Identity: identity(t.up.label), Weights: g.weights[i]}
	if e := g.engines[i]; e == nil {
		p.URL = t.upstream.URL()
	} else {
		p.Engine, p.Launch, p.Build = e, e.command(), e.build
		if p.Identity.Version == "" && e.known.Version != "" {
			p.Identity = e.known
		}
	}
	if i < len(g.found) && g.found[i].err == nil {
		d := g.found[i].is
		if p.Identity.Basis != "label" || p.Identity.Version == "" {
			p.Identity = d.Identity
		}
		if f := d.Fingerprint; f != nil && p.URL != "" {
			p.Told = f.Digest
		}
		if p.Drafting = d.Drafting; p.Weights == "" && d.WeightsDigest != nil {
			p.Weights = *d.WeightsDigest
		}
	}
	return p
}

// served is the model that an engine says it serves, "" when it does not.
func (g *gating) served(i int) string {
	if i < len(g.found) && g.found[i].err == nil && g.found[i].is.Model != nil {
		return *g.found[i].is.Model
	}
	return ""
}

// spelled is how an engine spells what the cases leave open. A request that is translated says it in a form that the
// translation knows.
func (g *gating) spelled(i int, translated bool) replay.Spelling {
	if translated {
		return replay.Spelling{ThinkingOn: json.RawMessage(`{"chat_template_kwargs":{"enable_thinking":true}}`)}
	}
	q := g.profile(i).Requests
	sp := replay.Spelling{NoCache: q.NoCache}
	if t := q.Thinking; t != nil {
		sp.ThinkingOn, sp.ThinkingOff = t.On, t.Off
	}
	return sp
}
