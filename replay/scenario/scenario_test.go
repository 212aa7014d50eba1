package scenario

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// goodAnswers are answers that lead each scenario of several turns to its end.
func goodAnswers(id string) []Answer {
	call := func(name, args string) Answer {
		return Answer{Calls: []wire.ToolCall{{ID: "call_1", Type: "function", Name: name, Arguments: args}}}
	}
	switch id {
	case "agentic", "agentic_validation":
		return []Answer{call("read_invoice", `{"invoice_id":"INV-472"}`), call("calculate_total", `{"unit_price":13.75,"quantity":5}`)}
	case "multi_turn":
		return []Answer{{Content: " OK\n"}}
	case "code_edit":
		return []Answer{{Content: "```python\ndef slugify(text): return text\n```"}}
	}
	for _, c := range useCases() {
		if "tool_use_"+c.id != id {
			continue
		}
		var out []Answer
		for _, step := range c.calls {
			out = append(out, call(step.Name, string(step.Arguments)))
		}
		return out
	}
	return []Answer{call("get_weather", `{"city":"Paris","units":"celsius"}`)}
}

func request(t *testing.T, id string, o Options, answers ...Answer) Request {
	t.Helper()
	s, known := Lookup(id)
	if !known {
		t.Fatalf("no scenario %s", id)
	}
	r, err := s.Request(o, answers)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return r
}

func TestScenarios(t *testing.T) {
	ids := map[string]bool{}
	for _, s := range All() {
		if s.ID == "" || ids[s.ID] || s.Summary == "" || s.Suite == "" || s.Turns < 1 || s.maxTokens == 0 || (s.next == nil) != (s.Turns == 1) {
			t.Errorf("scenario %+v", s)
		}
		ids[s.ID] = true
		c := s.Case("id", Options{})
		if len(c.Checks) == 0 || c.Scenario != s.ID || c.Turns != s.Turns || c.Policy != "" {
			t.Errorf("case of %s: %+v", s.ID, c)
		}
		for _, check := range c.Checks {
			if err := gates.Validate(check); err != nil {
				t.Errorf("%s: %v", s.ID, err)
			}
		}
	}
	if _, known := Lookup("other"); known || len(ids) < 22 {
		t.Errorf("%d scenarios", len(ids))
	}
}

// TestConversations leads every scenario to its end, and holds that each request continues the one before.
func TestConversations(t *testing.T) {
	for _, s := range All() {
		answers := goodAnswers(s.ID)
		var before []json.RawMessage
		for turn := range s.Turns {
			for _, o := range []Options{{}, {Stream: true, Tag: "t", Nonce: "n", Model: "m", SerialTools: true, StructuredResults: true}} {
				r := request(t, s.ID, o, answers[:turn]...)
				again := request(t, s.ID, o, slices.Clone(answers[:turn])...)
				if string(r.Body) != string(again.Body) || r.Turn != turn || r.Method != "POST" || r.Path != "/v1/chat/completions" {
					t.Errorf("%s turn %d: %+v, then %+v", s.ID, turn, r, again)
				}
				if !json.Valid(r.Body) || strings.Contains(string(r.Body), "\\u003c") {
					t.Errorf("%s turn %d: %s", s.ID, turn, r.Body)
				}
			}
			var body struct{ Messages []json.RawMessage }
			if err := json.Unmarshal(request(t, s.ID, Options{}, answers[:turn]...).Body, &body); err != nil {
				t.Fatal(err)
			}
			if turn > 0 && (len(body.Messages) <= len(before) || cmp.Diff(before, body.Messages[:len(before)]) != "") {
				t.Errorf("%s turn %d does not continue the one before", s.ID, turn)
			}
			before = body.Messages
		}
		if _, err := s.Request(Options{}, make([]Answer, s.Turns)); !errors.Is(err, ErrOver) {
			t.Errorf("%s behind its end: %v", s.ID, err)
		}
	}
}

