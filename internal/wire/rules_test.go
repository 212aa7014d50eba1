package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// TestRules holds what a reader of any engine's wire may rely on, rule by rule.
func TestRules(t *testing.T) {
	for _, rule := range []struct {
		name string
		hold func(*testing.T)
	}{
		{"the dialect comes from the path, the framing from the response", ruleFramingOfTheResponse},
		{"an event that is not understood changes nothing of what the others say", ruleGarbageChangesNothing},
		{"an unterminated block at the end is no event", ruleUnterminatedBlock},
		{"the first token is the first generated content of any kind", ruleFirstToken},
		{"first event, first token and first answer are three marks", ruleThreeMarks},
		{"the last usage wins, never the first, never a sum", ruleLastUsageWins},
		{"DONE is no proof of success and its absence none of failure", ruleDoneProvesNothing},
		{"an error anywhere wins over every later end", ruleErrorWins},
		{"events are not tokens", ruleEventsAreNotTokens},
		{"the engine's times are kept apart and as they are", ruleEngineTimes},
		{"reasoning in two spellings counts once", ruleReasoningOnce},
		{"null is absent", ruleNullIsAbsent},
		{"tool fragments go by index, without one by id, without both to the last", ruleToolFragments},
		{"of a cumulative text what is new counts", ruleCumulativeText},
		{"an event that repeats the answer adds nothing", ruleRepeatsAddNothing},
		{"unknown keys are kept verbatim", ruleUnknownKeys},
		{"an event may be larger than a mebibyte", ruleLargeEvent},
		{"a transcript is the same at every split", ruleEverySplit},
	} {
		t.Run(rule.name, rule.hold)
	}
}

func ruleFramingOfTheResponse(t *testing.T) {
	whole := `{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}`
	for _, tc := range []struct {
		contentType, body string
		want              Framing
	}{
		{"text/event-stream", stream(finishChunk), FramingSSE},
		{"application/json", whole, FramingJSON}, // whatever the request asked for
		{"text/plain", stream(finishChunk), FramingSSE},
		{"text/event-stream", whole, FramingJSON},
		{"", ": ping\n\n" + stream(finishChunk), FramingSSE},
		{"", "event: x\n" + stream(finishChunk), FramingSSE},
		{"application/json", "[" + whole + "]", FramingJSONArray},
	} {
		tr := sayAt(Info{Path: "/v1/chat/completions", ContentType: tc.contentType}, tc.body)
		if tr.Framing != tc.want || tr.Dialect != DialectChat || !tr.DialectEnd {
			t.Errorf("%s %.20q: framing %q, dialect %q, end %v", tc.contentType, tc.body, tr.Framing, tr.Dialect, tr.DialectEnd)
		}
	}
}

func ruleGarbageChangesNothing(t *testing.T) {
	events := []string{delta(`{"content":"a"}`), delta(`{"content":"b"}`), finishChunk, "[DONE]"}
	want := say(stream(events...))
	for at := range events {
		got := say(stream(slices.Insert(slices.Clone(events), at, "it {broke")...))
		if got.ParseErrors != 1 || got.Choice0().Text != want.Choice0().Text || !got.DialectEnd || len(got.Events) != len(want.Events)+1 {
			t.Errorf("garbage at %d: %+v", at, got)
		}
	}
}

func ruleUnterminatedBlock(t *testing.T) {
	tr := say(stream(delta(`{"content":"a"}`)) + "data: " + delta(`{"content":"b"}`))
	if len(tr.Events) != 1 || tr.Choice0().Text != "a" || !tr.UnterminatedLast {
		t.Errorf("%+v", tr)
	}
}

func ruleFirstToken(t *testing.T) {
	role := delta(`{"role":"assistant","content":""}`)
	for _, content := range []string{
		`{"content":"a"}`, `{"reasoning_content":"a"}`, `{"reasoning":"a"}`, `{"thinking":"a"}`, `{"refusal":"a"}`,
		`{"content":[{"type":"text","text":"a"}]}`, `{"tool_calls":[{"index":0,"id":"x"}]}`,
		`{"tool_calls":[{"index":0,"function":{"name":"f"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`, `{"function_call":{"name":"f"}}`,
	} {
		tr := say(": ping\n\n" + stream(role, `{"choices":[],"usage":null}`, delta(content), finishChunk))
		var kinds []bool
		for _, e := range tr.Events {
			kinds = append(kinds, e.Kinds != 0)
		}
		if d := cmp.Diff([]bool{false, false, true, false}, kinds); d != "" {
			t.Errorf("%s (-want +got):\n%s", content, d)
		}
	}
}

