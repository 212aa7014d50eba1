package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// The ways in which an engine fails to answer a gate's own question, with what the reason says of it.
var failing = map[string]struct {
	script func() *sim.Script
	says   string
}{
	"busy for ever": {busy, "answered with status 503"},
	"out of memory": {func() *sim.Script { return answerJSON(500, `{"error":{"message":"out of memory"}}`) }, "answered with status 500"},
	"cut":           {func() *sim.Script { return ending(sim.EndTruncate) }, "answered with status 200, upstream_truncated"},
	"reset":         {func() *sim.Script { return ending(sim.EndReset) }, "upstream_"},
	"silent":        {func() *sim.Script { s := ending(sim.EndHang); s.HeadAt = time.Hour; return s }, "did not answer: timeout"},
	"stalled":       {func() *sim.Script { return ending(sim.EndHang) }, "answered with status 200, timeout"},
}

// busy is an answer with 503 and a time to come back, which is now.
func busy() *sim.Script {
	s := answerJSON(503, `{"error":{"message":"loading model"}}`)
	s.Headers = append(s.Headers, exchange.Header{Name: "Retry-After", Value: "0"})
	return s
}

// ending is an answer that begins well.
func ending(how sim.Ending) *sim.Script {
	s := answerJSON(200, `{"content":" the sea","tokens":[1`)
	s.Framing, s.End = sim.FramingChunked, how
	return s
}

// impatient is an engine of the rig that is not waited for.
func (g *gated) impatient(t *testing.T, p exchange.Party) replay.Target {
	t.Helper()
	url := g.url
	if p == exchange.Reference {
		url = g.referenceURL
	}
	up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: string(p), URL: url, HeaderTimeout: 300 * time.Millisecond, IdleTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	g.stops = append(g.stops, up.Close)
	return replay.Target{Session: g.session, Upstream: up}
}

// saved are numerics of a reference by whose views a divergence passes.
var saved = toyGaps{sim.NumericsDecode: 1.36, sim.NumericsBatch: 1.28, sim.NumericsMicro: 1.06}

// TestGateSuiteAsksBusyEngines holds that a question is asked again when the engine says when to come back, and that what it
// says then counts.
func TestGateSuiteAsksBusyEngines(t *testing.T) {
	place := func(gaps toyGaps) sim.ToyOptions {
		return sim.ToyOptions{Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: gaps}}}
	}
	g := newGated(t, place(saved), place(toyGaps{sim.NumericsAny: -0.1}))
	var refused atomic.Int32
	g.asked[exchange.Reference].set(func(a *asked) {
		a.instead = func(r sim.Request) *sim.Script {
			if r.Path() == "/completion" && refused.Add(1) <= 2 {
				return busy()
			}
			return nil
		}
	})
	o := only(g.options(t, nil, scenario.FamilyPrompts), "prompt_03")
	r := g.gate(t, o)
	if e := entry(t, r, "prompt_03", "near_tie"); e.Status != exchange.VerdictOK || e.Rule != "min_gap_within_bar" || refused.Load() < 3 {
		t.Errorf("%s by %s, %d requests: %s", e.Status, e.Rule, refused.Load(), e.Reason)
	}
	if err := r.Verdict(); err != nil {
		t.Error(err)
	}
}

// only leaves the cases of one scenario.
func only(o replay.GateOptions, id string) replay.GateOptions {
	o.Cases = slices.DeleteFunc(o.Cases, func(c scenario.LevelCase) bool { return c.ID != id })
	return o
}

