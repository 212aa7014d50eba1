package gates

import (
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// broken are the ways in which an answer to a gate's own question fails, with what its reason says.
var broken = map[string]struct {
	spoil func(*exchange.Exchange)
	says  string
}{
	"busy": {func(x *exchange.Exchange) {
		x.Response.Status, x.Response.Body = 503, exchange.NewBody([]byte(`{"error":{"message":"no slot"}}`))
	}, "answered with status 503"},
	"refused": {func(x *exchange.Exchange) {
		x.Response = exchange.Response{}
		x.End, x.Cause = exchange.EndConnectFailed, &exchange.Cause{Side: exchange.SideEngine, Text: "connection refused"}
	}, "did not answer: upstream_error (connection refused)"},
	"no answer in time": {func(x *exchange.Exchange) {
		x.Response, x.End = exchange.Response{}, exchange.EndTimeout
	}, "did not answer: timeout"},
	"cut": {func(x *exchange.Exchange) {
		b := x.Response.Body.Bytes()
		x.Response.Body, x.End = exchange.NewBody(b[:len(b)/2]), exchange.EndShort
	}, "answered with status 200, upstream_truncated"},
	"reset": {func(x *exchange.Exchange) {
		b := x.Response.Body.Bytes()
		x.Response.Body, x.End = exchange.NewBody(b[:len(b)/2]), exchange.EndReset
	}, "answered with status 200, upstream_truncated"},
	"record not whole": {func(x *exchange.Exchange) { x.State = exchange.StateTruncated }, "answer is not whole"},
}

// TestBrokenAnswersNeverPass breaks each answer to each question of the gates that hold an engine against itself, in each
// way: none of them passes then, and the reason names the side.
func TestBrokenAnswersNeverPass(t *testing.T) {
	one := func(l *lab) []*exchange.Exchange { return []*exchange.Exchange{l.one("/completion", labAsk)} }
	for name, test := range map[string]struct {
		check exchange.Check
		asked func(*lab) []*exchange.Exchange
	}{
		"consistency": {ownCheck("consistency", nil), func(l *lab) []*exchange.Exchange { return wave(l, otherAsk, labAsk) }},
		"determinism": {ownCheck("determinism", map[string]any{"reps": 3, "pairs": 1, "concurrency": 2}), one},
		"sampling":    {ownCheck("sampling", map[string]any{"seeds": 2, "seed_runs": 2, "draws": 2, "false_positive": 0.001}), one},
		"speculative_lossless": {ownCheck("speculative_lossless", map[string]any{"off_fields": map[string]any{"draft": false}}), func(l *lab) []*exchange.Exchange {
			return []*exchange.Exchange{l.one("/completion", strings.Replace(labAsk, `"temperature"`, `"cache_prompt":false,"temperature"`, 1))}
		}},
	} {
		o := nudged(3, nil)
		o.Drafts = name == "speculative_lossless"
		judge := func(spoil func(exchange.Need, *exchange.Exchange)) (exchange.Verdict, exchange.Needs) {
			l := newLab(t, "cand", o)
			c := &exchange.Case{ID: "c", Concurrency: 2, Exchanges: test.asked(l)}
			if name == "consistency" {
				l.one("/completion", otherAsk) // the first run alone is cold
			}
			l.spoil = spoil
			return settle(t, c, test.check, nil, l)
		}
		sound, needs := judge(nil)
		if sound.Status != exchange.VerdictOK || len(needs) == 0 {
			t.Fatalf("%s: %s with %d needs: %s", name, sound.Status, len(needs), sound.Reason)
		}
		for how, b := range broken {
			for k, n := range needs {
				at := 0
				v, _ := judge(func(_ exchange.Need, x *exchange.Exchange) {
					if at++; at == k+1 {
						b.spoil(x)
					}
				})
				hold(t, name+" "+n.ID+" "+how, v, exchange.VerdictIncomparable, b.says)
				if !strings.Contains(v.Reason, "candidate") {
					t.Errorf("%s %s %s: nobody is named: %s", name, n.ID, how, v.Reason)
				}
			}
		}
	}
}

// TestBrokenReferenceNeverPasses breaks all that a reference answers when a divergence is looked at again: it is no pass,
// where it would be one, and the reason says why the views are not there.
func TestBrokenReferenceNeverPasses(t *testing.T) {
	saved := gaps{sim.NumericsDecode: 1.36, sim.NumericsBatch: 1.28, sim.NumericsMicro: 1.06}
	for how, b := range broken {
		reference, candidate := newLab(t, "ref", nudged(3, saved)), newLab(t, "cand", nudged(3, gaps{sim.NumericsAny: -0.1}))
		c := &exchange.Case{ID: "c", Concurrency: 1, Goldens: []*exchange.Golden{reference.golden("/completion", labAsk, 0)},
			Exchanges: []*exchange.Exchange{candidate.one("/completion", labAsk)}}
		reference.spoil = func(n exchange.Need, x *exchange.Exchange) {
			if n.Path == "/completion" {
				b.spoil(x)
			}
		}
		v, needs := settle(t, c, checkOf("near_tie", map[string]any{"re_recordings": 2, "variants": []string{"-fa 0"}}), reference, candidate)
		hold(t, how, v, exchange.VerdictIncomparable, b.says)
		if !strings.Contains(v.Reason, "reference") || !strings.Contains(v.Reason, "without view one_batch") || !strings.Contains(v.Reason, "without re-recording 2") || len(needs) < 6 {
			t.Errorf("%s, %d needs: %s", how, len(needs), v.Reason)
		}
	}
}

// TestDegenerateWithGolden holds that an answer that runs in circles is none of the engine's faults where the reference's
// does so, too, and only there.
func TestDegenerateWithGolden(t *testing.T) {
	circling, empty := spoken{content: strings.Repeat("I will now explain. ", 15), finish: "length"}, spoken{content: "", finish: "stop"}
	for name, test := range map[string]struct {
		says   spoken
		golden exchange.Golden
		status exchange.VerdictStatus
		reason string
	}{
		"both in circles":        {circling, exchange.Golden{ID: "G", Text: strings.Repeat("ab ", 300), Finish: "length"}, exchange.VerdictSkipped, "14 times, and golden G is degenerate, too"},
		"only the answer":        {circling, exchange.Golden{ID: "G", Text: "The sea is deep.", Finish: "stop"}, exchange.VerdictFail, "14 times"},
		"golden of another turn": {circling, exchange.Golden{ID: "G", Turn: 1, Text: strings.Repeat("ab ", 300)}, exchange.VerdictFail, "14 times"},
		"both empty":             {empty, exchange.Golden{ID: "G", Finish: "stop"}, exchange.VerdictSkipped, "the answer is empty, and golden G"},
		"empty, golden calls":    {empty, exchange.Golden{ID: "G", Finish: "stop", Calls: []exchange.ToolCall{{Name: "f"}}}, exchange.VerdictFail, "empty"},
		"empty, golden thinks":   {empty, exchange.Golden{ID: "G", Finish: "stop", Reasoning: "hm"}, exchange.VerdictFail, "empty"},
	} {
		v, _, err := Judge(Prepare(&exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{test.says.exchange()}, Goldens: []*exchange.Golden{&test.golden}}), check("degenerate"))
		if err != nil {
			t.Fatal(err)
		}
		hold(t, name, v, test.status, test.reason)
	}
}
