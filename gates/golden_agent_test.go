package gates

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// loopAsk is turn n of a loop whose prompt holds what was said before.
func loopAsk(said string) string {
	raw, _ := json.Marshal(map[string]any{"prompt": labPrompt + said, "n_predict": 8, "temperature": 0, "n_probs": 5, "return_tokens": true})
	return string(raw)
}

// loop are turns on one engine, and goldens of their requests on another.
func loop(candidate, reference *lab, turns int) *exchange.Case {
	c := &exchange.Case{ID: "c", Turns: turns}
	said := ""
	for i := range turns {
		x := candidate.one("/completion", loopAsk(said))
		c.Exchanges = append(c.Exchanges, x)
		c.Goldens = append(c.Goldens, reference.golden("/completion", loopAsk(said), i))
		said += replyAnswer(x).text
	}
	return c
}

func TestAgentTurns(t *testing.T) {
	sound := sim.ToyOptions{Seed: 1}
	at := func(place int, gap float64) sim.ToyOptions {
		return sim.ToyOptions{Seed: 1, Nudges: []sim.Nudge{{At: place, Gaps: gaps{sim.NumericsAny: gap}}}}
	}
	judge := func(c *exchange.Case, reference *lab) exchange.Verdict {
		v, _ := settle(t, c, checkOf("agent_turns", nil), reference, nil)
		return v
	}
	reference := newLab(t, "ref", sound)
	v := judge(loop(newLab(t, "cand", sound), reference, 3), reference)
	hold(t, "sound", v, exchange.VerdictOK, "")
	if !strings.Contains(string(v.Detail), `"reuse_ok":true,"reused":0.9`) {
		t.Errorf("%s", v.Detail)
	}
	reference = newLab(t, "ref", at(labPlace+8+2, 0.4))
	hold(t, "near-tie in turn 2", judge(loop(newLab(t, "cand", at(labPlace+8+2, -0.1)), reference, 2), reference), exchange.VerdictOK, "")
	reference = newLab(t, "ref", at(labPlace+8+2, 1.9))
	v = judge(loop(newLab(t, "cand", at(labPlace+8+2, -0.1)), reference, 2), reference)
	hold(t, "failure in turn 2", v, exchange.VerdictFail, "turn 2 parts from golden")
	if !strings.Contains(string(v.Detail), `"re_recordings":2`) {
		t.Errorf("it was not recorded again: %s", v.Detail)
	}

	reference = newLab(t, "ref", sound)
	c := loop(newLab(t, "cand", sound), reference, 2)
	c.Turns = 3
	v = judge(c, reference)
	hold(t, "the reference stops there, too", v, exchange.VerdictOK, "")
	if !strings.Contains(string(v.Detail), "the conversation ends here without a call, as the reference's does") {
		t.Errorf("%s", v.Detail)
	}
	c = loop(newLab(t, "cand", sound), reference, 2)
	*c.Goldens[1].PromptTokens++
	hold(t, "rendered otherwise", judge(c, reference), exchange.VerdictFail, "turn 2: the prompt has 21 tokens, and the template makes 22")

	forgetful := newLab(t, "cand", sound)
	c = loop(forgetful, reference, 2)
	cold := strings.Replace(loopAsk(replyAnswer(c.Exchanges[0]).text), `"prompt"`, `"cache_prompt":false,"prompt"`, 1)
	c.Exchanges[1] = forgetful.one("/completion", cold)
	hold(t, "nothing reused", judge(c, reference), exchange.VerdictFail, "turn 2: 0 of 21 tokens of the history came from the cache")
	ids := func(n, from int64) (list []int64) {
		for i := range n {
			list = append(list, from+i)
		}
		return list
	}
	c.Goldens[0].PromptIDs, c.Goldens[1].PromptIDs = ids(13, 0), ids(21, 500) // the template begins otherwise
	*c.Goldens[1].PromptTokens = 21
	v = judge(c, reference)
	hold(t, "history rewritten", v, exchange.VerdictOK, "")
	if !strings.Contains(string(v.Detail), "the template rewrites the history from token 0 on") {
		t.Errorf("%s", v.Detail)
	}
}

