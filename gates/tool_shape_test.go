package gates

import (
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// withTools is a request of chat completions with the weather tool and a clock; more is added to its fields.
func withTools(more string) string {
	return `{"messages":[{"role":"user","content":"?"}],"tools":[` +
		`{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","required":["city"],"additionalProperties":false,` +
		`"properties":{"city":{"type":"string"},"units":{"enum":["celsius","fahrenheit"]}}}}},` +
		`{"type":"function","function":{"name":"now"}}]` + more + `}`
}

func TestToolCallShape(t *testing.T) {
	paris := weather("call_1", "Paris")
	with := func(change func(*replyCall)) reply {
		c := paris
		change(&c)
		return withCalls(c)
	}
	for name, c := range map[string]struct {
		request string
		answer  reply
		status  exchange.VerdictStatus
		why     string
	}{
		"one call":             {withTools(""), withCalls(paris), exchange.VerdictOK, ""},
		"two calls":            {withTools(""), withCalls(paris, weather("call_2", "Oslo")), exchange.VerdictOK, ""},
		"no schema":            {withTools(""), withCalls(replyCall{"c", "function", "now", `{"any":1}`}), exchange.VerdictOK, ""},
		"text":                 {withTools(""), reply{content: "sunny"}, exchange.VerdictSkipped, "no tool was called"},
		"undeclared":           {withTools(""), with(func(c *replyCall) { c.name = "weather" }), exchange.VerdictFail, `"weather" is not declared`},
		"nameless":             {withTools(""), with(func(c *replyCall) { c.name = "" }), exchange.VerdictFail, "names no tool"},
		"no tools":             {`{"messages":[]}`, withCalls(paris), exchange.VerdictFail, "is not declared"},
		"no id":                {withTools(""), with(func(c *replyCall) { c.id = "" }), exchange.VerdictFail, "no id"},
		"same id":              {withTools(""), withCalls(paris, weather("call_1", "Oslo")), exchange.VerdictFail, "call 2: the id \"call_1\" is that of another call"},
		"other type":           {withTools(""), with(func(c *replyCall) { c.kind = "tool" }), exchange.VerdictFail, `type is "tool"`},
		"object arguments":     {withTools(""), with(func(c *replyCall) { c.args = map[string]string{"city": "Paris"} }), exchange.VerdictFail, "not a string"},
		"broken arguments":     {withTools(""), with(func(c *replyCall) { c.args = `{"city":"Par` }), exchange.VerdictFail, "no strict JSON"},
		"empty arguments":      {withTools(""), with(func(c *replyCall) { c.args = "" }), exchange.VerdictFail, "no strict JSON"},
		"key twice":            {withTools(""), with(func(c *replyCall) { c.args = `{"city":"a","city":"b"}` }), exchange.VerdictFail, "duplicate key"},
		"a list":               {withTools(""), with(func(c *replyCall) { c.args = `["Paris"]` }), exchange.VerdictFail, "no JSON object"},
		"a key missing":        {withTools(""), with(func(c *replyCall) { c.args = `{}` }), exchange.VerdictFail, "city"},
		"a key too many":       {withTools(""), with(func(c *replyCall) { c.args = `{"city":"a","x":1}` }), exchange.VerdictFail, "x"},
		"wrong kind":           {withTools(""), with(func(c *replyCall) { c.args = `{"city":5}` }), exchange.VerdictFail, "/city"},
		"not of the enum":      {withTools(""), with(func(c *replyCall) { c.args = `{"city":"a","units":"kelvin"}` }), exchange.VerdictFail, "/units"},
		"finish stop":          {withTools(""), reply{calls: []replyCall{paris}, finish: "stop"}, exchange.VerdictFail, `finish reason is "stop"`},
		"finish length":        {withTools(""), reply{calls: []replyCall{paris}, finish: "length"}, exchange.VerdictFail, `finish reason is "length"`},
		"named, stop":          {withTools(`,"tool_choice":{"type":"function","function":{"name":"get_weather"}}`), reply{calls: []replyCall{paris}, finish: "stop"}, exchange.VerdictOK, ""},
		"named, another":       {withTools(`,"tool_choice":{"type":"function","function":{"name":"now"}}`), withCalls(paris), exchange.VerdictFail, "names now"},
		"required, none":       {withTools(`,"tool_choice":"required"`), reply{content: "sunny"}, exchange.VerdictFail, "wants a tool call"},
		"none, one":            {withTools(`,"tool_choice":"none"`), withCalls(paris), exchange.VerdictFail, "forbids tool calls"},
		"one at a time":        {withTools(`,"parallel_tool_calls":false`), withCalls(paris, weather("call_2", "Oslo")), exchange.VerdictFail, "one tool call at a time"},
		"no answer":            {withTools(""), reply{status: 500, body: `{"error":{"message":"x"}}`}, exchange.VerdictNotRun, "no whole answer"},
		"schema of elsewhere":  {strings.Replace(withTools(""), `{"type":"string"}`, `{"$ref":"http://example.com/s.json"}`, 1), withCalls(paris), exchange.VerdictIncomparable, "example.com"},
		"schema that is none":  {strings.Replace(withTools(""), `"type":"object"`, `"type":"thing"`, 1), withCalls(paris), exchange.VerdictIncomparable, "schema cannot be used"},
		"schema with a file":   {strings.Replace(withTools(""), `{"type":"string"}`, `{"$ref":"file:///etc/passwd"}`, 1), withCalls(paris), exchange.VerdictIncomparable, "not part of the request"},
		"requests unreadable":  {`[`, withCalls(paris), exchange.VerdictIncomparable, "cannot be read"},
		"of old":               {`{"messages":[],"functions":[{"name":"f"}]}`, reply{body: `{"choices":[{"index":0,"message":{"function_call":{"name":"f","arguments":"{}"}},"finish_reason":"function_call"}]}`}, exchange.VerdictOK, ""},
		"the second of choice": {withTools(`,"n":2`), reply{body: `{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"},{"index":1,"message":{"tool_calls":[{"id":"a","type":"function","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`}, exchange.VerdictFail, `"x" is not declared`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stream := range []bool{false, true} {
				if stream && c.answer.body != "" {
					continue
				}
				wantVerdict(t, judged(t, check("tool_call_shape"), c.answer.exchange(c.request, stream)), c.status, c.why)
			}
		})
	}
}