func TestConversationsStop(t *testing.T) {
	call := func(calls ...wire.ToolCall) Answer { return Answer{Calls: calls} }
	read := wire.ToolCall{ID: "a", Name: "read_invoice"}
	for name, c := range map[string]struct {
		id      string
		answers []Answer
		why     string
	}{
		"no call":    {"agentic", []Answer{{Content: "read_invoice(INV-472)"}}, "turn 1/3: the answer makes no structured call"},
		"wrong call": {"agentic", []Answer{call(wire.ToolCall{ID: "a", Name: "calculate_total"})}, `the answer calls "calculate_total", read_invoice is expected`},
		"two calls":  {"agentic", []Answer{call(read, read)}, "the answer makes 2 calls"},
		"no id":      {"tool_round_trip", []Answer{call(wire.ToolCall{Name: "get_weather"})}, "has no id"},
		"later":      {"agentic_validation", []Answer{call(read), {}}, "turn 2/3: the answer makes no structured call"},
		"policy":     {"policy_none_history", []Answer{{}}, "turn 1/2"},
		"no code":    {"code_edit", []Answer{{Content: " \n"}}, "no code to edit"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := Lookup(c.id)
			_, err := s.Request(Options{}, c.answers)
			if !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want %s", err, c.why)
			}
		})
	}
}

// fields are what the options change of a body.
type fields struct {
	Model     string
	Messages  []struct{ Content any }
	MaxTokens int   `json:"max_tokens"`
	Parallel  *bool `json:"parallel_tool_calls"`
	Stream    bool
	Options   map[string]any `json:"stream_options"`
	Seed      *int
}

func read(t *testing.T, r Request) (f fields) {
	t.Helper()
	if err := json.Unmarshal(r.Body, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestOptions(t *testing.T) {
	f := read(t, request(t, "tool_round_trip", Options{Nonce: "n1", Tag: "tool_round_trip-c4-r2-i3", Model: "m", Stream: true}))
	if text := f.Messages[0].Content.(string); !strings.HasPrefix(text, "[n1]\n[validation tool_round_trip-c4-r2-i3]\nWhat is") {
		t.Errorf("the prompt is %s", text)
	}
	f.Messages = nil
	seed, no := 42, false
	want := fields{Model: "m", MaxTokens: 256, Stream: true, Options: map[string]any{"include_usage": true}, Seed: &seed}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("validation (-want +got):\n%s", diff)
	}
	f = read(t, request(t, "agentic", Options{MaxTokens: 99, SerialTools: true}))
	f.Messages = nil
	if diff := cmp.Diff(fields{MaxTokens: 99, Parallel: &no}, f); diff != "" {
		t.Errorf("matrix (-want +got):\n%s", diff)
	}
	if f = read(t, request(t, "policy_invalid_named", Options{Stream: true})); f.Stream {
		t.Error("a request that is to be refused is streamed")
	}
	f = read(t, request(t, "agentic", Options{StructuredResults: true}, goodAnswers("agentic")[:1]...))
	if got, want := f.Messages[2].Content, any(map[string]any{"invoice_id": "INV-472", "unit_price": 13.75, "quantity": 5.0}); cmp.Diff(want, got) != "" {
		t.Errorf("result %v", got)
	}
}

func TestThinkingHasALimitOfItsOwn(t *testing.T) {
	for id, o := range map[string]Options{"policy_required_thinking": {MaxTokens: 99}, "policy_required": {MaxTokens: 99, Thinking: true}} {
		r := request(t, id, o)
		if f := read(t, r); f.MaxTokens != 2048 || !r.Thinking {
			t.Errorf("%s: %+v", id, f)
		}
		o.ThinkingMaxTokens = 77
		if f := read(t, request(t, id, o)); f.MaxTokens != 77 {
			t.Errorf("%s: %+v", id, f)
		}
	}
	if r := request(t, "policy_required", Options{}); r.Thinking {
		t.Error("it thinks unasked")
	}
}

func TestPolicyWords(t *testing.T) {
	for _, c := range []struct {
		id   string
		o    Options
		want string
	}{
		{"agentic", Options{}, ""}, {"agentic", Options{SerialTools: true}, "serial_tool_workflows"},
		{"tool_round_trip", Options{SerialTools: true, StructuredResults: true, Thinking: true}, "serial_tool_workflows+structured_tool_results+thinking"},
		{"policy_required", Options{SerialTools: true, StructuredResults: true}, ""}, {"code_edit", Options{SerialTools: true}, ""},
		{"policy_required_thinking", Options{Thinking: true}, ""},
	} {
		s, _ := Lookup(c.id)
		if got := s.Case("c", c.o).Policy; got != c.want {
			t.Errorf("%s under %+v: %q, want %q", c.id, c.o, got, c.want)
		}
	}
}

// TestPromptsKeepTheSecret holds that what later calls must take from results stands in no prompt.
func TestPromptsKeepTheSecret(t *testing.T) {
	for _, id := range []string{"agentic", "agentic_validation"} {
		body := string(request(t, id, Options{Nonce: "n", Tag: id + "-c4-r2-i3"}).Body)
		var c struct{ Messages json.RawMessage }
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"13.75", " 5", "five", "74.25", "68.75", "fee"} {
			if strings.Contains(string(c.Messages), secret) {
				t.Errorf("%s: %q stands in the prompt", id, secret)
			}
		}
	}
}