func TestRewrittenHistory(t *testing.T) {
	ids := []int64{1, 2, 3, 4, 5, 6, 7, 8}
	g := &exchange.Golden{PromptIDs: ids, Tokens: []exchange.GoldenToken{{ID: 9}, {ID: 10}}}
	next := func(same int) *exchange.Golden {
		list := append(append([]int64{}, ids...), 9, 10, 11)
		for i := same; i < len(list); i++ {
			list[i] += 100
		}
		return &exchange.Golden{PromptIDs: list}
	}
	for _, c := range []struct {
		same     int
		verified bool
		waived   bool
	}{{11, true, false}, {10, true, false}, {9, true, true}, {9, false, false}, {7, false, true}} {
		if why := rewritten(g, next(c.same), c.verified); (why != "") != c.waived {
			t.Errorf("%+v: %q", c, why)
		}
	}
	if why := rewritten(g, &exchange.Golden{}, true); why != "" {
		t.Errorf("without ids: %q", why)
	}
}

// saidCalls is a chat answer with calls.
func saidCalls(content, thought string, calls ...[2]string) *exchange.Exchange {
	var list []map[string]any
	for i, c := range calls {
		list = append(list, map[string]any{"id": fmt.Sprint("c", i), "type": "function", "function": map[string]any{"name": c[0], "arguments": c[1]}})
	}
	message, _ := json.Marshal(map[string]any{"role": "assistant", "content": content, "reasoning_content": thought, "tool_calls": list})
	finish := "stop"
	if len(calls) > 0 {
		finish = "tool_calls"
	}
	return spoken{request: `{"temperature":0,"messages":[{"role":"user","content":"?"}],"tools":[{"type":"function","function":{"name":"look"}}]}`, message: string(message), finish: finish}.exchange()
}

func TestCalls(t *testing.T) {
	for name, test := range map[string]struct {
		call [2]string
		want string
	}{
		"fine":       {[2]string{"look", `{"at":1}`}, ""},
		"undeclared": {[2]string{"see", `{}`}, `"see" is called and was not declared`},
		"no JSON":    {[2]string{"look", `{"at":`}, `the arguments of "look" are no JSON object`},
		"no object":  {[2]string{"look", `[]`}, `the arguments of "look" are no JSON object`},
		"null":       {[2]string{"look", `null`}, `the arguments of "look" are no JSON object`},
	} {
		var turn agentTurn
		turn.calls(replyAnswer(saidCalls("", "", test.call)))
		if turn.problem != test.want || turn.Calls == nil || *turn.Calls != (test.want == "") {
			t.Errorf("%s: %q, %v", name, turn.problem, turn.Calls)
		}
	}
	var none agentTurn
	if none.calls(replyAnswer(saidCalls("no", ""))); none.Calls != nil {
		t.Error("an answer without calls has calls that are fine")
	}
}

// pieced is a golden of these pieces and channels.
func pieced(c channels, pieces ...string) *exchange.Golden {
	g := &exchange.Golden{ID: "G", Spelled: true, Basis: BasisLogprobs, Finish: "stop", Reasoning: c.reasoning, Text: c.text, Calls: c.calls}
	if len(c.calls) > 0 {
		g.Finish = "tool_calls"
	}
	for i, p := range pieces {
		g.Tokens = append(g.Tokens, exchange.GoldenToken{ID: int64(i), Text: p, Top: []exchange.TokenProb{{ID: int64(i), Text: p, Logprob: -0.1}}})
	}
	return g
}

