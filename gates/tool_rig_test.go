package gates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// reply is an answer with tool calls in the making.
type reply struct {
	content string
	calls   []replyCall
	finish  any    // string, or nil for null; "" is filled in
	usage   string // "null" for none
	status  int    // with body
	body    string // the whole body instead
	endless bool   // a stream without [DONE]
	extra   string // a further event of a stream
}

// replyCall is a call of an answer. args is a string, or another value for arguments that are none.
type replyCall struct {
	id, kind, name string
	args           any
}

func weather(id, city string) replyCall {
	return replyCall{id, "function", "get_weather", fmt.Sprintf(`{"city": %q, "units": "celsius"}`, city)}
}

func withCalls(calls ...replyCall) reply { return reply{calls: calls} }

func (c replyCall) json(index int, args any) string {
	return fmt.Sprintf(`{"index":%d,"id":%s,"type":%s,"function":{"name":%s,"arguments":%s}}`, index, text(c.id), text(c.kind), text(c.name), text(args))
}

// reply writes the answer as an engine would, as a stream or not.
func (a reply) write(stream bool) string {
	if a.body != "" {
		return a.body
	}
	finish := a.finish
	if finish == "" || finish == nil && len(a.calls) == 0 && a.content != "" {
		finish = "stop"
	}
	if len(a.calls) > 0 && (a.finish == nil || a.finish == "") {
		finish = "tool_calls"
	}
	if a.finish == "null" {
		finish = nil
	}
	usage := a.usage
	if usage == "" {
		usage = `{"prompt_tokens":90,"completion_tokens":20}`
	}
	if stream {
		return a.stream(finish, usage)
	}
	var calls []string
	for i, c := range a.calls {
		calls = append(calls, c.json(i, c.args))
	}
	return fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":%s,"tool_calls":[%s]},"finish_reason":%s}],"usage":%s}`,
		text(a.content), strings.Join(calls, ","), text(finish), usage)
}

func (a reply) stream(finish any, usage string) string {
	var b strings.Builder
	event := func(delta string, finish any) {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, text(finish))
	}
	event(`{"role":"assistant","content":null}`, nil)
	for _, r := range a.content {
		event(fmt.Sprintf(`{"content":%s}`, text(string(r))), nil)
	}
	for i, c := range a.calls {
		args, isText := c.args.(string)
		if !isText {
			event(fmt.Sprintf(`{"tool_calls":[%s]}`, c.json(i, c.args)), nil)
			continue
		}
		event(fmt.Sprintf(`{"tool_calls":[%s]}`, c.json(i, "")), nil)
		for len(args) > 0 {
			n := min(5, len(args))
			event(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, text(args[:n])), nil)
			args = args[n:]
		}
	}
	b.WriteString(a.extra)
	event(`{}`, finish)
	if usage != "null" {
		fmt.Fprintf(&b, "data: {\"choices\":[],\"usage\":%s}\n\n", usage)
	}
	if !a.endless {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

// exchange is the recorded exchange of an answer to a request.
func (a reply) exchange(request string, stream bool) *exchange.Exchange {
	x := spoken{request: request, body: a.write(stream), status: a.status}.exchange()
	if stream {
		x.Response.Headers[0].Value = "text/event-stream"
	}
	return x
}

// dialog is a conversation of a scenario.
type dialog struct {
	scenario string
	o        scenario.Options
	policy   string                             // of the case; "" = as the scenario says
	change   func(turn int, body string) string // of requests
}

// converse records the answers to the requests of the scenario, until they end or the conversation stops.
func (d dialog) converse(t *testing.T, answers ...reply) *exchange.Case {
	t.Helper()
	s, known := scenario.Lookup(d.scenario)
	if !known {
		t.Fatalf("no scenario %s", d.scenario)
	}
	c := s.Case("case", d.o)
	if d.policy != "" {
		c.Policy = strings.TrimPrefix(d.policy, "-")
	}
	var before []scenario.Answer
	for turn, a := range answers {
		r, err := s.Request(d.o, before)
		if err != nil {
			break
		}
		body := string(r.Body)
		if d.change != nil {
			body = d.change(turn, body)
		}
		x := a.exchange(body, d.o.Stream && !s.Blocking)
		c.Exchanges = append(c.Exchanges, x)
		before = append(before, scenario.AnswerOf(wire.Parse(x)))
	}
	return &c
}

// verdict is what the last check of the scenario says of the answers: the gate that is about tools.
func (d dialog) verdict(t *testing.T, answers ...reply) exchange.Verdict {
	t.Helper()
	c := d.converse(t, answers...)
	return judgedCase(t, c, c.Checks[len(c.Checks)-1])
}

func judgedCase(t *testing.T, c *exchange.Case, check exchange.Check) exchange.Verdict {
	t.Helper()
	v, needs, err := Judge(Prepare(c), check)
	if err != nil || len(needs) > 0 {
		t.Fatalf("judge by %s: %v, needs %v", check.Gate, err, needs)
	}
	if v.Status != exchange.VerdictOK && v.Reason == "" {
		t.Errorf("%s says %s without a reason", check.Gate, v.Status)
	}
	return v
}

// wantVerdict checks a status, and that the reason names the fault.
func wantVerdict(t *testing.T, v exchange.Verdict, status exchange.VerdictStatus, reason string) {
	t.Helper()
	if v.Status != status || !strings.Contains(v.Reason, reason) {
		t.Errorf("%s says %s (%s), want %s because of %q", v.Gate, v.Status, v.Reason, status, reason)
	}
}

// edited changes one text of a request that must be there.
func edited(t *testing.T, old, new string) func(int, string) string {
	return func(_ int, body string) string {
		if !strings.Contains(body, old) {
			t.Fatalf("the request does not hold %s: %s", old, body)
		}
		return strings.ReplaceAll(body, old, new)
	}
}
