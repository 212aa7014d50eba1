package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire/wiretest"
)

// complete parses a stream of llama.cpp's /completion.
func complete(events ...string) *Transcript {
	return sayAt(Info{Path: "/completion", ContentType: "text/event-stream"}, stream(events...))
}

// generate parses a stream of SGLang's /generate.
func generate(events ...string) *Transcript {
	return sayAt(Info{Path: "/generate", ContentType: "text/event-stream"}, stream(append(events, "[DONE]")...))
}

func TestLlamaCppCaptures(t *testing.T) {
	for name, want := range map[string]struct{ tokens, logprobs, ids int }{
		"completion-stream-nprobs":       {4, 4, 4},
		"completion-nprobs":              {4, 4, 0}, // ids of a whole answer come only if asked for
		"completion-nprobs-postsampling": {3, 3, 0},
		"badbytes-completion-stream":     {64, 0, 64},
	} {
		tr := parseCapture(t, "llama-server/"+name)
		if tr.Dialect != DialectLlamaCpp || *tr.Usage.Completion != int64(want.tokens) || tr.LogprobEntries != want.logprobs || tr.TokenIDs != want.ids {
			t.Errorf("%s: dialect %q, %d tokens, %d log-probabilities, %d ids", name, tr.Dialect, *tr.Usage.Completion, tr.LogprobEntries, tr.TokenIDs)
		}
		if tr.FinishNorm != normLength || *tr.FinishReason != "limit" || !tr.DialectEnd || tr.Usage.Partial || tr.Usage.PerChoice {
			t.Errorf("%s: finish %q, end %v, usage %+v", name, *tr.FinishReason, tr.DialectEnd, tr.Usage)
		}
		if _, ok := tr.Extras["prompt"]; ok || tr.Extras["generation_settings"] == nil || tr.Model == "" {
			t.Errorf("%s: model %q, %d extras", name, tr.Model, len(tr.Extras))
		}
	}
}

func TestLlamaCppEnds(t *testing.T) {
	for _, tc := range []struct{ last, reason, norm string }{
		{`"stop_type":"eos"`, "eos", normStop}, {`"stop_type":"word"`, "word", normStop}, {`"stop_type":"limit"`, "limit", normLength},
		{`"stopped_eos":true,"stopped_limit":false`, "eos", normStop}, {`"stopped_limit":true`, "limit", normLength}, {`"stopped_word":true`, "word", normStop},
		{`"stop_type":"none"`, "", ""}, {`"stop_type":null`, "", ""},
	} {
		tr := complete(`{"content":"a","stop":false,"stop_type":"none","tokens_predicted":1}`, `{"content":"","stop":true,`+tc.last+`}`)
		if got := tr.FinishReason; tc.reason == "" && got != nil || tc.reason != "" && (got == nil || *got != tc.reason) || tr.FinishNorm != tc.norm {
			t.Errorf("%s: finish %v, %q", tc.last, got, tr.FinishNorm)
		}
		if !tr.DialectEnd || tr.Terminator != "stop:true" {
			t.Errorf("%s: end %v, terminator %q", tc.last, tr.DialectEnd, tr.Terminator)
		}
	}
	cut := complete(`{"content":"a","stop":false,"tokens_predicted":1,"tokens_evaluated":5}`)
	if cut.DialectEnd || !cut.Usage.Partial || *cut.Usage.Prompt != 5 || cut.Terminator != "eof" {
		t.Errorf("a stream that was cut: %+v, usage %+v", cut, cut.Usage)
	}
	if tr := complete(`{"content":"a","stop":false,"tokens_predicted":1}`, `{"error":{"code":500,"message":"m","type":"server_error"}}`); tr.Error == nil || tr.Error.Code != "500" || tr.DialectEnd {
		t.Errorf("an error in the stream: %+v", tr.Error)
	}
}

