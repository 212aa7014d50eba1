package gates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// vectorCalls are the calls of a vector as an engine sends them.
type vectorCalls []struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (v vectorCalls) calls() []replyCall {
	var out []replyCall
	for _, c := range v {
		out = append(out, replyCall{c.ID, c.Type, c.Function.Name, c.Function.Arguments})
	}
	return out
}

// policyCase are the vectors of the tool policies. An unknown key would be a rule that nobody holds.
type policyCase struct {
	ID, Title, Area, Seed, Confidence string

	Input struct {
		Calls []struct {
			Name     string      `json:"name"`
			Expected int         `json:"expected_calls"`
			Cities   []string    `json:"cities"`
			Finish   string      `json:"finish_reason"`
			Usage    bool        `json:"usage_present"`
			Calls    vectorCalls `json:"tool_calls"`
		} `json:"calls"`
		Final []struct {
			Content string      `json:"content"`
			Finish  string      `json:"finish_reason"`
			Calls   vectorCalls `json:"tool_calls"`
		} `json:"final_after_none"`
		Rejections []struct {
			Policy string `json:"policy"`
			Status int    `json:"http_status"`
			Error  any    `json:"error"`
		} `json:"rejections"`
		Endless bool `json:"stream_without_done"`
	}
	Expected struct {
		Calls      []exchange.VerdictStatus `json:"calls"`
		Final      []exchange.VerdictStatus `json:"final_after_none"`
		Rejections []exchange.VerdictStatus `json:"rejections"`
		Endless    string                   `json:"stream_without_done"`
	}
}

func policyVectors(t *testing.T) policyCase {
	t.Helper()
	b, err := os.ReadFile("testdata/tool-semantics.json")
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Format int
		Cases  []policyCase
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&index); err != nil {
		t.Fatal(err)
	}
	if index.Format != 1 || len(index.Cases) != 1 || index.Cases[0].ID != "tool_policy_gates" {
		t.Fatalf("format %d with %d cases", index.Format, len(index.Cases))
	}
	c := index.Cases[0]
	in, want := c.Input, c.Expected
	if len(in.Calls) != 7 || len(want.Calls) != 7 || len(in.Final) != 2 || len(want.Final) != 2 || len(in.Rejections) != 3 || len(want.Rejections) != 3 || !in.Endless {
		t.Fatal("vectors are missing, or expectations for them")
	}
	return c
}

func TestPolicyVectors(t *testing.T) {
	c := policyVectors(t)
	for _, stream := range []bool{false, true} {
		o := scenario.Options{Stream: stream}
		for i, in := range c.Input.Calls {
			id := "policy_required"
			if in.Expected == 2 {
				id = "policy_two_calls"
			}
			a := reply{calls: in.Calls.calls(), finish: in.Finish}
			if !in.Usage {
				a.usage = "null"
			}
			if v := (dialog{scenario: id, o: o}).verdict(t, a); v.Status != c.Expected.Calls[i] {
				t.Errorf("%s: %s (%s), want %s", in.Name, v.Status, v.Reason, c.Expected.Calls[i])
			}
		}
		for i, in := range c.Input.Final {
			v := (dialog{scenario: "policy_none_history", o: o}).verdict(t, withCalls(weather("call_1", "Paris")),
				reply{content: in.Content, finish: in.Finish, calls: in.Calls.calls()})
			if v.Status != c.Expected.Final[i] {
				t.Errorf("final %d: %s (%s), want %s", i, v.Status, v.Reason, c.Expected.Final[i])
			}
		}
		for i, in := range c.Input.Rejections {
			a := reply{status: in.Status, body: text(map[string]any{"error": in.Error})}
			if v := (dialog{scenario: "policy_" + in.Policy, o: o}).verdict(t, a); v.Status != c.Expected.Rejections[i] {
				t.Errorf("rejection %d: %s (%s), want %s", i, v.Status, v.Reason, c.Expected.Rejections[i])
			}
		}
	}
	endless := dialog{scenario: "policy_required", o: scenario.Options{Stream: true}}
	evidence := endless.converse(t, reply{calls: []replyCall{weather("call_1", "Paris")}, endless: true})
	wantVerdict(t, judgedCase(t, evidence, evidence.Checks[0]), exchange.VerdictFail, "does not end with [DONE]")
	wantVerdict(t, judgedCase(t, evidence, check("stream_done")), exchange.VerdictFail, "does not end with [DONE]")
	if len(evidence.Exchanges[0].Response.Body.Bytes()) == 0 {
		t.Error("what came before the missing end is not in the record")
	}
}