func TestPlanOfToolPolicies(t *testing.T) {
	plan := Plan(Suite(SuitePolicies), []int{1, 4}, 1)
	if len(plan) != 30 || Requests(plan) != 35 {
		t.Errorf("%d cases and %d requests, want 30 and 35", len(plan), Requests(plan))
	}
	tags, waves := map[string]bool{}, map[string]int{}
	for _, m := range plan {
		tags[m.Tag()] = true
		waves[m.Wave()]++
	}
	if len(tags) != len(plan) || !tags["two_calls-c4-r0-i3"] || !tags["invalid_schema-c1-r0-i0"] || waves["named-c4-r0"] != 4 {
		t.Errorf("tags %v, waves %v", tags, waves)
	}
	if plan := Plan(Suite(SuitePolicies), []int{4}, 2); len(plan) != 40 {
		t.Errorf("%d cases at 4 alone, repeated", len(plan))
	}
	// the validation's two workflows, as its runs with serial tools plan them
	plan = Plan(Suite(SuiteValidation), []int{1, 4}, 1)
	workflows := slices.DeleteFunc(plan, func(m Member) bool { return m.TagName() != "agentic" && m.TagName() != "tool_round_trip" })
	if len(workflows) != 10 || workflows[5].Tag() != "agentic-c1-r0-i0" {
		t.Errorf("%d cases of workflows", len(workflows))
	}
}

func TestAnswerOf(t *testing.T) {
	native := &exchange.Exchange{
		Request: exchange.Request{Method: "POST", Target: "/api/chat"},
		Response: exchange.Response{Status: 200, Body: exchange.NewBody([]byte(
			`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"n","arguments":{}}}]},"done":true,"done_reason":"stop"}`))},
		End: exchange.EndEOF,
	}
	native.Timeline.Reads = []exchange.Read{{At: 1, Size: int(native.Response.Body.Size)}}
	if a := AnswerOf(wire.Parse(native)); len(a.Calls) != 1 || a.Calls[0].ID != "call_1" {
		t.Errorf("%+v", a)
	}
	x := &exchange.Exchange{
		Request: exchange.Request{Method: "POST", Target: "/v1/chat/completions"},
		Response: exchange.Response{Status: 200, Body: exchange.NewBody([]byte(
			`{"choices":[{"index":0,"message":{"content":"c","reasoning_content":"r","tool_calls":[{"id":"i","type":"function","function":{"name":"n","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`))},
		End: exchange.EndEOF,
	}
	x.Timeline.Reads = []exchange.Read{{At: 1, Size: int(x.Response.Body.Size)}}
	a := AnswerOf(wire.Parse(x))
	if a.Content != "c" || len(a.Calls) != 1 || a.Calls[0].Name != "n" {
		t.Errorf("%+v", a)
	}
}
