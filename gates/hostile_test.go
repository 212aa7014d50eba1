package gates

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// everyCheck is a check by each gate that needs no reference, with parameters where it wants some.
func everyCheck() []exchange.Check {
	params := map[string]string{
		"exact": `{"text":"42"}`, "json_unicode": `{"value":{"a":"\u00e9"}}`, "json": `{"value":[1e308,{"a":null}],"equality":"python","duplicates":"last"}`,
		"json_schema":         `{"schema":{"type":"object","properties":{"a":{"type":"number","minimum":0,"multipleOf":0.1}},"additionalProperties":{"type":"string"}}}`,
		"long_context_recall": `{"codes":[{"label":"ALPHA","code":"silver-4821","depth":0.1},{"label":"BETA","code":"amber-7392","depth":0.5}]}`,
		"tool_policy":         `{"policy":"required"}`,
	}
	var out []exchange.Check
	for _, g := range All() {
		if g.Family == "golden" {
			continue
		}
		c := exchange.Check{Gate: g.ID}
		if p := params[g.ID]; p != "" {
			c.Params = json.RawMessage(p)
		}
		if Validate(c) == nil {
			out = append(out, c)
		}
	}
	return out
}

// twice judges by every gate, holds that the same case gives the same verdict to the byte, and returns the verdicts.
func twice(t *testing.T, xs ...*exchange.Exchange) map[string]exchange.Verdict {
	t.Helper()
	out, said := map[string]exchange.Verdict{}, map[string]string{}
	for range 2 {
		e := Prepare(&exchange.Case{ID: "case", Exchanges: xs})
		for _, c := range everyCheck() {
			v, needs, err := Judge(e, c)
			if err != nil || len(needs) > 0 {
				t.Fatalf("%s: %v, needs %v", c.Gate, err, needs)
			}
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if first := said[c.Gate]; first != "" && first != string(b) {
				t.Errorf("%s says two things of one case:\n%s\n%s", c.Gate, first, b)
			}
			if v.Status != exchange.VerdictOK && v.Reason == "" || strings.Contains(v.Reason, "\n") || utf8.RuneCountInString(v.Reason) > reasonRunes+3 {
				t.Errorf("%s: %s with reason %.100q of %d bytes", c.Gate, v.Status, v.Reason, len(v.Reason))
			}
			said[c.Gate], out[c.Gate] = string(b), v
		}
	}
	return out
}

const schemaRequest = `{"model":"m","messages":[{"role":"user","content":"?"}],"response_format":{"type":"json_schema","json_schema":{"schema":%s}}}`

// soundBesides are the gates that have nothing against most of the answers below: they ask for other things.
var soundBesides = []string{"finish_reason", "usage_present", "degenerate", "half_budget", "stream_done"}

// sound are the gates that rightly pass an answer.
var sound = map[string][]string{
	"labels": {"long_context_recall"}, "codes": {"long_context_recall"}, "deep arguments": {"function_call"},
	"a long tool name": {"tool_call_shape", "function_call"},
	"10,000 choices":   {"json_schema"}, "a huge usage": {"exact"}, "a broken usage": {"exact"},
}

