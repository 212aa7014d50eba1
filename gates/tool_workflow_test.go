package gates

import (
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

func invoice(id string) replyCall {
	return replyCall{id, "function", "read_invoice", `{"invoice_id":"INV-472"}`}
}

func total(id string) replyCall {
	return replyCall{id, "function", "calculate_total", `{"unit_price":13.75,"quantity":5}`}
}

// workflowAnswers are good answers to each workflow.
func workflowAnswers(id string) []reply {
	switch id {
	case "tool_round_trip":
		return []reply{withCalls(weather("call_1", "Paris")), {content: `{"city":"Paris","temperature_c":19}`}}
	case "agentic":
		return []reply{withCalls(invoice("a")), withCalls(total("b")), {content: `{"invoice_id":"INV-472","total":74.25}`}}
	}
	return []reply{withCalls(invoice("a")), withCalls(total("b")), {content: `{"invoice_id":"INV-472","total":68.75}`}}
}

var workflowIDs = []string{"tool_round_trip", "agentic", "agentic_validation"}

func TestWorkflowsOfGoodAnswers(t *testing.T) {
	for _, id := range workflowIDs {
		for _, o := range []scenario.Options{
			{}, {Stream: true, Tag: id + "-c4-r2-i3", Nonce: "0123abc", Model: "m"}, {SerialTools: true}, {StructuredResults: true},
			{SerialTools: true, StructuredResults: true, Thinking: true},
		} {
			c := (dialog{scenario: id, o: o}).converse(t, workflowAnswers(id)...)
			for _, ch := range c.Checks {
				wantVerdict(t, judgedCase(t, c, ch), exchange.VerdictOK, "")
			}
		}
	}
}

// TestWorkflowsOfNumbersOfEqualValue holds what the seeds let pass.
func TestWorkflowsOfNumbersOfEqualValue(t *testing.T) {
	a := workflowAnswers("tool_round_trip")
	a[1].content = `{"city":"Oslo","city":"Paris","temperature_c":19.0}`
	wantVerdict(t, (dialog{scenario: "tool_round_trip"}).verdict(t, a...), exchange.VerdictOK, "")
	a = workflowAnswers("agentic")
	a[1] = withCalls(replyCall{"b", "function", "calculate_total", `{"quantity":5.0,"unit_price":1375e-2}`})
	wantVerdict(t, (dialog{scenario: "agentic"}).verdict(t, a...), exchange.VerdictOK, "")
}

// TestWorkflowsOfBrokenAnswers breaks one turn of a good conversation in one way each.
func TestWorkflowsOfBrokenAnswers(t *testing.T) {
	with := func(c replyCall, change func(*replyCall)) reply {
		change(&c)
		return withCalls(c)
	}
	for name, b := range map[string]struct {
		id     string
		turn   int
		answer reply
		why    string
	}{
		"no call":               {"agentic", 0, reply{content: "INV-472 says 13.75"}, `turn 1: the finish reason is "stop"`},
		"no call, finish":       {"agentic", 0, reply{content: "x", finish: "tool_calls"}, "turn 1: one call is expected, the answer makes 0"},
		"two calls":             {"agentic", 0, withCalls(invoice("a"), total("b")), "turn 1: one call is expected, the answer makes 2"},
		"finish stop":           {"agentic", 0, reply{calls: []replyCall{invoice("a")}, finish: "stop"}, `turn 1: the finish reason is "stop"`},
		"no id":                 {"agentic", 0, withCalls(invoice("")), "turn 1: the call has no id"},
		"type":                  {"agentic", 0, with(invoice("a"), func(c *replyCall) { c.kind = "tool" }), `turn 1: the type of the call is "tool"`},
		"wrong tool":            {"agentic", 0, withCalls(total("a")), `turn 1: it calls "calculate_total", not read_invoice`},
		"wrong invoice":         {"agentic", 0, with(invoice("a"), func(c *replyCall) { c.args = `{"invoice_id":"INV-473"}` }), "turn 1: the arguments of read_invoice"},
		"arguments no JSON":     {"agentic", 0, with(invoice("a"), func(c *replyCall) { c.args = `{"invoice_id":` }), "turn 1: the arguments of read_invoice are no JSON"},
		"invented price":        {"agentic", 1, with(total("b"), func(c *replyCall) { c.args = `{"unit_price":12.5,"quantity":5}` }), "turn 2: the arguments of calculate_total"},
		"price as text":         {"agentic", 1, with(total("b"), func(c *replyCall) { c.args = `{"unit_price":"13.75","quantity":5}` }), "turn 2: the arguments"},
		"an argument more":      {"agentic", 1, with(total("b"), func(c *replyCall) { c.args = `{"unit_price":13.75,"quantity":5,"fee":1}` }), "turn 2: the arguments"},
		"computed":              {"agentic", 2, reply{content: `{"invoice_id":"INV-472","total":68.75}`}, "the answer was computed"},
		"other fixture":         {"agentic_validation", 2, reply{content: `{"invoice_id":"INV-472","total":74.25}`}, "fixture of the run matrix"},
		"prose":                 {"agentic", 2, reply{content: `The total is {"invoice_id":"INV-472","total":74.25}`}, "turn 3: it is no JSON"},
		"call at the end":       {"agentic", 2, withCalls(total("c")), "turn 3: it calls calculate_total where the answer is expected"},
		"empty":                 {"agentic_validation", 2, reply{content: "  "}, "turn 3: the content channel is empty"},
		"cut":                   {"agentic_validation", 2, reply{content: `{"invoice_id":"INV-472","total":68.75}`, finish: "length"}, "turn 3: the answer was cut"},
		"fence":                 {"agentic_validation", 2, reply{content: "```json\n{\"invoice_id\":\"INV-472\",\"total\":68.75}\n```"}, "turn 3: it is no JSON"},
		"refused":               {"agentic", 1, reply{status: 400, body: `{"error":{"message":"roles must alternate"}}`}, "turn 2: the request was refused"},
		"error in the stream":   {"agentic", 1, reply{body: `{"error":{"message":"out of memory"}}`}, "turn 2: the answer is an error"},
		"wrong units":           {"tool_round_trip", 0, with(weather("a", "Paris"), func(c *replyCall) { c.args = `{"city":"Paris","units":"fahrenheit"}` }), "turn 1: the arguments"},
		"other temperature":     {"tool_round_trip", 1, reply{content: `{"city":"Paris","temperature_c":21}`}, "turn 2: want"},
		"temperature a text":    {"tool_round_trip", 1, reply{content: `{"city":"Paris","temperature_c":"19"}`}, "turn 2: want"},
		"a key more at the end": {"tool_round_trip", 1, reply{content: `{"city":"Paris","temperature_c":19,"units":"celsius"}`}, "turn 2: want"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := workflowAnswers(b.id)
			answers[b.turn] = b.answer
			wantVerdict(t, (dialog{scenario: b.id}).verdict(t, answers...), exchange.VerdictFail, b.why)
		})
	}
}

