package gates

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// ownCheck is a check of a gate that needs no golden.
func ownCheck(gate string, params map[string]any) exchange.Check {
	if params == nil {
		return exchange.Check{Gate: gate}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	return exchange.Check{Gate: gate, Params: raw}
}

// wave are requests that the engine answers together.
func wave(l *lab, bodies ...string) []*exchange.Exchange {
	var asks []exchange.Need
	for _, b := range bodies {
		asks = append(asks, exchange.Need{Method: "POST", Path: "/completion", Body: []byte(b)})
	}
	return l.ask(asks...)
}

const otherAsk = `{"prompt":"one two three four five six seven eight nine ten","n_predict":8,"temperature":0,"n_probs":5,"return_tokens":true}`

func TestConsistency(t *testing.T) {
	for name, test := range map[string]struct {
		gaps   gaps // at generated token 3 of the first prompt
		status exchange.VerdictStatus
		reason string
	}{
		"sound":             {nil, exchange.VerdictOK, ""},
		"near-tie together": {gaps{sim.NumericsTogether: -0.2, sim.NumericsAny: 0.2}, exchange.VerdictOK, ""},
		"differs together":  {gaps{sim.NumericsTogether: -1.5, sim.NumericsAny: 1.5}, exchange.VerdictFail, "neighbors"},
		"race":              {gaps{sim.NumericsRace: -0.2, sim.NumericsAny: 0.2}, exchange.VerdictFail, "a race: "},
		"cache near-tie":    {gaps{sim.NumericsWarm: -0.2, sim.NumericsAny: 0.2}, exchange.VerdictOK, ""},
		"cache flip":        {gaps{sim.NumericsWarm: -1.5, sim.NumericsAny: 1.5}, exchange.VerdictFail, "from the cache"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "cand", nudged(3, test.gaps))
			c := &exchange.Case{ID: "c", Concurrency: 2, Exchanges: wave(l, otherAsk, labAsk)}
			l.one("/completion", otherAsk) // the first run alone is cold
			v, needs := settle(t, c, ownCheck("consistency", nil), nil, l)
			hold(t, name, v, test.status, test.reason)
			if len(needs) < 4 {
				t.Errorf("%d needs", len(needs))
			}
			if strings.HasPrefix(name, "cache") && strings.Contains(v.Reason, "a race") && !strings.Contains(v.Reason, "not a race") {
				t.Errorf("a flip by the cache is called a race: %s", v.Reason)
			}
			if strings.HasPrefix(name, "cache") && !strings.Contains(string(v.Detail), "cache") && !strings.Contains(string(v.Detail), "differs") {
				t.Errorf("%s", v.Detail)
			}
		})
	}
}

// TestConsistencyNeedsEvidence holds that what did not run together, was drawn, or has no path proves nothing.
func TestConsistencyNeedsEvidence(t *testing.T) {
	l := newLab(t, "cand", nudged(3, nil))
	c := &exchange.Case{ID: "c", Concurrency: 2, Exchanges: []*exchange.Exchange{l.one("/completion", labAsk), l.one("/completion", otherAsk)}}
	v, _ := settle(t, c, ownCheck("consistency", nil), nil, l)
	hold(t, "one after the other", v, exchange.VerdictIncomparable, "no two of the exchanges ran together")

	c.Exchanges = wave(l, strings.Replace(labAsk, `"temperature":0`, `"temperature":1`, 1), otherAsk)
	v, _ = settle(t, c, ownCheck("consistency", nil), nil, l)
	hold(t, "drawn", v, exchange.VerdictIncomparable, "tokens are drawn")

	c.Exchanges = wave(l, labAsk, otherAsk)
	v, _ = settle(t, c, ownCheck("consistency", nil), nil, nil)
	hold(t, "nobody to ask", v, exchange.VerdictIncomparable, "nobody to ask")

	plain := strings.NewReplacer(`"n_probs":5,`, "").Replace
	l = newLab(t, "cand", nudged(3, gaps{sim.NumericsTogether: -1.5, sim.NumericsAny: 1.5}))
	c = &exchange.Case{ID: "c", Concurrency: 2, Exchanges: wave(l, plain(otherAsk), plain(labAsk))}
	v, _ = settle(t, c, ownCheck("consistency", nil), nil, l)
	hold(t, "no lists", v, exchange.VerdictIncomparable, "lists no log-probabilities")
}