// TestLlamaCppOfSeveral holds that several prompts or choices are kept apart, each with counts of its own only.
func TestLlamaCppOfSeveral(t *testing.T) {
	events := []string{
		`{"index":1,"content":"b","stop":false,"tokens_predicted":1,"tokens_evaluated":3}`,
		`{"index":0,"content":"a","stop":false,"tokens_predicted":1,"tokens_evaluated":3}`,
		`{"index":1,"content":"","stop":true,"stop_type":"eos","tokens_predicted":2,"tokens_evaluated":3}`,
	}
	half := complete(events...)
	if half.DialectEnd || !half.Usage.PerChoice {
		t.Errorf("one of two has ended: end %v, usage %+v", half.DialectEnd, half.Usage)
	}
	both := complete(append(events, `{"index":0,"content":"c","stop":true,"stop_type":"limit","tokens_predicted":4,"tokens_evaluated":3}`)...)
	if !both.DialectEnd || !both.Usage.PerChoice || both.Choices[0].Text != "ac" || both.Choices[1].Text != "b" || *both.FinishReason != "limit" {
		t.Errorf("both have ended: %+v", both)
	}
	list := sayAt(Info{Path: "/completions", ContentType: "application/json"}, `[{"index":0,"content":"a","stop":true,"tokens_predicted":1},{"index":1,"content":"b","stop":true,"tokens_predicted":2}]`)
	if len(list.Choices) != 2 || list.Dialect != DialectLlamaCpp || !list.DialectEnd || !list.Usage.PerChoice || list.Terminator != "json_array_end" {
		t.Errorf("a list: %+v", list)
	}
}

func TestLlamaCppProgress(t *testing.T) {
	progress := `"prompt_progress":{"total":40,"cache":8,"processed":%d,"time_ms":%d}`
	want := []Progress{
		{Event: 0, Tokens: ref(int64(16)), Total: ref(int64(40)), Cached: ref(int64(8)), EngineMS: ref(5.0)},
		{Event: 1, Tokens: ref(int64(40)), Total: ref(int64(40)), Cached: ref(int64(8)), EngineMS: ref(9.0)},
	}
	native := complete(`{"content":"","stop":false,"tokens_predicted":0,`+fmt.Sprintf(progress, 16, 5)+`}`, `{"content":"","stop":false,`+fmt.Sprintf(progress, 40, 9)+`}`, `{"content":"a","stop":true}`)
	chat := say(stream(`{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],`+fmt.Sprintf(progress, 16, 5)+`}`, `{"choices":[],`+fmt.Sprintf(progress, 40, 9)+`}`, delta(`{"content":"a"}`), finishChunk))
	for name, tr := range map[string]*Transcript{"native": native, "chat": chat} {
		if d := cmp.Diff(want, tr.Progress); d != "" || tr.ProgressEvents != 2 {
			t.Errorf("%s: %d events (-want +got):\n%s", name, tr.ProgressEvents, d)
		}
		if tr.Events[0].Phase != PhasePrompt || tr.Events[0].Kinds != 0 || tr.Events[2].Phase != PhaseNone || tr.Events[2].Kinds != KindText {
			t.Errorf("%s: events %+v", name, tr.Events)
		}
	}
	capture := parseCapture(t, "llama-server/chat-stream-return-progress-cached")
	if n := len(capture.Progress); n != 2 || *capture.Progress[1].Tokens != 952 || *capture.Progress[1].Total != 952 || *capture.Progress[0].Cached != 951 {
		t.Errorf("a real server: %+v", capture.Progress)
	}
}