// TestToolCallShapeOfDialects holds that tools are found in every spelling.
func TestToolCallShapeOfDialects(t *testing.T) {
	schema := `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
	for _, c := range []struct{ target, request, body string }{
		{"/api/chat", `{"stream":false,"tools":[{"type":"function","function":{"name":"w","parameters":` + schema + `}}]}`,
			`{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"w","arguments":{"city":%s}}}]},"done":true,"done_reason":"stop"}`},
		{"/v1/messages", `{"tools":[{"name":"w","input_schema":` + schema + `}],"tool_choice":{"type":"tool","name":"w","disable_parallel_tool_use":true}}`,
			`{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"w","input":{"city":%s}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`},
		{"/v1/responses", `{"tools":[{"type":"function","name":"w","parameters":` + schema + `}],"tool_choice":"required"}`,
			`{"object":"response","status":"completed","output":[{"type":"function_call","id":"fc","call_id":"c1","name":"w","arguments":"{\"city\":%s}","status":"completed"}]}`},
		{"/v1beta/models/g:generateContent", `{"tools":[{"functionDeclarations":[{"name":"w","parameters":{"type":"OBJECT","properties":{"city":{"type":"STRING"}},"required":["city"]}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"w","args":{"city":%s}}}],"role":"model"},"finishReason":"STOP","index":0}]}`},
	} {
		good, bad := `"Paris"`, `5`
		if strings.Contains(c.target, "responses") {
			good = `\"Paris\"`
		}
		x := spoken{target: c.target, request: c.request, body: fmt.Sprintf(c.body, good)}.exchange()
		wantVerdict(t, judged(t, check("tool_call_shape"), x), exchange.VerdictOK, "")
		x = spoken{target: c.target, request: c.request, body: fmt.Sprintf(c.body, bad)}.exchange()
		wantVerdict(t, judged(t, check("tool_call_shape"), x), exchange.VerdictFail, "/city")
		undeclared := strings.Replace(c.request, `"name":"w"`, `"name":"other"`, 1)
		x = spoken{target: c.target, request: undeclared, body: fmt.Sprintf(c.body, good)}.exchange()
		wantVerdict(t, judged(t, check("tool_call_shape"), x), exchange.VerdictFail, "is not declared")
	}
}

// TestToolCallShapeOfTheEnginesOwn holds that calls which the engine answers itself are no calls of the client's.
func TestToolCallShapeOfTheEnginesOwn(t *testing.T) {
	for target, c := range map[string]struct{ request, body string }{
		"/v1/messages": {`{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`,
			`{"type":"message","role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}},{"type":"text","text":"y"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`},
		"/v1/responses": {`{"tools":[{"type":"web_search"}]}`,
			`{"object":"response","status":"completed","output":[{"type":"web_search_call","id":"w1","status":"completed","action":{"type":"search","query":"x"}}]}`},
		"/v1beta/models/g:generateContent": {`{"tools":[{"functionDeclarations":[{"name":"w"}]},{"codeExecution":{}}]}`,
			`{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"1"}}],"role":"model"},"finishReason":"STOP","index":0}]}`},
	} {
		x := spoken{target: target, request: c.request, body: c.body}.exchange()
		wantVerdict(t, judged(t, check("tool_call_shape"), x), exchange.VerdictSkipped, "no tool was called")
	}
}

