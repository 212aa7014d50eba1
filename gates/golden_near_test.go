package gates

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// TestNearTieOfEngines tells a pass, a near-tie, one that views save, and a failure, each with token, gap and place.
func TestNearTieOfEngines(t *testing.T) {
	for name, test := range map[string]struct {
		reference, candidate gaps // at generated token 3
		status               exchange.VerdictStatus
		rule                 tieRule
		gap, bar             float64
		views                bool
	}{
		"pass":                 {nil, nil, exchange.VerdictOK, ruleMatch, 0, 0, false},
		"near-tie":             {gaps{sim.NumericsAny: 0.4}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictOK, ruleGap, 0.4, 0, false},
		"saved by views":       {gaps{sim.NumericsDecode: 1.36, sim.NumericsBatch: 1.28, sim.NumericsMicro: 1.06}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictOK, ruleMinGap, 1.06, 1.30, true},
		"a view prefers it":    {gaps{sim.NumericsDecode: 1.9, sim.NumericsBatch: -0.5, sim.NumericsMicro: 1.9}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictOK, ruleMinGap, -0.5, 1.5, true},
		"fail":                 {gaps{sim.NumericsAny: 1.8}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictFail, ruleTooLarge, 1.8, 1.0, true},
		"fail with noise":      {gaps{sim.NumericsDecode: 1.9, sim.NumericsBatch: 3.0, sim.NumericsMicro: 2.2}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictFail, ruleTooLarge, 1.9, 1.5, true},
		"second, first unsure": {gaps{sim.NumericsAny: 1.05}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictFail, ruleTooLarge, 1.05, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			reference, candidate := newLab(t, "ref", nudged(3, test.reference)), newLab(t, "cand", nudged(3, test.candidate))
			g := reference.golden("/completion", labAsk, 0)
			c := &exchange.Case{ID: "c", Concurrency: 1, Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}, Goldens: []*exchange.Golden{g}}
			v, needs := settle(t, c, checkOf("near_tie", nil), reference, candidate)
			d := nearOf(t, v)
			got := d.Turns[0]
			if test.rule == ruleMatch {
				if v.Status != test.status || !got.FullMatch || d.FullMatches != 1 || got.Position != nil || got.Gap != nil {
					t.Errorf("%s: %+v", v.Status, got)
				}
				return
			}
			if v.Status != test.status || got.Rule != test.rule || got.Gap == nil || math.Abs(*got.Gap-test.gap) > 1e-9 {
				t.Fatalf("%s by %s, gap %v: %s", v.Status, got.Rule, got.Gap, v.Reason)
			}
			checkPlace(t, got)
			if test.bar > 0 && math.Abs(*got.Bar-test.bar) > 1e-9 {
				t.Errorf("bar %v", *got.Bar)
			}
			checkViews(t, got, needs, test.views)
			if test.status == exchange.VerdictFail && !strings.Contains(v.Reason, "turn 1 parts from golden "+string(g.ID)+" at token 3 (byte ") {
				t.Error(v.Reason)
			}
		})
	}
}

// checkPlace holds that both tokens at generated token 3 are told.
func checkPlace(t *testing.T, got tieDetail) {
	t.Helper()
	if *got.Position != 3 || got.Token.Text == "" || got.GoldenToken.Text == got.Token.Text || got.Token.ID == nil {
		t.Errorf("place %v, %+v against %+v", *got.Position, got.Token, got.GoldenToken)
	}
}

// checkViews holds that both views were had, from one slot and in order, where they are wanted.
func checkViews(t *testing.T, got tieDetail, needs exchange.Needs, wanted bool) {
	t.Helper()
	if !wanted {
		if len(needs) > 0 {
			t.Errorf("%d needs, want none", len(needs))
		}
		return
	}
	if len(needs) == 0 || len(got.Views) != 2 || got.Views[0].Absent+got.Views[1].Absent != "" || got.Views[0].Gap == nil || got.Views[1].Gap == nil {
		t.Errorf("views %+v", got.Views)
	}
	group := ""
	for _, n := range needs {
		if n.Group == "" {
			continue
		}
		if group == "" {
			group = n.Group
		}
		if n.Group != group || !bytes.Contains(n.Body, []byte(`"id_slot":0`)) || n.Party != exchange.Reference {
			t.Errorf("need %+v", n)
		}
	}
}