// TestPolicyGateOfGoodAnswers holds that each policy can be passed, streamed or not.
func TestPolicyGateOfGoodAnswers(t *testing.T) {
	refusal := func(message string) reply {
		return reply{status: 400, body: text(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": message}})}
	}
	paris := withCalls(weather("call_1", "Paris"))
	good := map[string][]reply{
		"required": {paris}, "named": {paris}, "single_call": {paris}, "required_thinking": {paris}, "named_thinking": {paris},
		"two_calls":        {withCalls(weather("a-1", "Oslo"), weather("a-2", "Paris"))},
		"none_history":     {paris, {content: ` {"temperature_c":19,"city":"Paris"}`}},
		"invalid_required": {refusal("tool_choice required needs at least one tool")},
		"invalid_named":    {refusal("tool undeclared_weather_tool is unknown")},
		"invalid_schema":   {refusal("keyword pattern cannot be enforced")},
	}
	for _, s := range scenario.Suite(scenario.SuitePolicies) {
		answers, there := good[s.TagName()]
		if !there {
			t.Fatalf("no good answers for %s", s.ID)
		}
		delete(good, s.TagName())
		for _, stream := range []bool{false, true} {
			d := dialog{scenario: s.ID, o: scenario.Options{Stream: stream, Tag: s.TagName() + "-c1-r0-i0", Model: "m"}}
			wantVerdict(t, d.verdict(t, answers...), exchange.VerdictOK, "")
		}
	}
	if len(good) > 0 {
		t.Errorf("no scenario for %v", good)
	}
}

// TestPolicyGateOfBrokenAnswers breaks a good answer in one way each.
func TestPolicyGateOfBrokenAnswers(t *testing.T) {
	with := func(change func(*replyCall)) reply {
		c := weather("call_1", "Paris")
		change(&c)
		return withCalls(c)
	}
	args := func(v any) reply { return with(func(c *replyCall) { c.args = v }) }
	paris := weather("call_1", "Paris")
	for name, b := range map[string]struct {
		policy string
		answer reply
		why    string
	}{
		"no usage":            {"required", reply{calls: []replyCall{paris}, usage: "null"}, "no usage"},
		"finish stop":         {"named", reply{calls: []replyCall{paris}, finish: "stop"}, `finish reason is "stop"`},
		"finish null":         {"required", reply{calls: []replyCall{paris}, finish: "null"}, "without a finish reason"},
		"no call":             {"required", reply{content: "It is 19 degrees.", finish: "tool_calls"}, "1 calls are expected, the answer makes 0"},
		"two calls":           {"single_call", withCalls(paris, weather("call_2", "Paris")), "the answer makes 2"},
		"one of two":          {"two_calls", withCalls(paris), "the answer makes 1"},
		"one city twice":      {"two_calls", withCalls(paris, weather("call_2", "Paris")), "about Paris, Paris, not Oslo, Paris"},
		"no id":               {"required", with(func(c *replyCall) { c.id = "" }), `the id ""`},
		"odd id":              {"required", with(func(c *replyCall) { c.id = "call 1" }), `the id "call 1"`},
		"same id":             {"two_calls", withCalls(paris, weather("call_1", "Oslo")), "is that of another call"},
		"type":                {"required", with(func(c *replyCall) { c.kind = "tool" }), `type is "tool"`},
		"name":                {"required", with(func(c *replyCall) { c.name = "get_local_time" }), `calls "get_local_time"`},
		"arguments an object": {"required", args(map[string]string{"city": "Paris", "units": "celsius"}), "not a string"},
		"arguments broken":    {"required", args(`{"city":"Paris","units":"celsius"`), "no strict JSON"},
		"arguments NaN":       {"required", args(`{"city":"Paris","units":NaN}`), "no strict JSON"},
		"key twice":           {"required", args(`{"city":"Oslo","city":"Paris","units":"celsius"}`), "duplicate key"},
		"key too many":        {"required", args(`{"city":"Paris","units":"celsius","day":"now"}`), "not exactly"},
		"key missing":         {"required", args(`{"city":"Paris"}`), "not exactly"},
		"city a list":         {"required", args(`{"city":["Paris"],"units":"celsius"}`), "not exactly"},
		"units":               {"required", args(`{"city":"Paris","units":"fahrenheit"}`), "not celsius"},
		"wrong city":          {"required", withCalls(weather("call_1", "London")), "about London, not Paris"},
		"refused":             {"required", reply{status: 400, body: `{"error":{"message":"no"}}`}, "the request was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stream := range []bool{false, true} {
				if stream && b.answer.body != "" {
					continue
				}
				d := dialog{scenario: "policy_" + b.policy, o: scenario.Options{Stream: stream}}
				wantVerdict(t, d.verdict(t, b.answer), exchange.VerdictFail, b.why)
			}
		})
	}
}

