package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
)

// The prompt has 13 tokens for a toy, so generated token n stands at place 13 + n.
const (
	toyPlace = 13
	toyAsk   = `{"prompt":"tell me of the sea and the sun over the long road home","n_predict":8,"temperature":0,"n_probs":5,"return_tokens":true}`
)

// pair are two toy engines behind proxies of one recording: a reference and a candidate.
type pair struct {
	*rig
	fronts map[exchange.Party]string
	sent   map[exchange.Party]int
}

// newPair starts two engines of the same model whose numerics differ at generated token 3.
func newPair(t *testing.T, reference, candidate sim.ToyOptions) *pair {
	config := func(o sim.ToyOptions) sim.Config {
		o.Seed = 1
		return sim.Config{Handler: sim.NewToy(o).Handler(), Bare: true}
	}
	r := newRig(t, func(o *rigOptions) { o.engine = config(candidate) })
	_, url := r.newEngine(config(reference))
	p := &pair{rig: r, sent: map[exchange.Party]int{}}
	p.fronts = map[exchange.Party]string{exchange.Candidate: r.addr, exchange.Reference: r.front(url, proxy.UpstreamOptions{Name: "reference"}, proxy.ServerOptions{})}
	return p
}

func at3(gaps map[sim.Numerics]float64) sim.ToyOptions {
	return sim.ToyOptions{Nudges: []sim.Nudge{{At: toyPlace + 3, Gaps: gaps}}}
}

type toyGaps = map[sim.Numerics]float64

// ask sends requests to one of the engines at once, each on a connection of its own, and gives what was recorded of them.
func (p *pair) ask(t *testing.T, of exchange.Party, needs ...exchange.Need) (xs []*exchange.Exchange) {
	t.Helper()
	var open []*client
	var names, headers []string
	if len(needs) > 1 {
		headers = []string{fmt.Sprintf("%s: %d", sim.MeetHeader, len(needs))}
	}
	for _, n := range needs {
		p.sent[of]++
		name := fmt.Sprintf("%s-%d", of, p.sent[of])
		open = append(open, dial(t, p.fronts[of]).send(request{method: n.Method, target: n.Path, name: name, headers: headers, body: string(n.Body)}))
		names = append(names, name)
	}
	for i, c := range open {
		c.answer(needs[i].Method, -1)
		xs = append(xs, p.stored(t, names[i], 0).Exchange)
		c.Close()
	}
	return xs
}

func (p *pair) one(t *testing.T, of exchange.Party, body string) *exchange.Exchange {
	t.Helper()
	return p.ask(t, of, exchange.Need{Method: "POST", Path: "/completion", Body: []byte(body)})[0]
}

// referenceEngine is how goldens and replies of the reference are kept.
func referenceEngine() recorder.Reference {
	return recorder.Reference{Weights: "sha256:aa", Engine: exchange.Identity{Engine: "llamacpp", Version: "toy"}}
}