// TestVerdictsRepeat holds that the same case gives the same bytes.
func TestVerdictsRepeat(t *testing.T) {
	reference, candidate := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 1.8})), newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: -0.1}))
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}, Goldens: []*exchange.Golden{reference.golden("/completion", labAsk, 0)}}
	check := checkOf("near_tie", map[string]any{"re_recordings": 2, "variants": []string{"-ub 128"}})
	first, _ := settle(t, c, check, reference, candidate)
	again, _, err := Judge(Prepare(c), check)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, again); d != "" {
		t.Errorf("(-first +again)\n%s", d)
	}
	hold(t, "after all chances", first, exchange.VerdictFail, "not proven noise by any variant")
}

// TestChatAgainstIDs compares an answer of chat, which lists no tokens, with a golden of the same chat that has.
func TestChatAgainstIDs(t *testing.T) {
	const chat = `{"messages":[{"role":"user","content":"of the sea"}],"temperature":0,"max_tokens":6`
	for name, test := range map[string]struct {
		reference, candidate gaps // at place 5 + 2
		status               exchange.VerdictStatus
		reason               string
	}{
		"pass":           {nil, nil, exchange.VerdictOK, ""},
		"near-tie":       {gaps{sim.NumericsAny: 0.4}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictOK, ""},
		"saved by views": {gaps{sim.NumericsDecode: 1.2, sim.NumericsMicro: 0.9}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictOK, ""},
		"fail":           {gaps{sim.NumericsAny: 1.8}, gaps{sim.NumericsAny: -0.1}, exchange.VerdictFail, "at token 2 "},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(g gaps) sim.ToyOptions {
				return sim.ToyOptions{Seed: 1, Nudges: []sim.Nudge{{At: 5 + 2, Gaps: g}}}
			}
			reference, candidate := newLab(t, "ref", at(test.reference)), newLab(t, "cand", at(test.candidate))
			g := reference.golden("/v1/chat/completions", chat+`,"logprobs":true,"top_logprobs":5}`, 0)
			c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/v1/chat/completions", chat+`}`)}, Goldens: []*exchange.Golden{g}}
			v, needs := settle(t, c, checkOf("near_tie", nil), reference, candidate)
			hold(t, name, v, test.status, test.reason)
			if test.reference != nil && (len(needs) == 0 || needs[0].Path != "/tokenize") {
				t.Errorf("the reference was not asked to split the text: %+v", needs)
			}
			if got := nearOf(t, v).Turns[0]; name != "pass" && (got.Token.ID == nil || got.Proof != "request") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAlternates(t *testing.T) {
	first := newLab(t, "ref", nudged(2, gaps{sim.NumericsAny: -0.2}))
	second := newLab(t, "ref", nudged(5, gaps{sim.NumericsAny: 0.3}))
	candidate := newLab(t, "cand", nudged(5, gaps{sim.NumericsAny: -0.3}))
	a, b := first.golden("/completion", labAsk, 0), second.golden("/completion", labAsk, 0)
	a.ID, b.ID, b.Alternate = "first", "second", 1
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}, Goldens: []*exchange.Golden{b, a}}
	v, _ := settle(t, c, checkOf("near_tie", map[string]any{"no_views": true}), nil, nil)
	if got := nearOf(t, v).Turns[0]; v.Status != exchange.VerdictOK || got.Golden != "second" || *got.Position != 5 {
		t.Errorf("%s: %s: %+v", v.Status, v.Reason, got)
	}
}

// TestRerecording holds that a failure that another recording does not show was noise.
func TestRerecording(t *testing.T) {
	recorded, now := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 1.8})), newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 0.7}))
	candidate := newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: -0.1}))
	ask := strings.Replace(labAsk, `"`+labPrompt+`"`, "[1,2,3,4,5,6,7,8,9,10,11,12,13]", 1)
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", ask)}, Goldens: []*exchange.Golden{recorded.golden("/completion", ask, 0)}}
	v, needs := settle(t, c, checkOf("near_tie", map[string]any{"re_recordings": 2, "no_views": true}), now, candidate)
	bodies := map[string]bool{} // a cache of answers would give the same one for the same request
	for _, n := range needs {
		bodies[string(n.Body)] = true
	}
	if len(bodies) != len(needs) {
		t.Errorf("%d recordings are asked for by %d requests", len(needs), len(bodies))
	}
	if got := nearOf(t, v).Turns[0]; v.Status != exchange.VerdictOK || got.Recordings != 2 || math.Abs(*got.Gap-0.7) > 1e-9 || len(needs) != 2 {
		t.Errorf("%s: %s: %+v", v.Status, v.Reason, got)
	}
}