// TestConsistencyOfOneSlot holds that the answers of a member alone follow each other, so that an engine with one slot and a
// prompt cache takes as much from it in two of them, whatever was in it before.
func TestConsistencyOfOneSlot(t *testing.T) {
	asks := []string{labAsk, otherAsk, strings.Replace(labAsk, "tell me", "tell us", 1), strings.Replace(otherAsk, "one two", "one day", 1)}
	l := newLab(t, "cand", sim.ToyOptions{Seed: 1})
	c := &exchange.Case{ID: "c", Concurrency: 4, Exchanges: wave(l, asks...)}
	v, needs := settle(t, c, ownCheck("consistency", nil), nil, l)
	hold(t, "one slot", v, exchange.VerdictOK, "")
	if len(needs) != 3*len(asks) {
		t.Errorf("%d answers were asked for", len(needs))
	}
	for i := 1; i < len(needs); i++ {
		if apart := needs[i].Group != needs[i-1].Group; needs[i].Group == "" || apart != (i%3 == 0) {
			t.Errorf("%s follows %s", needs[i].ID, needs[i-1].ID)
		}
	}
}

func TestDeterminism(t *testing.T) {
	for name, test := range map[string]struct {
		gaps   gaps
		params map[string]any
		status exchange.VerdictStatus
		reason string
	}{
		"sound":            {nil, nil, exchange.VerdictOK, ""},
		"race":             {gaps{sim.NumericsRace: -0.2, sim.NumericsAny: 0.2}, nil, exchange.VerdictFail, "a race: alone"},
		"cache near-tie":   {gaps{sim.NumericsWarm: -0.2, sim.NumericsAny: 0.2}, nil, exchange.VerdictOK, ""},
		"cache flip":       {gaps{sim.NumericsWarm: -1.5, sim.NumericsAny: 1.5}, nil, exchange.VerdictFail, "by the prompt cache"},
		"neighbors":        {gaps{sim.NumericsTogether: -1.5, sim.NumericsAny: 1.5}, nil, exchange.VerdictFail, "by neighbors"},
		"nothing together": {nil, map[string]any{"reps": 2, "pairs": 0, "concurrency": 1}, exchange.VerdictIncomparable, "that were to run together"},
	} {
		l := newLab(t, "cand", nudged(3, test.gaps))
		c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{l.one("/completion", labAsk)}}
		v, _ := settle(t, c, ownCheck("determinism", test.params), nil, l)
		hold(t, name, v, test.status, test.reason)
	}
	e := Prepare(&exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{newLab(t, "cand", nudged(3, nil)).one("/completion", labAsk)}})
	for _, params := range []map[string]any{{"reps": 1}, {"reps": 2, "pairs": -1}, {"reps": 2, "concurrency": 1000}, {"again": 1}} {
		if _, _, err := Judge(e, ownCheck("determinism", params)); err == nil {
			t.Errorf("%v is taken", params)
		}
	}
}

func TestSpeculativeLossless(t *testing.T) {
	drafting := func(g gaps) *lab {
		o := nudged(3, g)
		o.Drafts = true
		return newLab(t, "cand", o)
	}
	off := map[string]any{"off_fields": map[string]any{"draft": false}}
	cold := strings.Replace(labAsk, `"temperature"`, `"cache_prompt":false,"temperature"`, 1)
	judge := func(l *lab, ask string, params map[string]any) exchange.Verdict {
		c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{l.one("/completion", ask)}}
		v, _ := settle(t, c, ownCheck("speculative_lossless", params), nil, l)
		return v
	}
	hold(t, "lossless", judge(drafting(nil), cold, off), exchange.VerdictOK, "")
	hold(t, "lossy", judge(drafting(gaps{sim.NumericsDrafted: -0.05, sim.NumericsAny: 0.05}), cold, off), exchange.VerdictFail, "drafting changed exchange")
	hold(t, "not drafting", judge(newLab(t, "cand", nudged(3, nil)), cold, off), exchange.VerdictIncomparable, "not speculating")
	hold(t, "still drafting", judge(drafting(nil), cold, map[string]any{"off_fields": map[string]any{"drafter": "none"}}), exchange.VerdictIncomparable, "was drafted")
	hold(t, "another path", judge(drafting(gaps{sim.NumericsWarm: -0.05, sim.NumericsAny: 0.05}), labAsk, off), exchange.VerdictIncomparable, "tokens from the cache")
	e := Prepare(&exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{drafting(nil).one("/completion", cold)}})
	if _, _, err := Judge(e, ownCheck("speculative_lossless", map[string]any{})); err == nil {
		t.Error("a check that does not say how drafts are switched off is taken")
	}
}

