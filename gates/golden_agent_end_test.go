package gates

import (
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// goldenOf is a recording of an answer.
func goldenOf(t *testing.T, x *exchange.Exchange) *exchange.Golden {
	t.Helper()
	g, err := GoldenOf(x, Recording{ID: "G", Weights: "sha256:aa", Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestAgentLoopEnds holds what a conversation comes to that ends before its last turn.
func TestAgentLoopEnds(t *testing.T) {
	look := [2]string{"look", `{"at":1}`}
	see := [2]string{"see", `{}`}
	prose := saidCalls("It is 3.", "")
	strict := map[string]any{"calls": []string{"look", "look"}}
	free := map[string]any{"calls": []string{"look"}, "free": true}
	cut := saidCalls("", "")
	cut.Response.Body = exchange.NewBody([]byte(strings.Replace(string(cut.Response.Body.Bytes()), `"stop"`, `"length"`, 1)))
	refused := spoken{request: string(prose.Request.Body.Bytes()), status: 404, body: `{"error":{"message":"no such model"}}`}.exchange()
	lacking := spoken{request: string(prose.Request.Body.Bytes()), status: 400, body: `{"error":{"message":"this model does not support tools"}}`}.exchange()
	for name, c := range map[string]struct {
		said   *exchange.Exchange
		golden *exchange.Exchange // nil = none
		params map[string]any
		status exchange.VerdictStatus
		why    string
		note   string
	}{
		"no call, the golden calls":         {prose, saidCalls("", "", look), strict, exchange.VerdictFail, "turn 1: it makes no call (finish reason stop) where the golden calls look", ""},
		"cut, the golden calls":             {cut, saidCalls("", "", look), nil, exchange.VerdictFail, "turn 1: it makes no call (finish reason length) where the golden calls look", ""},
		"no call, nor the golden":           {prose, prose, strict, exchange.VerdictOK, "", "the conversation ends here without a call, as the reference's does"},
		"no call, no golden":                {prose, nil, strict, exchange.VerdictFail, "turn 1: it makes no call (finish reason stop) where the loop needs look", ""},
		"no call, no golden, a free loop":   {prose, nil, free, exchange.VerdictFail, "turn 1: it makes no call (finish reason stop) where the loop needs look", ""},
		"no call, no golden, no loop":       {prose, nil, nil, exchange.VerdictIncomparable, "turn 1: there is no golden of it", ""},
		"the call of the loop":              {saidCalls("", "", look), saidCalls("", "", look), strict, exchange.VerdictPartial, "1 of 3 turns", ""},
		"two calls at once":                 {saidCalls("", "", look, look), saidCalls("", "", look), strict, exchange.VerdictFail, "turn 1: it calls look, look and the golden look, and the loop cannot go on", ""},
		"two calls at once, by both":        {saidCalls("", "", look, look), saidCalls("", "", look, look), strict, exchange.VerdictOK, "", "the loop cannot go on behind look, look, which the reference calls too"},
		"two calls at once, in a free loop": {saidCalls("", "", look, look), saidCalls("", "", look, look), free, exchange.VerdictPartial, "1 of 3 turns", ""},
		"two calls at once, no golden":      {saidCalls("", "", look, look), nil, strict, exchange.VerdictFail, "turn 1: it calls look, look and the loop needs look, and cannot go on", ""},
		"an undeclared call":                {saidCalls("", "", see), saidCalls("", "", look), strict, exchange.VerdictFail, `turn 1: "see" is called and was not declared`, ""},
		"refused":                           {refused, saidCalls("", "", look), strict, exchange.VerdictFail, "turn 1: the request was refused: upstream_error (404", ""},
		"no tools":                          {lacking, saidCalls("", "", look), strict, exchange.VerdictUnsupported, "does not support tools", ""},
	} {
		t.Run(name, func(t *testing.T) {
			of := &exchange.Case{ID: "c", Turns: 3, Exchanges: []*exchange.Exchange{c.said}}
			if c.golden != nil {
				of.Goldens = []*exchange.Golden{goldenOf(t, c.golden)}
			}
			v, needs, err := Judge(Prepare(of), checkOf("agent_turns", c.params))
			if err != nil || len(needs) > 0 {
				t.Fatal(needs, err)
			}
			hold(t, name, v, c.status, c.why)
			if !strings.Contains(string(v.Detail), c.note) || c.status == exchange.VerdictFail && c.said != refused && !strings.Contains(string(v.Detail), `"calls_ok":false`) {
				t.Errorf("%s", v.Detail)
			}
		})
	}
}

// TestAgentLoopIsDone holds that an answer that is due is for the golden rule alone, and that one inside its reasoning is
// none where the reference ends there, too.
func TestAgentLoopIsDone(t *testing.T) {
	calls := goldenOf(t, saidCalls("", "", [2]string{"look", `{}`}))
	for name, c := range map[string]struct {
		loop   agentLoop
		inside bool
		fails  bool
	}{
		"strict and done":         {agentLoop{agentParams: &agentParams{Calls: []string{"look"}}, seen: 1, planned: 3}, false, false},
		"strict and not done":     {agentLoop{agentParams: &agentParams{Calls: []string{"look", "look"}}, seen: 1, planned: 3}, false, true},
		"free and done":           {agentLoop{agentParams: &agentParams{Calls: []string{"look"}, Free: true}, seen: 1, planned: 3, called: []string{"look"}}, false, false},
		"free and not done":       {agentLoop{agentParams: &agentParams{Calls: []string{"look", "see"}, Free: true}, seen: 1, planned: 3, called: []string{"look"}}, false, true},
		"of an older check":       {agentLoop{agentParams: &agentParams{}, seen: 1, planned: 3}, false, true},
		"inside of its reasoning": {agentLoop{agentParams: &agentParams{Calls: []string{"look", "look"}}, seen: 1, planned: 3}, true, false},
		"the last planned turn":   {agentLoop{agentParams: &agentParams{}, seen: 2, planned: 3}, false, true},
	} {
		turn := agentTurn{Tie: tieDetail{recording: calls}}
		if c.loop.end(&turn, replyAnswer(saidCalls("done", "")), c.inside); (turn.problem != "") != c.fails || c.loop.open {
			t.Errorf("%s: %q", name, turn.problem)
		}
	}
}
