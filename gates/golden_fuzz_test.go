package gates

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// goldenChecks are the gates that hold an answer against something else, each with parameters that it takes.
func goldenChecks() []exchange.Check {
	return []exchange.Check{
		checkOf("near_tie", nil), checkOf("near_tie", map[string]any{"variants": []string{"-ub 128"}, "re_recordings": 1}), checkOf("text_divergence", nil),
		ownCheck("consistency", nil), ownCheck("determinism", map[string]any{"reps": 2, "pairs": 1, "concurrency": 2}), ownCheck("sampling", map[string]any{"draws": 2}),
		ownCheck("speculative_lossless", map[string]any{"off_fields": map[string]any{"draft": false}}),
		checkOf("needle", map[string]any{"expect": []string{"1"}}), ownCheck("over_limit", nil), checkOf("vision", nil), checkOf("agent_turns", nil),
	}
}

// fuzzedCase is a case of two answers to one request: a golden of the first, where it can be one, and the second as the
// subject, alone and twice.
func fuzzedCase(ask, golden, subject string, twice bool) *exchange.Case {
	named := func(id exchange.ID, body string) *exchange.Exchange {
		x := made(ask, body)
		x.ID = id
		return x
	}
	c := &exchange.Case{ID: "c", Concurrency: 1, Exchanges: []*exchange.Exchange{named("S", subject)}}
	if twice {
		c.Exchanges = append(c.Exchanges, named("T", subject))
	}
	if g, err := GoldenOf(named("R", golden), Recording{ID: "G", Weights: "sha256:aa", Concurrency: 1}); err == nil {
		c.Goldens = append(c.Goldens, g)
	}
	return c
}

// judgedOnce judges a case to its end: each need is answered with the same reply, and with none behind the first rounds.
func judgedOnce(t *testing.T, c *exchange.Case, check exchange.Check, reply string) string {
	t.Helper()
	for round := range 40 {
		v, needs, err := Judge(Prepare(c), check)
		if err != nil {
			t.Fatalf("%s: %v", check.Gate, err)
		}
		if len(needs) > 0 && v.Status != exchange.VerdictNotRun {
			t.Fatalf("%s is %s and needs %d answers", check.Gate, v.Status, len(needs))
		}
		if len(needs) == 0 {
			if v.Status == exchange.VerdictOK && len(v.Evidence) == 0 || v.Status != exchange.VerdictOK && v.Reason == "" {
				t.Fatalf("%s: %+v", check.Gate, v)
			}
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		for _, n := range needs {
			r := exchange.Reply{Need: n.ID, Reason: "nobody to ask"}
			if round < 6 {
				r = exchange.Reply{Need: n.ID, Exchange: spoken{target: n.Path, request: string(n.Body), body: reply}.exchange()}
				r.Exchange.ID = exchange.ID(n.ID)
			}
			c.Replies = append(c.Replies, r)
		}
	}
	t.Fatalf("%s never has enough", check.Gate)
	return ""
}

// FuzzGoldenGates holds that a case judged twice has one verdict, byte for byte; that no answer, golden or reply makes a
// gate panic or ask without end; and that nothing passes without what it is to be held against.
func FuzzGoldenGates(f *testing.F) {
	toy := newLab(f, "ref", nudged(3, gaps{sim.NumericsAny: 0.4}))
	other := newLab(f, "cand", nudged(3, gaps{sim.NumericsAny: -0.1}))
	a, b := string(toy.one("/completion", labAsk).Response.Body.Bytes()), string(other.one("/completion", labAsk).Response.Body.Bytes())
	f.Add(labAsk, a, a, a, uint8(0), false)
	f.Add(labAsk, a, b, a, uint8(0), false)
	f.Add(labAsk, b, a, b, uint8(1), true)
	f.Add(madeAsk, madeBody, madeBody, madeBody, uint8(2), true)
	f.Add(`{}`, ``, `{"content":"","tokens":[]}`, `{"error":{}}`, uint8(5), false)
	f.Add(`{"prompt":[],"n_predict":0}`, madeBody, `{"content":"ab","stop":true,"completion_probabilities":[{"top_logprobs":[null]}]}`, `null`, uint8(7), true)
	checks := goldenChecks()
	f.Fuzz(func(t *testing.T, ask, golden, subject, reply string, which uint8, twice bool) {
		check := checks[int(which)%len(checks)]
		once := judgedOnce(t, fuzzedCase(ask, golden, subject, twice), check, reply)
		if again := judgedOnce(t, fuzzedCase(ask, golden, subject, twice), check, reply); once != again {
			t.Fatalf("%s judged twice:\n%s\n%s", check.Gate, once, again)
		}
		for name, c := range map[string]*exchange.Case{
			"nothing":   {ID: "c"},
			"a golden":  {ID: "c", Goldens: fuzzedCase(ask, golden, subject, twice).Goldens},
			"one alone": {ID: "c", Exchanges: fuzzedCase(ask, golden, subject, twice).Exchanges[:1]},
		} {
			v, needs, err := Judge(Prepare(c), check)
			alone := name == "one alone" && slices.Contains([]string{"needle", "over_limit"}, check.Gate) // what they want to hear stands in the check
			if err != nil || v.Status == exchange.VerdictOK && !alone {
				t.Fatalf("%s passes with %s: %+v, %d needs, %v", check.Gate, name, v, len(needs), err)
			}
		}
	})
}