// TestGateSuiteBrokenAnswers breaks the answers to the gates' own questions: of the reference that looks at a place again,
// and of the candidate that is asked once more. None is a pass then, and the reason names who did not answer.
func TestGateSuiteBrokenAnswers(t *testing.T) {
	place := func(gaps toyGaps) sim.ToyOptions {
		return sim.ToyOptions{Drafts: true, Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: gaps}}}
	}
	sent := func(part string) func(sim.Request) bool {
		return func(r sim.Request) bool { return strings.Contains(string(r.Body), part) }
	}
	for name, test := range map[string]struct {
		party    exchange.Party
		family   string
		id, gate string
		own      func() func(sim.Request) bool // which requests are the gate's own
		gaps     toyGaps
	}{
		"views":       {exchange.Reference, scenario.FamilyPrompts, "prompt_03", "near_tie", func() func(sim.Request) bool { return func(r sim.Request) bool { return r.Path() == "/completion" } }, toyGaps{sim.NumericsAny: -0.1}},
		"sampling":    {exchange.Candidate, scenario.FamilySampling, "sampling", "sampling", func() func(sim.Request) bool { return sent(`"temperature":1`) }, nil},
		"drafts":      {exchange.Candidate, scenario.FamilySpeculation, "spec_01", "speculative_lossless", func() func(sim.Request) bool { return sent(`"draft":false`) }, nil},
		"consistency": {exchange.Candidate, scenario.FamilyConsistency, "together", "consistency", repeats, nil},
		"determinism": {exchange.Candidate, scenario.FamilyConsistency, "repeated", "determinism", repeats, nil},
	} {
		for how, f := range failing {
			t.Run(name+" "+how, func(t *testing.T) {
				reference := sim.ToyOptions{Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: saved}}}
				g := newGated(t, reference, place(test.gaps))
				own := test.own()
				g.asked[test.party].set(func(a *asked) {
					a.instead = func(r sim.Request) *sim.Script {
						if own(r) {
							return f.script()
						}
						return nil
					}
				})
				o := only(g.options(t, func(o *scenario.LevelOptions) {
					o.Level, o.Drafts = "quick", scenario.Drafts{OffFields: []byte(`{"draft":false}`)}
					if test.gate == "sampling" {
						o.Level = "dev"
					}
				}, test.family), test.id)
				of := &o.Candidate
				if test.party == exchange.Reference {
					of = o.Reference
				}
				of.Engine = replay.AlwaysUp{Target: g.impatient(t, test.party)}
				r := g.gate(t, o)
				e := entry(t, r, test.id, test.gate)
				if e.Status != exchange.VerdictIncomparable || !strings.Contains(e.Reason, f.says) || !strings.Contains(e.Reason, string(test.party)) {
					t.Errorf("%s: %s", e.Status, e.Reason)
				}
				if err := r.Verdict(); !errors.Is(err, exchange.ErrIncomplete) && !errors.Is(err, exchange.ErrMiss) {
					t.Errorf("the report says %v", err)
				}
			})
		}
	}
}

// repeats tells the requests whose like was sent before: those of gates that ask the very same again.
func repeats() func(sim.Request) bool {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(r sim.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		again := seen[string(r.Body)]
		seen[string(r.Body)] = true
		return again
	}
}

// TestGateSuiteCrash holds that an engine which dies of a gate's question is told of by that gate: a prompt over the limit
// fails, what was asked and not answered is no pass, and the suite ends.
func TestGateSuiteCrash(t *testing.T) {
	g := newGated(t, sim.ToyOptions{}, sim.ToyOptions{Limit: 4096})
	g.asked[exchange.Candidate].set(func(a *asked) {
		a.instead = func(r sim.Request) *sim.Script {
			if len(r.Body) < 20_000 {
				return nil
			}
			s := answerJSON(400, `{"error":{"code":400,"message":"the prompt is too long","type":"exceed_context_size_error"}}`)
			s.End = sim.EndCrash
			return s
		}
	})
	o := g.options(t, func(o *scenario.LevelOptions) { o.Window = 4096 }, scenario.FamilyConsistency, scenario.FamilyLimit)
	s, err := replay.NewGateSuite(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(context.Background())
	if !errors.Is(err, exchange.ErrUnreachable) || r.Complete || !errors.Is(r.Verdict(), exchange.ErrGate) {
		t.Errorf("%v; complete %v, %v", err, r.Complete, r.Verdict())
	}
	if e := entry(t, r, "over_limit", "over_limit"); e.Status != exchange.VerdictFail || !strings.Contains(e.Reason, "does not answer after it") {
		t.Errorf("over the limit: %s: %s", e.Status, e.Reason)
	}
	if e := entry(t, r, "together", "consistency"); e.Status == exchange.VerdictOK {
		t.Errorf("together: %s: %s", e.Status, e.Reason)
	}
}