func TestDeclaredTools(t *testing.T) {
	for request, want := range map[string]string{
		`{"tools":[{"type":"web_search"},{"type":"bash_20250124","name":"bash"}]}`:                                "web_search bash",
		`{"request":{"tools":[{"function_declarations":[{"name":"a","parametersJsonSchema":{}},{"name":"b"}]}]}}`: "a b",
		`{"tools":{"not":"a list"},"functions":[{"name":"f","parameters":{}}]}`:                                   "f",
		`{"tools":[{}]}`: "",
		`[]`:             "",
	} {
		var names []string
		for _, d := range declaredTools(AskedOf(spoken{request: request, content: "x"}.exchange())) {
			names = append(names, d.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("tools of %s are %q, want %q", request, got, want)
		}
	}
}

// TestToolCallShapeOfCaptures holds the calls of recorded engines against their own requests. The model of these captures
// was made to talk nonsense, so most of them fail; what matters is why.
func TestToolCallShapeOfCaptures(t *testing.T) {
	want := map[string]string{
		"llama-server/chat-stream-tools-required": "wants a tool call and the answer makes none",
		"llama-server/tools-stream-single":        "wants one tool call at a time and the answer makes 5",
		"llama-server/tools-stream-required":      `the finish reason is "length"`,
		"llama-server/tools-nonstream-auto":       "call 2: the arguments of get_time are no strict JSON",
		"llama-server/tools-stream-auto":          "call 2: the arguments of get_time are no strict JSON",
	}
	seen := 0
	for _, c := range wiretest.Captures(t) {
		x := c.Exchange()
		if len(declaredTools(AskedOf(x))) == 0 {
			continue
		}
		seen++
		v := judged(t, check("tool_call_shape"), x)
		if v.Status == exchange.VerdictIncomparable {
			t.Errorf("%s: %s", c.ID(), v.Reason)
		}
		if why, stated := want[c.ID()]; stated {
			wantVerdict(t, v, exchange.VerdictFail, why)
			delete(want, c.ID())
		}
	}
	if seen < 10 || len(want) > 0 {
		t.Fatalf("%d captures with tools, and none of %v", seen, want)
	}
}

func TestToolGatesAreExplained(t *testing.T) {
	seen := 0
	for _, g := range All() {
		if g.Family != "tool" {
			continue
		}
		seen++
		for _, word := range []string{"ok: ", "fail: "} {
			if !strings.Contains(g.Explain, word) {
				t.Errorf("%s does not say what %q means", g.ID, word)
			}
		}
	}
	if seen < 9 {
		t.Errorf("%d tool gates", seen)
	}
}

func TestFunctionCallGate(t *testing.T) {
	for name, c := range map[string]struct {
		answer reply
		status exchange.VerdictStatus
	}{
		"called":      {reply{calls: []replyCall{weather("", "Paris")}, finish: "stop"}, exchange.VerdictOK},
		"finish only": {reply{content: "x", finish: "tool_calls"}, exchange.VerdictOK},
		"neither":     {reply{content: "get_weather", finish: "stop"}, exchange.VerdictFail},
		"other":       {reply{calls: []replyCall{{"a", "function", "now", "{}"}}, finish: "stop"}, exchange.VerdictFail},
	} {
		t.Run(name, func(t *testing.T) {
			v := judged(t, check("function_call"), c.answer.exchange(withTools(""), false))
			if v.Status != c.status {
				t.Errorf("%s (%s)", v.Status, v.Reason)
			}
		})
	}
	v := judged(t, check("function_call", `{"name":"now"}`), reply{calls: []replyCall{{"a", "function", "now", "{}"}}, finish: "stop"}.exchange(withTools(""), false))
	wantVerdict(t, v, exchange.VerdictOK, "")
}

func TestStreamDoneGate(t *testing.T) {
	streamed := withTools(`,"stream":true`)
	for name, c := range map[string]struct {
		request string
		answer  reply
		stream  bool
		status  exchange.VerdictStatus
		why     string
	}{
		"ends":         {streamed, reply{content: "x"}, true, exchange.VerdictOK, ""},
		"does not end": {streamed, reply{content: "x", endless: true}, true, exchange.VerdictFail, "[DONE]"},
		"no stream":    {streamed, reply{content: "x"}, false, exchange.VerdictFail, "the answer is none"},
		"not asked":    {withTools(""), reply{content: "x"}, false, exchange.VerdictSkipped, "no turn asked"},
	} {
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, judged(t, check("stream_done"), c.answer.exchange(c.request, c.stream)), c.status, c.why)
		})
	}
}

func BenchmarkToolCallShape(b *testing.B) {
	x := withCalls(weather("call_1", "Paris"), weather("call_2", "Oslo")).exchange(withTools(""), true)
	c := exchange.Case{ID: "c", Exchanges: []*exchange.Exchange{x}}
	for b.Loop() {
		if v, _, err := Judge(Prepare(&c), check("tool_call_shape")); err != nil || v.Status != exchange.VerdictOK {
			b.Fatal(v, err)
		}
	}
}