func TestSampling(t *testing.T) {
	judge := func(l *lab, ask string, goldens []*exchange.Golden, params map[string]any) exchange.Verdict {
		c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{l.one("/completion", ask)}, Goldens: goldens}
		v, _ := settle(t, c, checkOf("sampling", params), nil, l)
		return v
	}
	hold(t, "sound", judge(newLab(t, "cand", nudged(3, nil)), labAsk, nil, map[string]any{"draws": 200}), exchange.VerdictOK, "")
	other := newLab(t, "ref", nudged(0, gaps{sim.NumericsAny: 0.1})).golden("/completion", labAsk, 0)
	v := judge(newLab(t, "cand", nudged(0, gaps{sim.NumericsAny: 1.9})), labAsk, []*exchange.Golden{other}, map[string]any{"draws": 200})
	hold(t, "another distribution", v, exchange.VerdictFail, "total variation")
	var d samplingDetail
	if err := json.Unmarshal(v.Detail, &d); err != nil || d.Distance == nil || *d.Distance < 0.2 || *d.Bar > 0.2 || d.Seed != "reproduces" || d.TopK1 != "same" {
		t.Errorf("%s: %v", v.Detail, err)
	}
	hold(t, "a race of seeds", judge(newLab(t, "cand", nudged(0, gaps{sim.NumericsRace: -3, sim.NumericsAny: 3})), labAsk, nil, map[string]any{"seeds": 0}), exchange.VerdictFail, "")
	hold(t, "drawn", judge(newLab(t, "cand", nudged(3, nil)), strings.Replace(labAsk, `"temperature":0`, `"temperature":1`, 1), nil, nil), exchange.VerdictIncomparable, "not answered at temperature 0")
	hold(t, "no list", judge(newLab(t, "cand", nudged(3, nil)), strings.Replace(labAsk, `"n_probs":5,`, "", 1), nil, map[string]any{"draws": 10}), exchange.VerdictIncomparable, "no list of the first token")

	// An engine that ignores its seed answers every one alike.
	l := newLab(t, "cand", nudged(3, nil))
	x := l.one("/completion", labAsk)
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{x}}
	for {
		v, more, err := Judge(Prepare(c), checkOf("sampling", nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(more) == 0 {
			hold(t, "seeds ignored", v, exchange.VerdictFail, "5 seeds all give one answer")
			break
		}
		for _, n := range more {
			n.Body = []byte(labAsk)
			c.Replies = append(c.Replies, exchange.Reply{Need: n.ID, Exchange: l.ask(n)[0]})
		}
	}
	for _, params := range []map[string]any{{"seeds": -1}, {"seed_runs": 1}, {"false_positive": 0}, {"tolerance_tv": 0.9}, {"draws": 1_000_000}} {
		if _, _, err := Judge(Prepare(c), checkOf("sampling", params)); err == nil {
			t.Errorf("%v is taken", params)
		}
	}
}

// TestNoiseBar holds what the rule states of its noise: how often draws of the very distribution fail, and what shift
// is seen.
func TestNoiseBar(t *testing.T) {
	for _, probs := range [][]float64{{0.5, 0.5}, {0.74, 0.11, 0.05, 0.02, 0.01, 0.07}, {0.99, 0.01, 0}, {1, 0}} {
		bar := noiseBar(probs, 200, 0.001)
		failed := simulateDraws(probs, probs, 200, 20_000, bar)
		if failed > 40 { // 20 expected at 1 in 1000
			t.Errorf("%v: bar %.3f fails %d of 20000 samples of itself", probs, bar, failed)
		}
		t.Logf("%v: bar %.3f, %d of 20000 fail", probs, bar, failed)
	}
	even := []float64{0.5, 0.5}
	bar := noiseBar(even, 200, 0.001) + 0.01
	if seen := simulateDraws([]float64{0.67, 0.33}, even, 200, 2_000, bar); seen < 1_700 {
		t.Errorf("bar %.3f: a shift of 0.17 is seen in %d of 2000", bar, seen)
	}
}