// golden records the reference, keeps the golden in the store, and finds it again by the request key.
func (p *pair) golden(t *testing.T, body string) []*exchange.Golden {
	t.Helper()
	of := referenceEngine()
	g, err := gates.GoldenOf(p.one(t, exchange.Reference, body), gates.Recording{Weights: of.Weights, Engine: of.Engine, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.store.AddGolden(*g, false); err != nil {
		t.Fatal(err)
	}
	list, err := p.store.GoldensOf(g.Key)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d goldens, %v", len(list), err)
	}
	return list
}

// judge judges until nothing more is needed. What the reference has answered before comes from the store.
func (p *pair) judge(t *testing.T, c *exchange.Case, gate string, params map[string]any) exchange.Verdict {
	t.Helper()
	check := exchange.Check{Gate: gate}
	if params != nil {
		check.Params, _ = json.Marshal(params)
	}
	for range 8 {
		v, needs, err := gates.Judge(gates.Prepare(c), check)
		if err != nil {
			t.Fatal(err)
		}
		if len(needs) == 0 {
			return v
		}
		known, err := p.store.Replies(referenceEngine(), needs)
		if err != nil {
			t.Fatal(err)
		}
		c.Replies = append(c.Replies, known...)
		have := map[string]bool{}
		for _, r := range known {
			have[r.Need] = true
		}
		for _, n := range needs {
			if have[n.ID] {
				continue
			}
			x := p.ask(t, n.Party, n)[0]
			c.Replies = append(c.Replies, exchange.Reply{Need: n.ID, Exchange: x})
			if n.Party == exchange.Reference {
				_, row, err := p.store.Exchange(x.ID)
				if err == nil {
					err = p.store.AddReply(referenceEngine(), n, x, row)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Fatal("the gate never has enough")
	return exchange.Verdict{}
}

// tieTurn are the figures of a near-tie verdict that are reported.
type tieTurn struct {
	Rule     string
	Gap      *float64
	Position *int
	Token    *struct{ Text string }
	Bar      *float64
	Full     bool `json:"full_match"`
}

func turnOf(t *testing.T, v exchange.Verdict) tieTurn {
	t.Helper()
	var d struct{ Turns []tieTurn }
	if err := json.Unmarshal(v.Detail, &d); err != nil || len(d.Turns) != 1 {
		t.Fatalf("detail %s: %v", v.Detail, err)
	}
	return d.Turns[0]
}

// TestNearTiesOfTwoEngines tells a pass, a near-tie, one that the reference's views save, and a failure.
func TestNearTiesOfTwoEngines(t *testing.T) {
	t.Parallel()
	flipped := toyGaps{sim.NumericsAny: -0.1}
	for name, test := range map[string]struct {
		reference, candidate toyGaps
		status               exchange.VerdictStatus
		rule                 string
		gap                  float64
		views                bool
	}{
		"pass":           {nil, nil, exchange.VerdictOK, "match", 0, false},
		"near-tie":       {toyGaps{sim.NumericsAny: 0.4}, flipped, exchange.VerdictOK, "gap", 0.4, false},
		"saved by views": {toyGaps{sim.NumericsDecode: 1.36, sim.NumericsBatch: 1.28, sim.NumericsMicro: 1.06}, flipped, exchange.VerdictOK, "min_gap_within_bar", 1.06, true},
		"fail":           {toyGaps{sim.NumericsAny: 1.8}, flipped, exchange.VerdictFail, "gap_too_large", 1.8, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, at3(test.reference), at3(test.candidate))
			goldens := p.golden(t, toyAsk)
			x := p.one(t, exchange.Candidate, toyAsk)
			judge := func() exchange.Verdict {
				return p.judge(t, &exchange.Case{ID: "c", Concurrency: 1, Exchanges: []*exchange.Exchange{x}, Goldens: goldens}, "near_tie", map[string]any{"weights": "sha256:aa"})
			}
			v := judge()
			got := turnOf(t, v)
			if v.Status != test.status || got.Rule != test.rule {
				t.Fatalf("%s by %s: %s", v.Status, got.Rule, v.Reason)
			}
			if got.Full {
				return
			}
			if *got.Position != 3 || got.Token.Text == "" || math.Abs(*got.Gap-test.gap) > 1e-9 {
				t.Errorf("token %q at %d, gap %v", got.Token.Text, *got.Position, *got.Gap)
			}
			before := p.sent[exchange.Reference]
			if again := judge(); string(again.Detail) != string(v.Detail) || again.Status != v.Status {
				t.Errorf("judged again: %s %s", again.Status, again.Detail)
			}
			if p.sent[exchange.Reference] != before || test.views != (before > 2) {
				t.Errorf("the reference was asked %d times, and %d times when it had answered all", before, p.sent[exchange.Reference]-before)
			}
		})
	}
}

// TestConsistencyOfAnEngine catches an answer that changes with neighbors, and does not call a flip by the cache a race.
func TestConsistencyOfAnEngine(t *testing.T) {
	t.Parallel()
	other := strings.Replace(toyAsk, "tell me", "sing then", 1)
	for name, test := range map[string]struct {
		gaps   toyGaps
		status exchange.VerdictStatus
		says   string
	}{
		"sound":          {nil, exchange.VerdictOK, ""},
		"together":       {toyGaps{sim.NumericsTogether: -1.5, sim.NumericsAny: 1.5}, exchange.VerdictFail, "differs from its answer alone"},
		"race":           {toyGaps{sim.NumericsRace: -0.2, sim.NumericsAny: 0.2}, exchange.VerdictFail, "a race: exchange"},
		"cache":          {toyGaps{sim.NumericsWarm: -1.5, sim.NumericsAny: 1.5}, exchange.VerdictFail, "(not a race: the paths differ)"},
		"cache near-tie": {toyGaps{sim.NumericsWarm: -0.2, sim.NumericsAny: 0.2}, exchange.VerdictOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, sim.ToyOptions{}, at3(test.gaps))
			post := func(body string) exchange.Need {
				return exchange.Need{Method: "POST", Path: "/completion", Body: []byte(body)}
			}
			xs := p.ask(t, exchange.Candidate, post(other), post(toyAsk))
			p.one(t, exchange.Candidate, other) // so that the first answer alone is cold
			v := p.judge(t, &exchange.Case{ID: "c", Concurrency: 2, Exchanges: xs}, "consistency", nil)
			if v.Status != test.status || !strings.Contains(v.Reason, test.says) {
				t.Errorf("%s: %s %s", v.Status, v.Reason, v.Detail)
			}
		})
	}
}

// TestDraftingOfAnEngine catches drafts that change an answer.
func TestDraftingOfAnEngine(t *testing.T) {
	t.Parallel()
	cold := strings.Replace(toyAsk, `"temperature"`, `"cache_prompt":false,"temperature"`, 1)
	for name, test := range map[string]struct {
		gaps   toyGaps
		status exchange.VerdictStatus
		says   string
	}{
		"lossless": {nil, exchange.VerdictOK, ""},
		"lossy":    {toyGaps{sim.NumericsDrafted: -0.05, sim.NumericsAny: 0.05}, exchange.VerdictFail, "drafting changed exchange"},
	} {
		o := at3(test.gaps)
		o.Drafts = true
		p := newPair(t, sim.ToyOptions{}, o)
		c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{p.one(t, exchange.Candidate, cold)}}
		v := p.judge(t, c, "speculative_lossless", map[string]any{"off_fields": map[string]any{"draft": false}})
		if v.Status != test.status || !strings.Contains(v.Reason, test.says) {
			t.Errorf("%s: %s: %s", name, v.Status, v.Reason)
		}
		// An engine that drafts is no reference.
		if _, err := gates.GoldenOf(c.Exchanges[0], gates.Recording{Weights: "w"}); gates.Refused(err) != "drafting" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