func TestVariants(t *testing.T) {
	reference, variant := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 1.8})), newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: -0.4}))
	candidate := newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: -0.1}))
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}, Goldens: []*exchange.Golden{reference.golden("/completion", labAsk, 0)}}
	check := checkOf("near_tie", map[string]any{"variants": []string{"-ub 128", "-fa off"}})
	for {
		v, more, err := Judge(Prepare(c), check)
		if err != nil {
			t.Fatal(err)
		}
		if len(more) == 0 {
			got := nearOf(t, v).Turns[0]
			if v.Status != exchange.VerdictOK || got.Rule != ruleVariantAgrees || len(got.Variants) != 2 || len(got.Variants[0].Top) != 5 {
				t.Errorf("%s: %s: %+v", v.Status, v.Reason, got)
			}
			return
		}
		for _, n := range more {
			of := reference
			if n.Variant == "-fa off" {
				of = variant
			}
			c.Replies = append(c.Replies, exchange.Reply{Need: n.ID, Exchange: of.ask(n)[0]})
		}
	}
}

// TestAbsentViews holds that a view that cannot be had is left out, named, and never widens the bar.
func TestAbsentViews(t *testing.T) {
	reference, candidate := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 1.2})), newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: -0.1}))
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}, Goldens: []*exchange.Golden{reference.golden("/completion", labAsk, 0)}}
	v, _ := settle(t, c, checkOf("near_tie", nil), nil, candidate)
	hold(t, "nobody to ask", v, exchange.VerdictFail, "without view one_batch: nobody to ask; without view micro_batch_8: nobody to ask")

	// An engine that cannot extend its cache reads everything again.
	c.Replies = nil
	for {
		v, more, err := Judge(Prepare(c), checkOf("near_tie", nil))
		if err != nil {
			t.Fatal(err)
		}
		if len(more) == 0 {
			hold(t, "no small steps", v, exchange.VerdictFail, "without view micro_batch_8: the reference does not extend its cache in small steps: 0 of 8")
			return
		}
		for _, n := range more {
			n.Body = bytes.Replace(n.Body, []byte(`"cache_prompt":true`), []byte(`"cache_prompt":false`), 1)
			c.Replies = append(c.Replies, exchange.Reply{Need: n.ID, Exchange: reference.ask(n)[0]})
		}
	}
}

// TestLongPromptsNeedALaunch holds that small batches of a long prompt are asked of a launch, not step by step.
func TestLongPromptsNeedALaunch(t *testing.T) {
	ids := make([]int, 3000)
	for i := range ids {
		ids[i] = i % 150
	}
	raw, _ := json.Marshal(map[string]any{"prompt": ids, "n_predict": 4, "temperature": 0, "n_probs": 5, "return_tokens": true})
	at := func(gap float64) sim.ToyOptions {
		return sim.ToyOptions{Seed: 1, Nudges: []sim.Nudge{{At: 3001, Gaps: gaps{sim.NumericsAny: gap}}}}
	}
	reference, candidate := newLab(t, "ref", at(1.7)), newLab(t, "cand", at(-1))
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", string(raw))}, Goldens: []*exchange.Golden{reference.golden("/completion", string(raw), 0)}}
	v, needs := settle(t, c, checkOf("near_tie", nil), reference, candidate)
	hold(t, "long", v, exchange.VerdictFail, "at token 1 ")
	if len(needs) != 2 || needs[1].Variant != "-ub 8" || needs[1].Group != "" {
		t.Errorf("%d needs", len(needs))
	}
}