func TestWorkflowsLenientReading(t *testing.T) {
	fence := "```json\n{\"invoice_id\":\"INV-472\",\"total\":%}\n```"
	for _, c := range []struct {
		id, content     string
		status, lenient exchange.VerdictStatus
	}{
		{"agentic_validation", strings.Replace(fence, "%", "68.75", 1), exchange.VerdictFail, exchange.VerdictOK},
		{"agentic_validation", strings.Replace(fence, "%", "74.25", 1), exchange.VerdictFail, exchange.VerdictFail},
		{"agentic_validation", `{"invoice_id":"INV-472","total":68.75}`, exchange.VerdictOK, exchange.VerdictOK},
		{"agentic", strings.Replace(fence, "%", "74.25", 1), exchange.VerdictOK, ""},
		{"agentic", strings.Replace(fence, "%", "68.75", 1), exchange.VerdictFail, ""},
	} {
		a := workflowAnswers(c.id)
		a[2].content = c.content
		if v := (dialog{scenario: c.id}).verdict(t, a...); v.Status != c.status || v.Lenient != c.lenient {
			t.Errorf("%s of %q: %s, lenient %q (%s), want %s, %q", c.id, c.content, v.Status, v.Lenient, v.Reason, c.status, c.lenient)
		}
	}
}