// TestRebuiltTexts holds that the text that a model generated is put together again from what its parser left.
func TestRebuiltTexts(t *testing.T) {
	call := func(name, args string) exchange.ToolCall { return exchange.ToolCall{Name: name, Arguments: args} }
	thinking := pieced(channels{reasoning: "so", text: "yes"}, "<think>\n", "so", "\n</think>\n\n", "yes", "<|im_end|>")
	tools := pieced(channels{calls: []exchange.ToolCall{call("look", `{"at": 1}`), call("look", `{"at": 2}`)}},
		"<call>", `{"name": "`, "look", `", "arguments": `, `{"at": 1}`, "}</call>", "\n", "<call>", `{"name": "`, "look", `", "arguments": `, `{"at": 2}`, "}</call>")
	for name, test := range map[string]struct {
		g     *exchange.Golden
		c     channels
		texts []string
		why   string
	}{
		"the same":           {thinking, channels{reasoning: "so", text: "yes"}, []string{"<think>\nso\n</think>\n\nyes"}, ""},
		"another text":       {thinking, channels{reasoning: "so", text: "no"}, []string{"<think>\nso\n</think>\n\nno"}, ""},
		"only reasoning":     {thinking, channels{reasoning: "so what"}, []string{"<think>\nso what", "<think>\nso what\n</think>\n\n"}, ""},
		"calls, white space": {tools, channels{calls: []exchange.ToolCall{call("look", `{"at":1}`), call("look", `{"at":3}`)}}, []string{`<call>{"name": "look", "arguments": {"at": 1}}</call>` + "\n" + `<call>{"name": "look", "arguments": {"at":3}}</call>`}, ""},
		"one call":           {tools, channels{calls: []exchange.ToolCall{call("look", `{"at":1}`)}}, []string{`<call>{"name": "look", "arguments": {"at": 1}`}, ""},
		"it reasons":         {tools, channels{reasoning: "hm"}, nil, "how its reasoning was written is not on record"},
		"no example":         {pieced(channels{text: "other"}, "yes"), channels{text: "yes"}, nil, "does not hold its text"},
	} {
		texts, why := rebuilt(&test.c, test.g)
		if d := cmp.Diff(test.texts, texts); d != "" || !strings.Contains(why, test.why) || test.why == "" && why != "" {
			t.Errorf("%s: %q (-want +got)\n%s", name, why, d)
		}
	}
	ids := pieced(channels{text: "yes"}, "yes")
	ids.Spelled = false
	if _, why := rebuilt(&channels{text: "no"}, ids); !strings.Contains(why, "ids without texts") {
		t.Error(why)
	}
}

// TestEndsInReasoning holds that an answer that ends inside its reasoning follows a golden that closes it up to there.
func TestEndsInReasoning(t *testing.T) {
	g := pieced(channels{reasoning: "so it is", text: "yes"}, "<think>\n", "so", " it", " is", "</think>", "yes", "<|im_end|>")
	g.Tokens[4].Top = []exchange.TokenProb{{ID: 99, Text: "<|im_end|>", Logprob: -0.4}, {ID: 4, Text: "</think>", Logprob: -0.9}}
	f := follow(g, replyAnswer(saidCalls("", "so it is")))
	if f.stuck != "" || f.none || f.index != 4 || !f.candidate.end {
		t.Fatalf("%+v", f.divergence)
	}
	if tie := nearTie(g.Tokens[4].Top, nil, f.divergence.golden, f.candidate); !tie.near || tie.rule != ruleGap {
		t.Errorf("%+v", tie)
	}
	turn := agentTurn{Tie: tieDetail{Golden: "G", Position: &f.index, recording: g}}
	if !turn.endsInReasoning(replyAnswer(saidCalls("", "so it is"))) {
		t.Error("the reference prefers to end there, and that is not seen")
	}
	if d := cmp.Diff([]string{"the model ended inside its reasoning, which the reference prefers too"}, turn.Notes); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestDroppedCall(t *testing.T) {
	look := exchange.ToolCall{Name: "look", Arguments: `{"at": 1}`}
	g := pieced(channels{calls: []exchange.ToolCall{look, {Name: "look", Arguments: `{"at": 2}`}}}, "<call>", "look", `{"at": 1}`, "</call>", "<call>", "look", `{"at": 2}`, "</call>")
	one := replyAnswer(saidCalls("", "", [2]string{"look", `{"at":1}`})) // of 5 tokens
	if !droppedCall(one, g, &agentTurn{}) {
		t.Error("a second call that the parse dropped is not seen")
	}
	if g.Calls = g.Calls[:1]; droppedCall(one, g, &agentTurn{}) {
		t.Error("the golden makes one call only")
	}
}