func TestPolicyGateOfBrokenAnswersBehindTheCall(t *testing.T) {
	for name, b := range map[string]struct {
		answer reply
		why    string
	}{
		"fence":       {reply{content: "```json\n{\"city\":\"Paris\",\"temperature_c\":19}\n```"}, "no JSON"},
		"a float":     {reply{content: `{"city":"Paris","temperature_c":19.0}`}, "want"},
		"a key more":  {reply{content: `{"city":"Paris","temperature_c":19,"ok":true}`}, "want"},
		"a call":      {withCalls(weather("call_2", "Paris")), "where calls are forbidden"},
		"cut":         {reply{content: `{"city":"Paris","temperature_c":19}`, finish: "length"}, `finish reason is "length"`},
		"no usage":    {reply{content: `{"city":"Paris","temperature_c":19}`, usage: "null"}, "no usage"},
		"refused":     {reply{status: 422, body: `{"error":{"message":"no"}}`}, "the request was refused"},
		"wrong value": {reply{content: `{"city":"Paris","temperature_c":20}`}, "want"},
	} {
		t.Run(name, func(t *testing.T) {
			v := (dialog{scenario: "policy_none_history"}).verdict(t, withCalls(weather("call_1", "Paris")), b.answer)
			wantVerdict(t, v, exchange.VerdictFail, "turn 2: ")
			wantVerdict(t, v, exchange.VerdictFail, b.why)
		})
	}
	wantVerdict(t, (dialog{scenario: "policy_none_history"}).verdict(t, withCalls(weather("call_1", "Paris"))), exchange.VerdictPartial, "1/2 turns")
	for _, status := range []int{401, 403, 408, 429, 500} {
		v := (dialog{scenario: "policy_required"}).verdict(t, reply{status: status, body: `{"error":{"message":"no"}}`})
		wantVerdict(t, v, exchange.VerdictNotRun, "turn 1: ")
	}
}

func TestPolicyGateOfRefusals(t *testing.T) {
	refusal := func(status int, kind, message string) reply {
		return reply{status: status, body: text(map[string]any{"error": map[string]any{"type": kind, "message": message}})}
	}
	for name, b := range map[string]struct {
		answer reply
		why    string
	}{
		"accepted":      {withCalls(weather("call_1", "Paris")), "the status is 200"},
		"other status":  {refusal(422, "invalid_request_error", "pattern"), "the status is 422"},
		"other type":    {refusal(400, "BadRequestError", "pattern"), `type of the error is "BadRequestError"`},
		"other message": {refusal(400, "invalid_request_error", "context too long"), `does not hold "pattern"`},
		"no error":      {reply{status: 400, body: `{}`}, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, (dialog{scenario: "policy_invalid_schema"}).verdict(t, b.answer), exchange.VerdictFail, b.why)
		})
	}
	c := (dialog{scenario: "policy_invalid_schema"}).converse(t, reply{body: " "})
	c.Exchanges[0].Response.Status, c.Exchanges[0].End = 0, exchange.EndConnectFailed
	wantVerdict(t, judgedCase(t, c, c.Checks[0]), exchange.VerdictNotRun, "no whole answer")
}