func TestWorkflowsThatStop(t *testing.T) {
	for _, id := range workflowIDs {
		all := workflowAnswers(id)
		for n := 1; n < len(all); n++ {
			wantVerdict(t, (dialog{scenario: id}).verdict(t, all[:n]...), exchange.VerdictPartial, "the conversation stopped")
		}
	}
	v := (dialog{scenario: "agentic"}).verdict(t, reply{content: "I cannot."}, reply{content: "never sent"})
	wantVerdict(t, v, exchange.VerdictFail, "turn 1: ")
	if len(v.Evidence) != 1 {
		t.Errorf("%d exchanges: the conversation went on without a call", len(v.Evidence))
	}
	c := exchange.Case{ID: "c", Checks: []exchange.Check{check("agentic")}}
	wantVerdict(t, judgedCase(t, &c, c.Checks[0]), exchange.VerdictNotRun, "no exchange")
}

// TestWorkflowsOfOtherRequests holds that a conversation proves nothing when it was given something else.
func TestWorkflowsOfOtherRequests(t *testing.T) {
	at := func(turn int, old, new string) func(int, string) string {
		return func(i int, body string) string {
			if i != turn {
				return body
			}
			return edited(t, old, new)(i, body)
		}
	}
	for name, c := range map[string]struct {
		d   dialog
		why string
	}{
		"price in the prompt":    {dialog{scenario: "agentic", change: at(0, "Find out the total", "At 13.75 apiece, find out the total")}, "13.75 stands in the prompt"},
		"quantity in the prompt": {dialog{scenario: "agentic", change: at(0, "Find out the total", "For 5 pieces, find out the total")}, "5 stands in the prompt"},
		"price in parts":         {dialog{scenario: "agentic", change: at(0, `"content":"Find`, `"content":[{"type":"text","text":"13.75"}],"was":"Find`)}, "13.75 stands in the prompt"},
		"other result":           {dialog{scenario: "agentic", change: at(1, `13.75`, `13.5`)}, "turn 2: the request is not that of the case: the result of read_invoice"},
		"result of another call": {dialog{scenario: "agentic", change: at(1, `"tool_call_id":"a"`, `"tool_call_id":"z"`)}, `no result for the call "a"`},
		"total of the other":     {dialog{scenario: "agentic", change: at(2, `74.25`, `68.75`)}, "turn 3: the request is not that of the case: the result of calculate_total"},
		"result no JSON":         {dialog{scenario: "agentic", change: at(1, `"content":"{\"invoice_id\"`, `"content":"x{\"invoice_id\"`)}, "not the fixture's"},
		"calls not forbidden":    {dialog{scenario: "agentic", change: at(2, `"tool_choice":"none"`, `"tool_choice":"auto"`)}, "does not forbid calls"},
		"unreadable":             {dialog{scenario: "agentic", change: at(0, `{`, `[`)}, "cannot be read"},
		"serial unsaid":          {dialog{scenario: "agentic", o: scenario.Options{SerialTools: true}, policy: "-"}, "parallel_tool_calls"},
		"serial unsent":          {dialog{scenario: "agentic", policy: "serial_tool_workflows"}, "parallel_tool_calls"},
		"structured unsaid":      {dialog{scenario: "tool_round_trip", o: scenario.Options{StructuredResults: true}, policy: "-"}, "not in the form of the case's policy"},
		"structured unsent":      {dialog{scenario: "tool_round_trip", policy: "structured_tool_results"}, "not in the form of the case's policy"},
	} {
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, c.d.verdict(t, workflowAnswers(c.d.scenario)...), exchange.VerdictIncomparable, c.why)
		})
	}
	for id, params := range map[string]string{"agentic": "", "tool_policy": `{"policy":"required"}`} {
		x := withCalls(invoice("a")).exchange(`{"messages":[]}`, false)
		x.Request.Target = "/v1/completions"
		v := judged(t, exchange.Check{Gate: id, Params: []byte(params)}, x)
		wantVerdict(t, v, exchange.VerdictIncomparable, "it is no request of a dialect whose tools can be judged (/v1/completions)")
	}
}