// TestSharedPaths holds that a path which several servers use for formats of their own gets a dialect only on proof.
func TestSharedPaths(t *testing.T) {
	for _, tc := range []struct {
		path, contentType, body string
		want                    Dialect
	}{
		{"/generate", "application/json", `{"text":["prompt and answer"]}`, DialectNone},                           // vLLM's demo server
		{"/generate", "application/json", `{"generated_text":"a"}`, DialectNone},                                   // TGI
		{"/generate", "application/json", `{"text":"a","meta_info":{}}`, DialectSGLang},                            //
		{"/generate", "application/json", `{"error":{"message":"m"}}`, DialectSGLang},                              // tells nothing of others
		{"/generate", "application/json", ``, DialectSGLang},                                                       //
		{"/completions", "application/json", `{"choices":[{"text":"a","finish_reason":"stop"}]}`, DialectLlamaCpp}, // read as the legacy completions
		{"/completion", "application/json", `{"completion":"a"}`, DialectNone},                                     //
		{"/api/chat", "text/event-stream", stream(`{"type":"text-delta","delta":"a"}`), DialectNone},               // of web frameworks
		{"/api/chat", "text/event-stream", stream(`{"queue_position":1}`), DialectTensorSharp},                     //
		{"/api/chat", "application/x-ndjson", `{"message":{"content":"a"}}` + "\n", DialectOllama},                 //
		{"/api/v1/chat", "application/json", `{"reply":"a"}`, DialectNone},                                         //
		{"/api/generate", "text/event-stream", stream(`{"token":"a"}`), DialectNone},                               // TensorSharp streams lines there
	} {
		tr := sayAt(Info{Path: tc.path, ContentType: tc.contentType}, tc.body)
		if tr.Dialect != tc.want {
			t.Errorf("%s %.50s: dialect %q, want %q", tc.path, tc.body, tr.Dialect, tc.want)
		}
		if tc.want == DialectNone && (len(tr.Choices) > 0 || tr.ParseErrors > 0) {
			t.Errorf("%s %.50s is read all the same: %+v", tc.path, tc.body, tr.Choices)
		}
	}
	legacy := sayAt(Info{Path: "/completions", ContentType: "application/json"}, `{"choices":[{"text":"a","finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	if legacy.Choice0().Text != "a" || !legacy.DialectEnd || *legacy.Usage.Completion != 1 {
		t.Errorf("legacy completions: %+v", legacy)
	}
	foreign := sayAt(Info{Path: "/generate", ContentType: "text/event-stream"}, stream(`{"token":{"text":"a"}}`, `{"token":{"text":"b"},"error":"m"}`))
	if foreign.Error == nil || foreign.Error.Message != "m" {
		t.Errorf("an error in another format: %+v", foreign.Error)
	}
	pinned := sayAt(Info{Path: "/x", Dialect: DialectTensorSharp, ContentType: "application/x-ndjson"}, `{"token":"a"}`)
	if pinned.Dialect != DialectNone {
		t.Errorf("pinned to a dialect that is not spoken in lines: %q", pinned.Dialect)
	}
}

func ref[T any](v T) *T { return &v }

func TestTensorSharpPage(t *testing.T) {
	tr := sayAt(Info{Path: "/api/chat", ContentType: "text/event-stream"}, stream(
		`{"queue_position":2,"queue_pending":3}`, `{"queue_position":1,"queue_pending":2}`, `{"thinking":"hm"}`, `{"token":"It\u0027s"}`, `{"token":" 4"}`,
		`{"tool_calls":[{"name":"f","arguments":{"a":1}},{"name":"g","arguments":{}}]}`,
		`{"done":true,"tokenCount":7,"elapsed":0.5,"tokPerSec":14,"aborted":false,"error":null,"sessionId":"s","promptTokens":30,"kvReusedTokens":12,"kvReusePercent":40}`))
	c := tr.Choice0()
	want := []ToolCall{{Name: "f", Arguments: `{"a":1}`}, {Index: 1, Name: "g", Arguments: "{}"}}
	if d := cmp.Diff(want, c.ToolCalls); d != "" || c.Text != "It's 4" || c.Reasoning != "hm" {
		t.Errorf("text %q, reasoning %q, calls (-want +got):\n%s", c.Text, c.Reasoning, d)
	}
	if u := tr.Usage; *u.Prompt != 30 || *u.Completion != 7 || *u.Cached != 12 || u.Partial {
		t.Errorf("usage %+v", u)
	}
	if tr.QueueEvents != 2 || tr.Events[1].Phase != PhaseQueue || !tr.DialectEnd || tr.Terminator != "done:true" || tr.Error != nil {
		t.Errorf("%+v", tr)
	}
	if tm := tr.Timings; *tm.TotalMS != 500 || tm.DecodeTPS != nil || string(tr.Extras["tokPerSec"]) != "14" {
		t.Errorf("its rate is over the whole request and no decode rate: %+v", tm)
	}
}

func TestTensorSharpPageEnds(t *testing.T) {
	for _, last := range []string{`"aborted":true,"error":null`, `"aborted":false,"error":"out of memory"`} {
		bad := sayAt(Info{Path: "/api/chat", ContentType: "text/event-stream"}, stream(`{"token":"a"}`, `{"done":true,"tokenCount":1,`+last+`}`))
		if bad.Error == nil || bad.DialectEnd || bad.Terminator != "done:true" {
			t.Errorf("%s: error %+v, end %v", last, bad.Error, bad.DialectEnd)
		}
	}
	if cut := sayAt(Info{Path: "/api/chat", ContentType: "text/event-stream"}, stream(`{"token":"a"}`)); cut.DialectEnd || cut.Usage != nil {
		t.Errorf("a stream that was cut: %+v", cut)
	}
}

func TestLMStudioTools(t *testing.T) {
	tr := sayAt(Info{Path: "/api/v1/chat", ContentType: "text/event-stream"}, stream(
		`{"type":"chat.start","model_instance_id":"m"}`,
		`{"type":"tool_call.start","tool":"f"}`, `{"type":"tool_call.arguments","tool":"f","arguments":{"a":1}}`,
		`{"type":"tool_call.success","tool":"f","arguments":{"a":1},"output":"x"}`,
		`{"type":"tool_call.start","tool":"bad"}`, `{"type":"tool_call.failure","reason":"r","metadata":{"type":"invalid_arguments","tool_name":"bad","arguments":{"b":2}}}`,
		`{"type":"tool_call.failure","reason":"r","metadata":{"type":"invalid_name","tool_name":"none"}}`,
		`{"type":"tool_call.arguments"}`,
		`{"type":"message.delta","content":"a"}`,
		`{"type":"chat.end","result":{"model_instance_id":"m","output":[{"type":"message","content":"a"}],"stats":{"input_tokens":9,"total_output_tokens":8},"response_id":"r1"}}`))
	want := []ToolCall{
		{Type: "function", Name: "f", Arguments: `{"a":1}`}, {Index: 1, Type: "function", Name: "bad", Arguments: `{"b":2}`}, {Index: 2, Type: "function", Name: "none"},
	}
	if d := cmp.Diff(want, tr.Choice0().ToolCalls); d != "" || tr.ID != "r1" || tr.Model != "m" || tr.TokenEvents() != 6 {
		t.Errorf("%d token events, calls (-want +got):\n%s", tr.TokenEvents(), d)
	}
	whole := sayAt(Info{Path: "/api/v1/chat", ContentType: "application/json"}, `{"model_instance_id":"m","output":[{"type":"reasoning","content":"hm"},{"type":"tool_call","tool":"f","arguments":{"a":1},"output":"x"},`+
		`{"type":"invalid_tool_call","reason":"r","metadata":{"tool_name":"bad","arguments":{"b":2}}},{"type":"message","content":"a"}],"stats":{"input_tokens":9,"total_output_tokens":8,"time_to_first_token_seconds":0.25},"response_id":"r1"}`)
	if d := cmp.Diff(want[:2], whole.Choice0().ToolCalls); d != "" || whole.Choice0().Text != "a" || whole.Choice0().Reasoning != "hm" || !whole.DialectEnd || whole.Terminator != "json" {
		t.Errorf("%+v, calls (-want +got):\n%s", whole, d)
	}
	if *whole.Usage.Prompt != 9 || *whole.Timings.TTFTMS != 250 || string(whole.Extras["stats"]) == "" {
		t.Errorf("usage %+v, timings %+v", whole.Usage, whole.Timings)
	}
}

func TestLMStudioPhases(t *testing.T) {
	for _, v := range wiretest.Vectors(t) {
		if v.File != "lmstudio-native-events.txt" {
			continue
		}
		tr := parseIn(v, [][]byte{v.Body})
		var phases strings.Builder
		for _, e := range tr.Events {
			phases.WriteByte("-qlp"[e.Phase])
		}
		if got := phases.String(); got != "-lllppp--------" {
			t.Errorf("phases %s", got)
		}
		if d := cmp.Diff([]Progress{{Event: 5, Share: ref(0.5)}}, tr.Progress); d != "" {
			t.Errorf("progress (-want +got):\n%s", d)
		}
	}
	cut := sayAt(Info{Path: "/api/v1/chat", ContentType: "text/event-stream"}, stream(`{"type":"model_load.end","load_time_seconds":2.5}`))
	if cut.Timings == nil || *cut.Timings.LoadMS != 2500 || cut.DialectEnd {
		t.Errorf("a load before a cut: %+v", cut.Timings)
	}
	bad := sayAt(Info{Path: "/api/v1/chat", ContentType: "application/json", Status: 404}, `{"error":{"type":"model_not_found","message":"m"}}`)
	if bad.Error == nil || bad.Error.Type != "model_not_found" || bad.Error.Where != whereHTTPStatus {
		t.Errorf("an error in one piece: %+v", bad.Error)
	}
}