// TestPolicyGateOfOtherRequests holds that an answer proves nothing about what its request did not ask.
func TestPolicyGateOfOtherRequests(t *testing.T) {
	for name, c := range map[string]struct {
		policy, old, new, why string
	}{
		"auto":               {"required", `"tool_choice":"required"`, `"tool_choice":"auto"`, "tool_choice is"},
		"required for named": {"named", `{"function":{"name":"get_weather"},"type":"function"}`, `"required"`, "tool_choice is"},
		"parallel":           {"two_calls", `"parallel_tool_calls":true`, `"parallel_tool_calls":false`, `parallel_tool_calls is "false"`},
		"undeclared":         {"required", `"name":"get_weather"`, `"name":"weather"`, "does not declare get_weather"},
		"no pattern":         {"invalid_schema", `"pattern"`, `"format"`, "a pattern in a declared schema"},
		"tools":              {"invalid_required", `"tool_choice"`, `"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice"`, "it declares tools"},
		"streamed":           {"invalid_named", `"stream":false`, `"stream":true`, "not streamed"},
		"no JSON":            {"required", `{`, `[`, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			d := dialog{scenario: "policy_" + c.policy, change: edited(t, c.old, c.new)}
			wantVerdict(t, d.verdict(t, withCalls(weather("call_1", "Paris"))), exchange.VerdictIncomparable, c.why)
		})
	}
	second := dialog{scenario: "policy_none_history", change: func(turn int, body string) string {
		if turn == 1 {
			return edited(t, `"tool_choice":"none"`, `"tool_choice":"auto"`)(turn, body)
		}
		return body
	}}
	v := second.verdict(t, withCalls(weather("call_1", "Paris")), reply{content: `{"city":"Paris","temperature_c":19}`})
	wantVerdict(t, v, exchange.VerdictIncomparable, "turn 2: ")
}

func TestPolicyGateHoldsTheFragments(t *testing.T) {
	d := dialog{scenario: "policy_required", o: scenario.Options{Stream: true}}
	twice := reply{calls: []replyCall{weather("call_1", "Paris")},
		extra: "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"function\":{}}]}}]}\n\n"}
	wantVerdict(t, d.verdict(t, twice), exchange.VerdictFail, `join to the id "call_1call_1"`)

	c := d.converse(t, withCalls(weather("call_1", "Paris")))
	x := c.Exchanges[0]
	body := bytes.ReplaceAll(x.Response.Body.Bytes(), []byte("\n"), []byte("\r\n"))
	x.Response.Body = exchange.NewBody(body)
	wantVerdict(t, judgedCase(t, c, c.Checks[0]), exchange.VerdictOK, "")

	for _, index := range []int{-1, maxCalls + 1} {
		huge := fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d}]}}]}`, index)
		if _, err := joinCalls([][]byte{[]byte(huge)}); err == nil {
			t.Errorf("a call of index %d is joined", index)
		}
	}
	calls := []wire.ToolCall{{ID: "a"}, {ID: "b"}}
	if why := fragmentFault([]rawCall{{id: "a"}}, calls); why == "" {
		t.Error("a call too few is no fault")
	}
	if why := fragmentFault([]rawCall{{id: "a"}, {id: "b"}}, calls); why != "" {
		t.Error(why)
	}
}

func TestPolicyParams(t *testing.T) {
	c := (dialog{scenario: "policy_required"}).converse(t, withCalls(weather("call_1", "Paris")))
	for _, params := range []string{`{}`, `{"policy":"other"}`, `{"policy":"required","cities":["Oslo"]}`} {
		if _, _, err := Judge(Prepare(c), check("tool_policy", params)); err == nil {
			t.Errorf("parameters %s are taken", params)
		}
	}
	if !slices.ContainsFunc(All(), func(g Gate) bool { return g.ID == "tool_policy" && g.Family == "tool" }) {
		t.Error("the gate is not registered")
	}
}
