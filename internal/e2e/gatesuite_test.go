package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// gated are two toys as the parties of gate suites, with one store.
type gated struct {
	*rig
	ups   map[exchange.Party]*proxy.Upstream
	asked map[exchange.Party]*asked

	referenceURL string
}

// asked counts the requests that an engine got, and lets those of the wave in which requests run together meet.
type asked struct {
	toy sim.Handler

	mu    sync.Mutex
	n     int
	met   int  // requests of the wave that came
	meets bool // requests of the wave wait for each other
	fails int  // status of every answer; 0 for what the toy says
	// instead answers a request where it gives a script; nil for never.
	instead func(sim.Request) *sim.Script
	loops   func(body string) string // what it answers to requests with tools; nil = loopAnswer
}

// wave marks the requests that run together, of which there are so many.
const waveOf = 4

// handle answers as a toy does that also knows tools, and that has no images.
func (a *asked) handle(r sim.Request) *sim.Script {
	body := string(r.Body)
	a.mu.Lock()
	a.n++
	together := strings.Contains(body, "What do the terms latency") || strings.Contains(body, "Schreibe ein") || strings.Contains(body, "Give a JSON object with the keys title") ||
		strings.Contains(body, "Which is heavier")
	if together && a.meets && a.met < waveOf {
		a.met++
		r.Headers = append(r.Headers, exchange.Header{Name: sim.MeetHeader, Value: fmt.Sprint(waveOf)})
	}
	fails, loops, instead := a.fails, a.loops, a.instead
	a.mu.Unlock()
	if instead != nil {
		if s := instead(r); s != nil {
			return s
		}
	}
	if loops == nil {
		loops = loopAnswer
	}
	switch {
	case fails > 0:
		return answerJSON(fails, `{"error":{"message":"out of memory"}}`)
	case strings.Contains(body, `"image_url"`):
		return answerJSON(500, `{"error":{"code":500,"message":"image input is not supported - hint: you may need to provide the mmproj","type":"server_error"}}`)
	case strings.Contains(body, `"tools"`):
		return answerJSON(200, loops(body))
	}
	return a.toy(r)
}

// set changes what the engine does.
func (a *asked) set(change func(*asked)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func answerJSON(status int, body string) *sim.Script {
	return &sim.Script{Status: status, Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}, Framing: sim.FramingLength,
		Steps: []sim.Step{{Data: []byte(body)}}}
}

// loopAnswer plays a model in the tool loops: each turn calls the next tool, and the last one answers. Every turn reads what
// was said before from the cache.
func loopAnswer(body string) string {
	turn := strings.Count(body, `"role":"assistant"`)
	calls := [][2]string{{"read_invoice", `{"invoice_id":"INV-472"}`}, {"calculate_total", `{"unit_price":13.75,"quantity":5}`}}
	switch {
	case strings.Contains(body, "warmer than Oslo"):
		calls = [][2]string{{"get_weather", `{"city":"Cairo","units":"celsius"}`}, {"calculate", `{"operation":"subtract","a":33,"b":6}`}}
	case strings.Contains(body, "the warmest"):
		calls = [][2]string{{"get_weather", `{"city":"Cairo","units":"celsius"}`}}
	case strings.Contains(body, "less 250"):
		calls = [][2]string{{"calculate", `{"operation":"add","a":48,"b":36}`}}
	}
	message, finish := `{"role":"assistant","content":"{\"invoice_id\":\"INV-472\",\"total\":74.25}"}`, "stop"
	if turn < len(calls) {
		finish = "tool_calls"
		message = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":%q,"arguments":%q}}]}`,
			turn, calls[turn][0], calls[turn][1])
	}
	return fmt.Sprintf(`{"id":"x","object":"chat.completion","model":"toy","choices":[{"index":0,"message":%s,"finish_reason":%q}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`,
		message, finish, 100+40*turn, 120+40*turn, min(1, turn)*(80+40*turn))
}

func newGated(t *testing.T, reference, candidate sim.ToyOptions) *gated {
	g := &gated{ups: map[exchange.Party]*proxy.Upstream{}, asked: map[exchange.Party]*asked{}}
	for party, o := range map[exchange.Party]sim.ToyOptions{exchange.Reference: reference, exchange.Candidate: candidate} {
		o.Seed = 1
		g.asked[party] = &asked{toy: sim.NewToy(o).Handler()}
	}
	config := func(p exchange.Party) sim.Config {
		return sim.Config{Handler: g.asked[p].handle, Bare: true}
	}
	g.rig = newRig(t, func(o *rigOptions) { o.engine = config(exchange.Candidate) })
	_, url := g.newEngine(config(exchange.Reference))
	g.referenceURL = url
	for party, at := range map[exchange.Party]string{exchange.Candidate: g.url, exchange.Reference: url} {
		up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: string(party), URL: at})
		if err != nil {
			t.Fatal(err)
		}
		g.ups[party] = up
		g.stops = append(g.stops, up.Close)
	}
	return g
}

// plan changes what newGated's options plan.
type plan func(*scenario.LevelOptions)