// TestHostileAnswers holds that no answer makes a gate panic, run on, or say two things; and that none of them passes
// what it must not.
func TestHostileAnswers(t *testing.T) {
	const big = 1 << 18
	nested := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)
	choices := make([]string, 10_000)
	for i := range choices {
		choices[i] = fmt.Sprintf(`{"index":%d,"message":{"role":"assistant","content":"{\"a\":%d}"},"finish_reason":"stop"}`, i, i)
	}
	for name, a := range map[string]spoken{
		"one line of 5 MB": {content: strings.Repeat("a", 20*big), finish: "stop"},
		"labels":           {content: strings.Repeat("ALPHA BETA ", 1<<15) + " silver-4821 amber-7392", finish: "stop"},
		"codes":            {content: "ALPHA BETA " + strings.Repeat("amber-7392 silver-4821 ", 1<<14), finish: "stop"},
		"fences":           {content: strings.Repeat("```", 1<<17), finish: "stop"},
		"quotes":           {content: strings.Repeat(`"`, 1<<17), finish: "stop"},
		"not UTF-8":        {body: "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"\xff\xfe \xc3\"},\"finish_reason\":\"stop\"}]}"},
		"null":             {finish: "stop"},
		"no choices":       {body: `{"choices":[]}`},
		"null choices":     {body: `{"choices":[null,{"message":null},{"index":-5,"message":{"content":"x"}}]}`},
		"10,000 choices":   {body: `{"choices":[` + strings.Join(choices, ",") + `],"usage":{"prompt_tokens":1,"completion_tokens":1}}`},
		"a huge index":     {body: `{"choices":[{"index":9223372036854775807,"message":{"content":"x"},"finish_reason":"stop"}]}`},
		"deep content":     {content: nested, finish: "stop"},
		"deep arguments": {message: `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` + text(nested) + `}}]}`,
			finish: "tool_calls", request: `{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`},
		"deep call":      {message: `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` + nested + `}}]}`, finish: "tool_calls"},
		"a huge number":  {content: `{"a":1e999999}`, finish: "stop"},
		"a tiny number":  {content: `{"a":1e-99999999}`, finish: "stop"},
		"a long number":  {content: `{"a":0.` + strings.Repeat("0", 1<<18) + `1}`, finish: "stop"},
		"keys twice":     {content: `{"a":1,"a":2}`, finish: "stop"},
		"wrong keys":     {content: `{"z":1,"y":2,"x":3,"w":4,"v":5,"u":6,"t":7,"a":-1}`, finish: "stop"},
		"a huge usage":   {content: "42", finish: "stop", usage: json.RawMessage(`{"prompt_tokens":1e999999,"completion_tokens":-1}`)},
		"a broken usage": {content: "42", finish: "stop", usage: json.RawMessage(`{"prompt_tokens":"x","completion_tokens":[]}`)},
		"long reasons":   {content: "x", finish: strings.Repeat("z", big)},
		"a long tool name": {message: `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"` + strings.Repeat("n", big) + `","arguments":"{}"}}]}`,
			finish: "tool_calls", request: `{"messages":[],"tools":[{"type":"function","function":{"name":"f"}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			for gate, v := range twice(t, a.exchange()) {
				if v.Status == exchange.VerdictOK && !slices.Contains(soundBesides, gate) && !slices.Contains(sound[name], gate) {
					t.Errorf("%s passes", gate)
				}
			}
		})
	}
}

// TestHostileSchemas holds what is said where a schema is not to be used: that, and never that the answer is right.
func TestHostileSchemas(t *testing.T) {
	doubling := func(in string) string {
		var defs []string
		for i := range 40 {
			defs = append(defs, fmt.Sprintf(`"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, in, i+1, i+1))
		}
		return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d40":{"type":"object"}}}`
	}
	deep := strings.Repeat(`{"a":`, 60) + "{}" + strings.Repeat("}", 60)
	for name, c := range map[string]struct{ schema, answer string }{
		"itself":          {`{"$ref":"#"}`, `{}`},
		"a ring":          {`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`, `{}`},
		"the network":     {`{"$ref":"http://127.0.0.1:9/x.json"}`, `{}`},
		"a file":          {`{"$ref":"file:///etc/hostname"}`, `{}`},
		"a file as base":  {`{"$id":"file:///etc/x","$ref":"passwd"}`, `{}`},
		"a foreign draft": {`{"$schema":"http://127.0.0.1:9/draft"}`, `{}`},
		"all of doubles":  {doubling("allOf"), `{}`},
		"one of doubles":  {doubling("oneOf"), `{}`},
		"value doubles":   {`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, deep},
		"draft 7 doubles": {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, deep},
		"a pattern":       {`{"pattern":"((a{900}){900}){900}"}`, `"a"`},
		"a huge bound":    {`{"properties":{"a":{"minimum":1e9999999}}}`, `{"a":1}`},
		"a tiny value":    {`{"properties":{"a":{"minimum":0}}}`, `{"a":1e-9999999}`},
		"a tiny constant": {`{"properties":{"a":{"const":0}}}`, `{"a":1e-9999999}`},
		"deep":            {strings.Repeat(`{"not":`, 9000) + "{}" + strings.Repeat("}", 9000), `{}`},
		"too deep":        {strings.Repeat(`{"not":`, 100_000) + "{}" + strings.Repeat("}", 100_000), `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := spoken{request: fmt.Sprintf(schemaRequest, c.schema), content: c.answer, finish: "stop"}.exchange()
			first := judged(t, check("json_schema"), x)
			if name == "deep" || name == "too deep" { // whatever they say, they say it soon
				if name == "too deep" && first.Status == exchange.VerdictOK {
					t.Errorf("%s", first.Status)
				}
				return
			}
			if first.Status != exchange.VerdictIncomparable {
				t.Errorf("%s: %s", first.Status, first.Reason)
			}
			if strings.HasSuffix(name, "doubles") && name != "all of doubles" { // each judgment takes all the work there is
				return
			}
			if diff := cmp.Diff(first, judged(t, check("json_schema"), x)); diff != "" {
				t.Errorf("two verdicts: %s", diff)
			}
			call := fmt.Sprintf(`{"messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":%s}}]}`, c.schema)
			message := `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` + text(c.answer) + `}}]}`
			if v := judged(t, check("tool_call_shape"), spoken{request: call, message: message, finish: "tool_calls"}.exchange()); v.Status == exchange.VerdictOK {
				t.Error("the call passes")
			}
		})
	}
}