func ruleThreeMarks(t *testing.T) {
	tr := say(stream(delta(`{"role":"assistant"}`), delta(`{"reasoning_content":"hm"}`), delta(`{"content":"a"}`), finishChunk))
	answer := slices.IndexFunc(tr.Events, func(e Event) bool { return e.Kinds&KindAnswer != 0 })
	if tr.Events[0].Kinds != 0 || tr.Events[1].Kinds != KindReasoning || answer != 2 {
		t.Errorf("events %+v", tr.Events)
	}
}

func ruleLastUsageWins(t *testing.T) {
	usage := func(n int) string { return fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d}`, n, n) }
	choice := `{"choices":[{"index":0,"delta":{"content":"a"}}],`
	for name, events := range map[string][]string{
		"on an event of its own":        {choice + usage(1) + "}", finishChunk, `{"choices":[],` + usage(9) + "}"},
		"on the finish event":           {`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],` + usage(9) + "}"},
		"beside a choice with content":  {finishChunk, choice + usage(9) + "}"},
		"on every event":                {choice + usage(1) + "}", choice + usage(5) + "}", choice + usage(9) + "}", finishChunk},
		"null behind it":                {choice + usage(9) + "}", finishChunk, `{"choices":[],"usage":null}`},
		"in x_groq":                     {finishChunk, `{"choices":[],"x_groq":{` + usage(9) + "}}"},
		"zeros before it":               {choice + usage(0) + "}", finishChunk, `{"choices":[],` + usage(9) + "}"},
		"without choices at all":        {finishChunk, "{" + usage(9) + "}"},
		"repeated on the chunks behind": {finishChunk, `{"choices":[],` + usage(9) + "}", `{"choices":[],` + usage(9) + "}"},
	} {
		if u := say(stream(events...)).Usage; u == nil || *u.Prompt != 9 || *u.Completion != 9 {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

func ruleDoneProvesNothing(t *testing.T) {
	for _, tc := range []struct {
		name     string
		events   []string
		complete bool
	}{
		{"finish reason and DONE", []string{finishChunk, "[DONE]"}, true},
		{"finish reason alone", []string{finishChunk}, true},
		{"DONE alone", []string{delta(`{"content":"a"}`), "[DONE]"}, false},
		{"neither", []string{delta(`{"content":"a"}`)}, false},
		{"DONE behind an error", []string{`{"error":{"message":"m"}}`, "[DONE]"}, false},
	} {
		if tr := say(stream(tc.events...)); (tr.DialectEnd && tr.Error == nil) != tc.complete {
			t.Errorf("%s: end %v, error %v", tc.name, tr.DialectEnd, tr.Error)
		}
	}
}

func ruleErrorWins(t *testing.T) {
	usage := `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`
	for path, body := range map[string]string{
		"/v1/chat/completions": stream(`{"error":"m"}`, finishChunk, usage, "[DONE]"),
		"/v1/completions":      stream(`{"error":"m"}`, `{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}`, "[DONE]"),
		"/completion":          stream(`{"error":{"message":"m"}}`, `{"content":"","stop":true,"stop_type":"eos"}`),
		"/generate":            stream(`{"error":{"message":"m"}}`, `{"text":"a","meta_info":{"finish_reason":{"type":"stop"}}}`, "[DONE]"),
		"/api/chat":            stream(`{"error":"m","done":false}`, `{"done":true,"tokenCount":1}`),
		"/api/v1/chat":         stream(`{"type":"error","error":{"message":"m"}}`, `{"type":"chat.end","result":{"output":[],"stats":{}}}`),
	} {
		tr := sayAt(Info{Path: path, ContentType: "text/event-stream"}, body)
		if tr.Error == nil || tr.Error.Message != "m" || tr.DialectEnd || tr.FinishNorm != normError {
			t.Errorf("%s: error %+v, end %v, finish %q", path, tr.Error, tr.DialectEnd, tr.FinishNorm)
		}
	}
	lines := sayAt(Info{Path: "/api/chat", ContentType: "application/x-ndjson"}, "{\"error\":\"m\"}\n{\"done\":true,\"done_reason\":\"stop\"}\n")
	if lines.DialectEnd || lines.FinishNorm != normError {
		t.Errorf("lines: end %v, finish %q", lines.DialectEnd, lines.FinishNorm)
	}
}

func ruleEventsAreNotTokens(t *testing.T) {
	merged := say(stream(`{"choices":[{"index":0,"delta":{"content":"a b c"},"token_ids":[1,2,3]}]}`, finishChunk, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":4}}`))
	if merged.TokenEvents() != 1 || merged.Events[0].Tokens != 3 || *merged.Usage.Completion != 4 {
		t.Errorf("one event of three tokens, four in all: %+v", merged)
	}
	silent := say(stream(`{"choices":[{"index":0,"delta":{"content":""},"logprobs":{"content":[{"token":"\\xf0"}]}}]}`, delta(`{"content":"a"}`), finishChunk))
	if silent.TokenEvents() != 1 || silent.Events[0].Tokens != 1 || silent.Events[0].Kinds != 0 || silent.Events[1].Tokens != -1 {
		t.Errorf("a token without text: %+v", silent.Events)
	}
}

func ruleEngineTimes(t *testing.T) {
	tr := say(stream(finishChunk, `{"choices":[],"timings":{"cache_n":512,"prompt_n":3584,"prompt_ms":1490.5,"predicted_n":3,"predicted_ms":60}}`))
	tm := tr.Timings
	if *tm.PrefillN != 3584 || *tm.CachedN != 512 || *tm.PrefillMS != 1490.5 || tm.PrefillCounts {
		t.Errorf("llama.cpp counts what it read: %+v", tm)
	}
	lines := sayAt(Info{Path: "/api/generate", ContentType: "application/x-ndjson"}, `{"response":"a","done":true,"prompt_eval_count":30,"prompt_eval_duration":40000000}`)
	if tm := lines.Timings; *tm.PrefillN != 30 || *tm.PrefillMS != 40 || !tm.PrefillCounts {
		t.Errorf("Ollama counts what came from the cache too: %+v", tm)
	}
}

func ruleReasoningOnce(t *testing.T) {
	tr := say(stream(delta(`{"reasoning_content":"a","reasoning":"a","content":null}`), delta(`{"reasoning":"b"}`)))
	if got := tr.Choice0().Reasoning; got != "ab" {
		t.Errorf("reasoning %q", got)
	}
}

func ruleNullIsAbsent(t *testing.T) {
	tr := say(stream(
		`{"id":"i","model":"m","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":null,"refusal":null,"tool_calls":null,"function_call":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null,"error":null,"timings":null}`,
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}]}`),
		delta(`{"tool_calls":[{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"}"}}]}`),
		`{"id":null,"model":null,"choices":null}`,
		finishChunk,
	))
	want := []ToolCall{{ID: "a", Type: "function", Name: "f", Arguments: "{}"}}
	if d := cmp.Diff(want, tr.Choice0().ToolCalls); d != "" || tr.ID != "i" || tr.Model != "m" || tr.Usage != nil || tr.Extras != nil || tr.Error != nil || !tr.DialectEnd {
		t.Errorf("calls (-want +got):\n%s\n%+v", d, tr)
	}
}

func ruleToolFragments(t *testing.T) {
	call := func(s string) string { return delta(`{"tool_calls":[` + s + `]}`) }
	for name, events := range map[string][]string{
		"by index": {call(`{"index":0,"id":"a","function":{"name":"f"}}`), call(`{"index":1,"id":"b","function":{"name":"g"}}`), call(`{"index":0,"function":{"arguments":"1"}}`), call(`{"index":1,"function":{"arguments":"2"}}`)},
		"by id":    {call(`{"id":"a","function":{"name":"f"}}`), call(`{"id":"b","function":{"name":"g"}}`), call(`{"id":"a","function":{"arguments":"1"}}`), call(`{"id":"b","function":{"arguments":"2"}}`)},
		"the last": {call(`{"id":"a","function":{"name":"f"}}`), call(`{"function":{"arguments":"1"}}`), call(`{"id":"b","function":{"name":"g"}}`), call(`{"function":{"arguments":"2"}}`)},
		"objects":  {call(`{"id":"a","function":{"name":"f","arguments":1}},{"id":"b","function":{"name":"g","arguments":2}}`)},
	} {
		want := []ToolCall{{ID: "a", Name: "f", Arguments: "1"}, {Index: 1, ID: "b", Name: "g", Arguments: "2"}}
		if d := cmp.Diff(want, say(stream(events...)).Choice0().ToolCalls); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func ruleCumulativeText(t *testing.T) {
	tr := generate(`{"text":"a","meta_info":{}}`, `{"text":"ab","meta_info":{}}`, `{"text":"ab","meta_info":{}}`, `{"text":"abc","meta_info":{}}`)
	if tr.Choice0().Text != "abc" || tr.TokenEvents() != 3 {
		t.Errorf("text %q in %d token events", tr.Choice0().Text, tr.TokenEvents())
	}
}

func ruleRepeatsAddNothing(t *testing.T) {
	tr := sayAt(Info{Path: "/api/v1/chat", ContentType: "text/event-stream"}, stream(
		`{"type":"message.delta","content":"a"}`, `{"type":"message.end"}`,
		`{"type":"chat.end","result":{"output":[{"type":"message","content":"a"}],"stats":{"input_tokens":1,"total_output_tokens":1}}}`))
	if tr.Choice0().Text != "a" || tr.TokenEvents() != 1 || !tr.DialectEnd {
		t.Errorf("LM Studio: text %q in %d token events", tr.Choice0().Text, tr.TokenEvents())
	}
}

func ruleUnknownKeys(t *testing.T) {
	keys := []string{"timings", "telemetry", "metrics", "tensorfold", "speculative", "stats", "sglext", "strata_mcp", "queue_position", "obfuscation"}
	for _, key := range keys {
		raw := `{ "x" : [1.50, "\u00e9"] }`
		tr := say(stream(`{"choices":[{"index":0,"delta":{"content":"a"}}],"`+key+`": `+raw+`}`, finishChunk))
		if string(tr.Extras[key]) != raw || tr.Choice0().Text != "a" || !tr.DialectEnd {
			t.Errorf("%s is kept as %q", key, tr.Extras[key])
		}
	}
}

func ruleLargeEvent(t *testing.T) {
	big := strings.Repeat("x", 3<<20)
	if tr := say(stream(delta(`{"content":"`+big+`"}`), finishChunk)); tr.Choice0().Text != big || tr.ParseErrors+tr.Oversized != 0 {
		t.Errorf("%d bytes of text, %d parse errors, %d oversized", len(tr.Choice0().Text), tr.ParseErrors, tr.Oversized)
	}
	line := sayAt(Info{Path: "/api/generate", ContentType: "application/x-ndjson"}, `{"response":"a","context":[`+strings.Repeat("1,", 1<<20)+`1],"done":true}`+"\n")
	if !line.DialectEnd || line.Choice0().Text != "a" {
		t.Errorf("a line with a context: %+v", line)
	}
}

// ruleEverySplit cuts every vector in two around every line end, escape and byte of a longer character, and at many
// places between; TestVectors cuts at every place at once.
func ruleEverySplit(t *testing.T) {
	n := 0
	delicate := func(b byte) bool { return b == '\n' || b == '\r' || b == '\\' || b >= 0x80 }
	for _, v := range wiretest.Vectors(t) {
		whole := withoutReads(parseIn(v, [][]byte{v.Body}))
		for at := 1; at < len(v.Body); at++ {
			if at%41 != 0 && !delicate(v.Body[at-1]) && !delicate(v.Body[at]) {
				continue
			}
			n++
			cut := withoutReads(parseIn(v, [][]byte{v.Body[:at], v.Body[at:]}))
			if !reflect.DeepEqual(whole, cut) { // much faster than cmp
				t.Fatalf("%s cut at %d (-whole +cut):\n%s", v.Name(), at, cmp.Diff(whole, cut))
			}
		}
	}
	if n == 0 {
		t.Fatal("no vector was cut")
	}
	t.Logf("%d cuts", n)
}