// TestRefusedGoldens holds that a golden that is stale or of something else is refused by the name of the field.
func TestRefusedGoldens(t *testing.T) {
	for name, test := range map[string]struct {
		change func(g *exchange.Golden)
		params map[string]any
		reason string
	}{
		"other weights":   {func(g *exchange.Golden) { g.Weights = "sha256:bb" }, nil, "refused for its weights: the golden was made with sha256:bb and the subject with sha256:aa"},
		"unknown weights": {func(g *exchange.Golden) { g.Weights = "" }, nil, "refused for its weights: they are not known of the golden"},
		"of the subject":  {func(*exchange.Golden) {}, map[string]any{"weights": ""}, "refused for its weights: they are not known of the subject"},
		"another build":   {func(*exchange.Golden) {}, map[string]any{"build": "b9"}, `refused for its build: the golden is of "ref" and "b9" is asked for`},
		"too old":         {func(g *exchange.Golden) { g.Made = g.Made.Add(-time.Hour) }, map[string]any{"max_age_s": 60}, "refused for its age: the golden was 1h0m0s old and 1m0s is the limit"},
		"newer schema":    {func(g *exchange.Golden) { g.Version++ }, nil, "refused for its schema: it has version 2 and this build knows up to 1"},
		"sampling":        {func(g *exchange.Golden) { g.Sampling = []byte(`{"repeat_penalty":1.1,"temperature":0}`) }, nil, "refused for its sampling: repeat_penalty is 1.1 in the golden and not named in the subject"},
		"temperature":     {func(g *exchange.Golden) { g.Sampling = []byte(`{"temperature":0.8}`) }, nil, "refused for its sampling: temperature is 0.8 in the golden and 0 in the subject"},
		"prompt":          {func(g *exchange.Golden) { g.PromptDigest = "sha256:00" }, nil, "refused for its prompt: the golden answers another request"},
		"prompt tokens":   {func(g *exchange.Golden) { *g.PromptTokens++ }, nil, "refused for its prompt: the golden's has 14 tokens and the subject's 13"},
		"unproven prompt": {func(g *exchange.Golden) { g.PromptTokens = nil }, nil, "cannot be proven"},
		"drafted":         {func(g *exchange.Golden) { on := true; g.Drafting = &on }, nil, "refused for its drafting"},
		"of another turn": {func(g *exchange.Golden) { g.Turn = 1 }, nil, "there is no golden of it"},
		"no number":       {func(g *exchange.Golden) { g.Tokens[0].Top[0].Logprob = 0.5 }, nil, "refused for its log-probability"},
	} {
		for _, gate := range []string{"near_tie", "text_divergence"} {
			reference, candidate := newLab(t, "ref", nudged(3, nil)), newLab(t, "cand", nudged(3, nil))
			g := reference.golden("/completion", labAsk, 0)
			c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}}
			test.change(g)
			c.Goldens = []*exchange.Golden{g}
			v, _ := settle(t, c, checkOf(gate, test.params), nil, nil)
			hold(t, gate+": "+name, v, exchange.VerdictIncomparable, test.reason)
		}
	}
	reference, candidate := newLab(t, "ref", nudged(3, nil)), newLab(t, "cand", nudged(3, nil))
	g := reference.golden("/completion", labAsk, 0)
	g.Weights = ""
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}, Goldens: []*exchange.Golden{g}}
	v, _ := settle(t, c, checkOf("near_tie", map[string]any{"unknown_weights": true}), nil, nil)
	hold(t, "unknown weights accepted", v, exchange.VerdictOK, "")
}

// TestConditionsAreNamed holds that a warm cache and neighbors are named and do not refuse, and that drawn tokens do.
func TestConditionsAreNamed(t *testing.T) {
	reference, candidate := newLab(t, "ref", nudged(3, nil)), newLab(t, "cand", nudged(3, nil))
	g := reference.golden("/completion", labAsk, 0)
	candidate.one("/completion", labAsk)
	warm := candidate.one("/completion", labAsk)
	c := &exchange.Case{ID: "c", Concurrency: 4, Exchanges: []*exchange.Exchange{warm}, Goldens: []*exchange.Golden{g}}
	v, _ := settle(t, c, checkOf("near_tie", nil), nil, nil)
	hold(t, "warm", v, exchange.VerdictOK, "")
	fields := map[string]string{}
	for _, d := range nearOf(t, v).Turns[0].Differences {
		fields[d.Field] = d.Subject
	}
	if d := cmp.Diff(map[string]string{"cached_tokens": "12", "concurrency": "4"}, fields); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}

	hot := strings.Replace(labAsk, `"temperature":0`, `"temperature":0.8,"seed":7`, 1)
	drawn := newLab(t, "ref", sim.ToyOptions{Seed: 1}).golden("/completion", hot, 0)
	other := newLab(t, "cand", sim.ToyOptions{Seed: 2}).one("/completion", hot)
	for gate, reason := range map[string]string{"near_tie": "tokens are drawn", "text_divergence": "tokens are drawn, and the engines differ"} {
		c := &exchange.Case{ID: "c", Concurrency: 1, Exchanges: []*exchange.Exchange{other}, Goldens: []*exchange.Golden{drawn}}
		v, _ := settle(t, c, checkOf(gate, nil), nil, nil)
		hold(t, gate+" of another model", v, exchange.VerdictIncomparable, reason)
		c.Exchanges[0] = newLab(t, "cand", sim.ToyOptions{Seed: 1}).one("/completion", hot)
		v, _ = settle(t, c, checkOf(gate, nil), nil, nil)
		hold(t, gate+" of the same draw", v, exchange.VerdictOK, "")
	}
	c.Exchanges[0], c.Goldens[0] = newLab(t, "ref", sim.ToyOptions{Seed: 2}).one("/completion", hot), drawn
	c.Concurrency = 1
	v, _ = settle(t, c, checkOf("text_divergence", nil), nil, nil)
	hold(t, "the same build under the same conditions", v, exchange.VerdictFail, "at token 0 ")
	c.Concurrency = 4
	v, _ = settle(t, c, checkOf("text_divergence", nil), nil, nil)
	hold(t, "with neighbors", v, exchange.VerdictIncomparable, "concurrency 4 against 1")
}

