package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// recordings are what the reference of a suite has answered, for a judgment at a later time.
type recordings struct{ *recorder.Store }

// Replies are those of the store.
func (r recordings) Replies(of exchange.ReferenceEngine, needs exchange.Needs) ([]exchange.Reply, error) {
	return r.Store.Replies(recorder.Reference{Weights: of.Weights, Engine: of.Identity}, needs)
}

// TestGateSuiteLoops lets models end their tool loops early. A missing call fails where the reference makes one, and passes
// where it makes none either; what the record alone says later is the same.
func TestGateSuiteLoops(t *testing.T) {
	prose := func(string) string {
		return `{"id":"x","object":"chat.completion","model":"toy","choices":[{"index":0,"message":{"role":"assistant","content":"The total is 68.75."},"finish_reason":"stop"}],` +
			`"usage":{"prompt_tokens":100,"completion_tokens":8,"total_tokens":108}}`
	}
	behind := func(first func(string) string) func(string) string { // it calls once, and then no more
		return func(body string) string {
			if strings.Contains(body, `"role":"tool"`) {
				return strings.Replace(first(body), `"prompt_tokens":100`, `"prompt_tokens_details":{"cached_tokens":120},"prompt_tokens":140`, 1)
			}
			return loopAnswer(body)
		}
	}
	double := func(body string) string {
		call := `{"id":"c%","type":"function","function":{"name":"read_invoice","arguments":"{\"invoice_id\":\"INV-472\"}"}}`
		return strings.NewReplacer(`"content":"The total is 68.75."`, `"content":null,"tool_calls":[`+strings.Replace(call, "%", "1", 1)+`,`+strings.Replace(call, "%", "2", 1)+`]`,
			`"stop"`, `"tool_calls"`).Replace(prose(body))
	}
	for name, test := range map[string]struct {
		candidate, reference func(string) string
		status               exchange.VerdictStatus
		says                 string
		turns                int
	}{
		"no call at all":        {prose, loopAnswer, exchange.VerdictFail, "turn 1: it makes no call (finish reason stop) where the golden calls read_invoice", 1},
		"no second call":        {behind(prose), loopAnswer, exchange.VerdictFail, "turn 2: it makes no call (finish reason stop) where the golden calls calculate_total", 2},
		"neither calls":         {prose, prose, exchange.VerdictOK, "", 1},
		"neither calls twice":   {behind(prose), behind(prose), exchange.VerdictOK, "", 2},
		"two calls at once":     {double, loopAnswer, exchange.VerdictFail, "turn 1: it calls read_invoice, read_invoice and the golden read_invoice", 1},
		"both make two at once": {double, double, exchange.VerdictOK, "", 1},
		"the whole loop":        {loopAnswer, loopAnswer, exchange.VerdictOK, "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t, sim.ToyOptions{}, sim.ToyOptions{})
			g.asked[exchange.Candidate].set(func(a *asked) { a.loops = test.candidate })
			g.asked[exchange.Reference].set(func(a *asked) { a.loops = test.reference })
			o := g.options(t, nil, scenario.FamilyAgent)
			o.Cases = o.Cases[:1]
			s, err := replay.NewGateSuite(o)
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Run(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			e := entry(t, r, "agent_loop", "agent_turns")
			if e.Status != test.status || !strings.HasPrefix(e.Reason, test.says) {
				t.Errorf("%s: %s\n%s", e.Status, e.Reason, e.Detail)
			}
			kind := map[exchange.VerdictStatus]error{exchange.VerdictFail: exchange.ErrGate, exchange.VerdictIncomparable: exchange.ErrMiss}[test.status]
			if err := r.Verdict(); !errors.Is(err, kind) || (err == nil) != (kind == nil) {
				t.Errorf("the report says %v", err)
			}
			g.writer.Drain(context.Background())
			report := s.Report(nil)
			run := g.run
			run.State, run.Replay = exchange.RunComplete, &report
			run.Counts.Stored = int64(report.Items.Requests) + int64(len(report.Cases[0].Met))
			if n := report.Cases[0].Judged; n != test.turns {
				t.Errorf("it is kept as judged by %d turns, not %d", n, test.turns)
			}
			again, err := replay.Revalidate(context.Background(), g.store, &run, replay.RevalidateOptions{Goldens: recordings{g.store}})
			if err != nil {
				t.Fatal(err)
			}
			if j := again.Cases[0]; j.Status != test.status || !strings.Contains(j.Reason, test.says) || again.ChangesTotal != 0 {
				t.Errorf("later it is %s: %s; %d verdicts changed", j.Status, j.Reason, again.ChangesTotal)
			}
		})
	}
}