// TestCatastrophicPattern holds that a pattern that makes other engines of regular expressions run on costs nothing here.
func TestCatastrophicPattern(t *testing.T) {
	x := spoken{request: fmt.Sprintf(schemaRequest, `{"pattern":"^(a+)+$"}`), content: `"` + strings.Repeat("a", 1<<18) + `!"`, finish: "stop"}.exchange()
	if v := judged(t, check("json_schema"), x); v.Status != exchange.VerdictFail {
		t.Errorf("%s: %s", v.Status, v.Reason)
	}
}

// FuzzGates holds that whatever stands in a request and its answer, judging ends, twice alike, and only a complete
// exchange passes.
func FuzzGates(f *testing.F) {
	f.Add(`{"messages":[]}`, `{"choices":[{"index":0,"message":{"content":"42"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, uint8(0))
	f.Add(fmt.Sprintf(schemaRequest, `{"type":"object","additionalProperties":false}`), `{"choices":[{"index":0,"message":{"content":"{\"b\":1,\"c\":2}"},"finish_reason":"stop"}]}`, uint8(0))
	f.Add(`{"tools":[{"type":"function","function":{"name":"f","parameters":{"$ref":"#"}}}],"tool_choice":"required","stream":true}`,
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n", uint8(1))
	f.Add(`{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}]}`, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}`, uint8(2))
	f.Add(`{"tools":[{"name":"f","input_schema":{}}]}`, `{"type":"message","content":[{"type":"tool_use","id":"c","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`, uint8(3))
	targets := []string{"/v1/chat/completions", "/v1/chat/completions", "/v1beta/models/m:generateContent", "/v1/messages", "/v1/responses", "/api/chat", "/completion", "/generate"}
	f.Fuzz(func(t *testing.T, request, body string, kind uint8) {
		a := spoken{request: request, body: body, target: targets[int(kind)%len(targets)]}
		x := a.exchange()
		if strings.HasPrefix(body, "data:") || strings.HasPrefix(body, "event:") {
			x.Response.Headers[0].Value = "text/event-stream"
		}
		e := Prepare(&exchange.Case{ID: "case", Exchanges: []*exchange.Exchange{x}})
		complete := e.Last().Outcome == exchange.OutcomeComplete
		for gate, v := range twice(t, x) {
			if v.Status == exchange.VerdictOK && !complete && gate != "tool_policy" && gate != "stream_done" { // which look at refusals, and at the last event alone
				t.Errorf("%s passes what is %s", gate, e.Last().Outcome)
			}
		}
		for _, c := range Auto(x) {
			if _, _, err := Judge(e, c); err != nil {
				t.Errorf("%s: %v", c.Gate, err)
			}
		}
	})
}