// options are those of a suite on both toys, of the families that are named; of all when none is.
func (g *gated) options(t *testing.T, change plan, families ...string) replay.GateOptions {
	t.Helper()
	lo := scenario.LevelOptions{Level: "dev"}
	if change != nil {
		change(&lo)
	}
	level, err := gates.ParseLevel(lo.Level)
	if err != nil {
		t.Fatal(err)
	}
	cases, gaps, err := scenario.LevelPlan(lo)
	if err != nil {
		t.Fatal(err)
	}
	if len(families) > 0 {
		gaps = nil
		cases = slices.DeleteFunc(cases, func(c scenario.LevelCase) bool { return !slices.Contains(families, c.Family) })
	}
	g.asked[exchange.Candidate].set(func(a *asked) {
		a.meets = slices.ContainsFunc(cases, func(c scenario.LevelCase) bool { return c.Together })
	})
	ref := g.party(exchange.Reference, "b1")
	return replay.GateOptions{Level: level, Cases: cases, Gaps: gaps, Candidate: g.party(exchange.Candidate, "c1"), Reference: &ref, Harness: "test",
		References: g.store.CacheOf(recorder.Reference{Weights: ref.Weights, Engine: ref.Identity}, rowOf)}
}

func rowOf(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) }

func (g *gated) party(p exchange.Party, version string) replay.GateParty {
	id := exchange.Identity{Engine: "llamacpp", Version: version}
	g.session.SetIdentity(string(p), id)
	return replay.GateParty{Engine: replay.AlwaysUp{Target: g.target(p)}, Model: "toy", Weights: "sha256:aa", Identity: id,
		Spelling: replay.Spelling{NoCache: json.RawMessage(`{"cache_prompt":false}`)}}
}

func (g *gated) target(p exchange.Party) replay.Target {
	return replay.Target{Session: g.session, Upstream: g.ups[p]}
}

// gate runs a suite to its end.
func (g *gated) gate(t *testing.T, o replay.GateOptions) *replay.GateReport {
	t.Helper()
	s, err := replay.NewGateSuite(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// entry is the verdict of a gate on a scenario.
func entry(t *testing.T, r *replay.GateReport, scenario, gate string) replay.GateEntry {
	t.Helper()
	for _, e := range r.Verdicts {
		if e.Scenario == scenario && e.Gate == gate {
			return e
		}
	}
	t.Fatalf("no verdict of %s on %s", gate, scenario)
	return replay.GateEntry{}
}

// sent is how many requests an engine got since it was asked last.
func (g *gated) sent(p exchange.Party) int {
	a := g.asked[p]
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.n
	a.n = 0
	return n
}

// None of the gate suites runs beside other tests: what they compute would disturb those that hold instants to the clock.

// TestGateSuite runs a whole level on two toys that agree: all that can pass does, and a second suite asks the reference
// nothing.
func TestGateSuite(t *testing.T) {
	g := newGated(t, sim.ToyOptions{}, sim.ToyOptions{Limit: 40960})
	change := func(o *scenario.LevelOptions) { o.Window = 40960 }
	first := g.gate(t, g.options(t, change))
	if err := first.Verdict(); err != nil {
		t.Error(err)
	}
	want := map[exchange.VerdictStatus]int{exchange.VerdictOK: 70, exchange.VerdictUnsupported: 2, exchange.VerdictSkipped: 2}
	if diff := cmp.Diff(want, first.Statuses); diff != "" || !first.Complete {
		for _, e := range first.Verdicts {
			t.Logf("%s %s %s %s", e.Scenario, e.Gate, e.Status, e.Reason)
		}
		t.Errorf("complete %v: %s", first.Complete, diff)
	}
	if n := g.sent(exchange.Reference); n == 0 || n != first.Asked.Reference || first.Asked.Kept != 0 {
		t.Errorf("the reference got %d requests, and %+v is told", n, first.Asked)
	}
	second := g.gate(t, g.options(t, change))
	if n := g.sent(exchange.Reference); n != 0 || second.Asked.Reference != 0 || second.Asked.Kept != first.Asked.Reference {
		t.Errorf("the second time it got %d, and %+v is told", n, second.Asked)
	}
	if diff := cmp.Diff(first.Statuses, second.Statuses); diff != "" || first.Package != second.Package || first.Prompts != second.Prompts {
		t.Error(diff)
	}
	for _, e := range first.Verdicts {
		if e.Status != exchange.VerdictSkipped && (len(e.Evidence) == 0 || e.Question == "" || e.Run != g.run.ID) {
			t.Errorf("%s %s rests on %v, question %q, run %q", e.Scenario, e.Gate, e.Evidence, e.Question, e.Run)
		}
	}
}

// prompt3 has 8 tokens for a toy, so that token n of its answer stands at place 8 + n.
const prompt3 = 8

// TestGateSuiteTies tells a pass, a near-tie, one that the reference's views save, and a failure, each with token, gap and
// position.
func TestGateSuiteTies(t *testing.T) {
	flipped := toyGaps{sim.NumericsAny: -0.1}
	for name, test := range map[string]struct {
		reference, candidate toyGaps
		status               exchange.VerdictStatus
		rule                 string
		gap                  float64
	}{
		"pass":           {nil, nil, exchange.VerdictOK, "", 0},
		"near-tie":       {toyGaps{sim.NumericsAny: 0.4}, flipped, exchange.VerdictOK, "gap", 0.4},
		"saved by views": {toyGaps{sim.NumericsDecode: 1.36, sim.NumericsBatch: 1.28, sim.NumericsMicro: 1.06}, flipped, exchange.VerdictOK, "min_gap_within_bar", 1.06},
		"fail":           {toyGaps{sim.NumericsAny: 1.8}, flipped, exchange.VerdictFail, "gap_too_large", 1.8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := func(gaps toyGaps) sim.ToyOptions {
				return sim.ToyOptions{Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: gaps}}}
			}
			g := newGated(t, at(test.reference), at(test.candidate))
			o := g.options(t, nil, scenario.FamilyPrompts)
			o.Cases = slices.DeleteFunc(o.Cases, func(c scenario.LevelCase) bool { return c.ID != "prompt_03" })
			r := g.gate(t, o)
			e := entry(t, r, "prompt_03", "near_tie")
			if e.Status != test.status || e.Rule != test.rule {
				t.Fatalf("%s by %s: %s", e.Status, e.Rule, e.Reason)
			}
			if failed := test.status == exchange.VerdictFail; errors.Is(r.Verdict(), exchange.ErrGate) != failed {
				t.Errorf("the report says %v", r.Verdict())
			}
			if test.rule == "" {
				return
			}
			if e.Position == nil || *e.Position != 3 || math.Abs(*e.Gap-test.gap) > 1e-9 || *e.Token == "" || *e.Golden == "" || *e.Token == *e.Golden {
				t.Errorf("gap %v at %v: %v against %v", e.Gap, e.Position, e.Token, e.Golden)
			}
			g.sent(exchange.Reference)
			again := g.gate(t, o)
			if n := g.sent(exchange.Reference); n != 0 || string(entry(t, again, "prompt_03", "near_tie").Status) != string(test.status) {
				t.Errorf("the second time the reference got %d requests: %v", n, again.Statuses)
			}
		})
	}
}