func TestTextDivergenceOfEngines(t *testing.T) {
	reference, candidate := newLab(t, "ref", nudged(3, gaps{sim.NumericsAny: 0.1})), newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: -0.1}))
	g := reference.golden("/completion", labAsk, 0)
	c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}, Goldens: []*exchange.Golden{g}}
	v, _ := settle(t, c, checkOf("text_divergence", nil), nil, nil)
	hold(t, "differs", v, exchange.VerdictFail, "at token 3 (byte ")
	c.Exchanges[0] = newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: 0.5})).one("/completion", labAsk)
	v, _ = settle(t, c, checkOf("text_divergence", nil), nil, nil)
	hold(t, "same", v, exchange.VerdictOK, "")
}

// TestCutAnswers holds that an answer which ends long before the golden, or the other way round, is no match, that an empty one
// fails, and that how much was compared is told.
func TestCutAnswers(t *testing.T) {
	l := newLab(t, "ref", nudged(3, nil))
	whole := l.golden("/completion", strings.Replace(labAsk, `"n_predict":8`, `"n_predict":32`, 1), 0)
	short := l.golden("/completion", strings.Replace(labAsk, `"n_predict":8`, `"n_predict":2`, 1), 0)
	empty := spoken{content: "", finish: "length", request: `{"model":"m","temperature":0,"messages":[]}`, usage: json.RawMessage(`{"prompt_tokens":9,"completion_tokens":64}`)}
	hidden := empty
	hidden.usage = json.RawMessage(`{"prompt_tokens":9,"completion_tokens":64,"completion_tokens_details":{"reasoning_tokens":64}}`)
	other := *whole
	n := int64(9)
	other.PromptTokens, other.PromptIDs, other.Path = &n, nil, "/completion"
	for name, test := range map[string]struct {
		x        *exchange.Exchange
		golden   *exchange.Golden
		status   exchange.VerdictStatus
		reason   string
		compared int
	}{
		"answer cut":   {l.one("/completion", strings.Replace(labAsk, `"n_predict":8`, `"n_predict":2`, 1)), whole, exchange.VerdictIncomparable, "the answer ends at its limit after", 2},
		"golden cut":   {l.one("/completion", strings.Replace(labAsk, `"n_predict":8`, `"n_predict":32`, 1)), short, exchange.VerdictIncomparable, "the golden ends at its limit after", 2},
		"most of it":   {l.one("/completion", strings.Replace(labAsk, `"n_predict":8`, `"n_predict":28`, 1)), whole, exchange.VerdictOK, "", 28},
		"empty":        {empty.exchange(), &other, exchange.VerdictFail, "is empty, where golden", 0},
		"thought only": {hidden.exchange(), &other, exchange.VerdictIncomparable, "the answer is empty", 0},
	} {
		c := &exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{test.x}, Goldens: []*exchange.Golden{test.golden}}
		v, _ := settle(t, c, checkOf("near_tie", nil), nil, nil)
		hold(t, name, v, test.status, test.reason)
		if d := nearOf(t, v); d.Turns[0].Compared != test.compared {
			t.Errorf("%s: %d tokens compared, want %d", name, d.Turns[0].Compared, test.compared)
		}
	}
}