// together1 is the number of tokens of the first of the prompts that run together.
const together1 = 15

// TestGateSuiteConsistency catches answers that change with their neighbors or from time to time, and does not call a flip
// by the cache a race.
func TestGateSuiteConsistency(t *testing.T) {
	for name, test := range map[string]struct {
		at     int
		gaps   toyGaps
		status exchange.VerdictStatus
		says   string
	}{
		"sound":          {together1 + 3, nil, exchange.VerdictOK, ""},
		"neighbors":      {together1 + 3, toyGaps{sim.NumericsTogether: -1.5, sim.NumericsAny: 1.5}, exchange.VerdictFail, "differs from its answer alone"},
		"race":           {together1 + 3, toyGaps{sim.NumericsRace: -0.2, sim.NumericsAny: 0.2}, exchange.VerdictFail, "a race: exchange"},
		"cache":          {together1, toyGaps{sim.NumericsMicro: -1.5, sim.NumericsBatch: 1.5}, exchange.VerdictFail, "cache"},
		"cache near-tie": {together1, toyGaps{sim.NumericsMicro: -0.2, sim.NumericsBatch: 0.2}, exchange.VerdictOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t, sim.ToyOptions{}, sim.ToyOptions{Nudges: []sim.Nudge{{At: test.at, Gaps: test.gaps}}})
			e := entry(t, g.gate(t, g.options(t, nil, scenario.FamilyConsistency)), "together", "consistency")
			if e.Status != test.status || !strings.Contains(e.Reason, test.says) || name != "race" && strings.HasPrefix(e.Reason, "a race") {
				t.Errorf("%s: %s %s", e.Status, e.Reason, e.Detail)
			}
		})
	}
}

// TestGateSuiteDrafts catches drafts that change an answer.
func TestGateSuiteDrafts(t *testing.T) {
	for name, test := range map[string]struct {
		gaps   toyGaps
		status exchange.VerdictStatus
		says   string
	}{
		"lossless": {nil, exchange.VerdictOK, ""},
		"lossy":    {toyGaps{sim.NumericsDrafted: -0.05, sim.NumericsAny: 0.05}, exchange.VerdictFail, "drafting changed exchange"},
	} {
		g := newGated(t, sim.ToyOptions{}, sim.ToyOptions{Drafts: true, Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: test.gaps}}})
		o := g.options(t, func(o *scenario.LevelOptions) {
			o.Drafts = scenario.Drafts{OffFields: json.RawMessage(`{"draft":false}`)}
		}, scenario.FamilySpeculation)
		e := entry(t, g.gate(t, o), "spec_03", "speculative_lossless")
		if e.Status != test.status || !strings.Contains(e.Reason, test.says) {
			t.Errorf("%s: %s: %s", name, e.Status, e.Reason)
		}
	}
}
