package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestDialectOf(t *testing.T) {
	for path, want := range map[string]Dialect{
		"/v1/chat/completions":                                   DialectChat,
		"/chat/completions":                                      DialectChat,
		"/v1/chat/completions/":                                  DialectChat,
		"/v1/chat/completions?api-version=1":                     DialectChat,
		"/api/v0/chat/completions":                               DialectChat,
		"/v1beta/openai/chat/completions":                        DialectChat,
		"/openai/deployments/gpt/chat/completions?api-version=1": DialectChat,
		"http://127.0.0.1:8080/v1/chat/completions":              DialectChat,
		"//v1/chat/completions":                                  DialectChat,
		"/v1/completions":                                        DialectCompletions,
		"/api/v0/completions":                                    DialectCompletions,
		"/some/prefix/v1/completions":                            DialectCompletions,
		"/openai/deployments/davinci/completions?api-version=1":  DialectCompletions,
		"/v1/engines/x/completions":                              DialectCompletions,
		"/api/chat":                                              DialectOllama,
		"/api/generate":                                          DialectOllama,
		"/api/chat/ollama":                                       DialectOllama,
		"/completion":                                            DialectLlamaCpp,
		"/completions":                                           DialectLlamaCpp, // the same under an older name
		"/generate":                                              DialectSGLang,
		"/v1/chat/completions/abc":                               DialectNone,
		"/v1/chat/completionsx":                                  DialectNone,
		"/v1/responses":                                          DialectResponses,
		"/openai/responses?api-version=1":                        DialectResponses, // Azure
		"/v1/responses/resp_1":                                   DialectNone,
		"/v1/responses/resp_1/cancel":                            DialectNone,
		"/v1/messages":                                           DialectAnthropic,
		"/anthropic/v1/messages?beta=true":                       DialectAnthropic,
		"/v1/messages/count_tokens":                              DialectNone,
		"/v1/threads/t/messages":                                 DialectNone, // of the Assistants
		"/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict": DialectAnthropic,
		"/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict":       DialectAnthropic,
		"/v1beta/models/gemini-3:streamGenerateContent?alt=sse":                          DialectGemini,
		"/v1beta/models/gemini-3%3AgenerateContent":                                      DialectGemini,
		"/v1beta/models/gemini-3:countTokens":                                            DialectNone,
		"/v1beta/models/gemini-3:embedContent":                                           DialectEmbeddings,
		"/v1beta/models/gemini-3":                                                        DialectNone,
		"/v1/embeddings":                                                                 DialectEmbeddings,
		"/embedding":                                                                     DialectEmbeddings, // llama.cpp
		"/api/embed":                                                                     DialectEmbeddings, // Ollama
		"/api/embeddings":                                                                DialectEmbeddings, // Ollama, the older one
		"/api/v1/chat":                                                                   DialectLMStudio,
		"/":                                                                              DialectNone,
		"":                                                                               DialectNone,
		"*":                                                                              DialectNone,
	} {
		if got := DialectOf(path); got != want {
			t.Errorf("path %q has dialect %q, want %q", path, got, want)
		}
	}
}

func TestDialectCanBePinned(t *testing.T) {
	if d := cmp.Diff([]Dialect{
		DialectChat, DialectCompletions, DialectOllama, DialectTensorSharp, DialectLMStudio, DialectSGLang, DialectLlamaCpp,
		DialectResponses, DialectAnthropic, DialectGemini, DialectEmbeddings,
	}, Dialects()); d != "" {
		t.Errorf("dialects (-want +got):\n%s", d)
	}
	for dialect, want := range map[Dialect]Dialect{DialectNone: DialectCompletions, DialectChat: DialectChat, "unheard of": DialectCompletions} {
		tr := sayAt(Info{Path: "/v1/completions", ContentType: "text/event-stream", Dialect: dialect}, stream(finishChunk))
		if tr.Dialect != want {
			t.Errorf("pinned to %q, dialect %q, want %q", dialect, tr.Dialect, want)
		}
	}
}

// stream is an event stream with one JSON value an event.
func stream(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

// delta is a chat chunk with one choice that has the given delta.
func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

const finishChunk = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// say parses a body as the answer of a chat request.
func say(body string) *Transcript {
	return sayAt(Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"}, body)
}

func sayAt(info Info, body string) *Transcript {
	p := NewParser(info)
	p.Feed([]byte(body), 0)
	return p.Finish(true)
}

func TestToolFragments(t *testing.T) {
	frag := func(s string) string { return delta(`{"tool_calls":[` + s + `]}`) }
	for _, tc := range []struct {
		name   string
		events []string
		want   []ToolCall
		kinds  string // t for an event that adds to a call, . for one that does not
	}{
		{"by index, null id later", []string{
			frag(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`),
			frag(`{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}`),
			frag(`{"index":0,"id":null,"function":{"name":null,"arguments":"1"}}`),
			frag(`{"index":1,"function":{"arguments":"}"}}`),
		}, []ToolCall{{Index: 0, ID: "a", Type: "function", Name: "f", Arguments: "1"}, {Index: 1, ID: "b", Name: "g", Arguments: "{}"}}, "tttt"},
		{"a new id in each fragment is noise", []string{
			frag(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`),
			frag(`{"index":0,"id":"x","function":{"arguments":"1"}}`),
			frag(`{"index":0,"id":"y","function":{"arguments":"2"}}`),
		}, []ToolCall{{ID: "a", Name: "f", Arguments: "12"}}, "ttt"},
		{"every call numbered 0", []string{
			frag(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`),
			frag(`{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}`),
		}, []ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {Index: 1, ID: "b", Name: "f", Arguments: "{}"}}, "tt"},
		{"a repeated name and id add nothing", []string{
			frag(`{"index":0,"id":"a","function":{"name":"f"}}`),
			frag(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`),
		}, []ToolCall{{ID: "a", Name: "f"}}, "t."},
		{"a name in pieces", []string{
			frag(`{"index":0,"id":"a","function":{"name":"get_"}}`),
			frag(`{"index":0,"function":{"name":"time"}}`),
		}, []ToolCall{{ID: "a", Name: "get_time"}}, "tt"},
		{"object arguments", []string{
			frag(`{"index":0,"id":"a","function":{"name":"f","arguments":{"a": 1.50, "b": ["\u00e9"]}}}`),
		}, []ToolCall{{ID: "a", Name: "f", Arguments: `{"a":1.50,"b":["\u00e9"]}`}}, "t"},
		{"order of index, not of arrival", []string{
			frag(`{"index":1,"id":"b","function":{"name":"g"}}`), frag(`{"index":0,"id":"a","function":{"name":"f"}}`),
		}, []ToolCall{{Index: 0, ID: "a", Name: "f"}, {Index: 1, ID: "b", Name: "g"}}, "tt"},
		{"junk", []string{frag(`7,null,{}`), delta(`{"tool_calls":{}}`), delta(`{"function_call":"x"}`)}, []ToolCall{{}}, "..."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := say(stream(tc.events...))
			if d := cmp.Diff(tc.want, tr.Choice0().ToolCalls); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
			for i, e := range tr.Events {
				if got := e.Kinds == KindTool; got != (tc.kinds[i] == 't') {
					t.Errorf("event %d has kinds %v", i, e.Kinds)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	sse := Info{Path: "/v1/chat/completions", ContentType: "text/event-stream"}
	body := Info{Path: "/v1/chat/completions", ContentType: "application/json"}
	bad := Info{Path: "/v1/chat/completions", ContentType: "application/json", Status: 422}
	other := Info{Path: "/v1/unknown", ContentType: "application/json"}
	native := Info{Path: "/api/chat", ContentType: "application/x-ndjson"}
	for _, tc := range []struct {
		name string
		info Info
		body string
		want *Error
	}{
		{"object", sse, stream(`{"error":{"message":"m","type":"t","code":7}}`), &Error{"m", "t", "7", "event"}},
		{"text", sse, stream(`{"error":"m"}`), &Error{"m", "", "", "event"}},
		{"no message", sse, stream(`{"error":{"trace":"x"}}`), &Error{`{"trace":"x"}`, "", "", "event"}},
		{"null and empty are none", sse, stream(`{"error":null}`, `{"error":""}`, `{"error":false}`), nil},
		{"beside choices", sse, stream(`{"error":{"message":"m"},"choices":[{"delta":{},"finish_reason":"error"}]}`), &Error{"m", "", "", "embedded"}},
		{"embedded object", sse, stream(`{"choices":[{"delta":{}}],"tensorfold_error":{"message":"m"}}`), &Error{"m", "", "", "embedded"}},
		{"first wins", sse, stream(`{"error":"a"}`, `{"error":"b"}`), &Error{"a", "", "", "event"}},
		{"wins over the end", sse, stream(`{"error":"a"}`, finishChunk, "[DONE]"), &Error{"a", "", "", "event"}},
		{"flat, as older vLLM", sse, stream(`{"object":"error","message":"m","type":"t","code":400}`), &Error{"m", "t", "400", "event"}},
		{"named event", sse, "event: error\ndata: {\"message\":\"m\"}\n\n", &Error{"m", "", "", "event"}},
		{"named event without JSON", sse, "event: error\ndata: it broke\n\n", &Error{"it broke", "", "", "event"}},
		{"groq", sse, stream(`{"choices":[],"x_groq":{"error":"m"}}`), &Error{"m", "", "", "embedded"}},
		{"body", body, `{"error":{"message":"m","code":"c"}}`, &Error{"m", "", "c", "body"}},
		{"status", bad, `{"error":{"message":"m"}}`, &Error{"m", "", "", "http_status"}},
		{"detail", bad, `{"detail":[{"msg":"m"}]}`, &Error{`[{"msg":"m"}]`, "", "", "http_status"}},
		{"detail is no error under 200", body, `{"detail":"m"}`, nil},
		{"stream under a status", bad, stream(`{"error":"m"}`), &Error{"m", "", "", "http_status"}},
		{"status without JSON", bad, `<html>`, nil},
		{"unknown path", other, `{"a":{"error":1},"error":{"message":"m"}}`, &Error{"m", "", "", "body"}},
		{"unknown path, none", other, `{"data":[1,2]}`, nil},
		{"unknown path, large", other, `{"data":"` + strings.Repeat("x", 5000) + `","error":"m"}`, &Error{"m", "", "", "body"}},
		{"unknown path, array", other, `["error"]`, nil},
		{"ollama line", native, `{"error":"m"}`, &Error{"m", "", "", "event"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := sayAt(tc.info, tc.body)
			if d := cmp.Diff(tc.want, tr.Error); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
			if tc.want != nil && (tr.FinishNorm != normError || tr.DialectEnd) {
				t.Errorf("finish %q, dialect end %v beside an error", tr.FinishNorm, tr.DialectEnd)
			}
		})
	}
}

func TestFinishReasons(t *testing.T) {
	for _, tc := range []struct {
		raw   string
		tools bool
		want  string
	}{
		{"stop", false, normStop}, {"stop", true, normTools}, {"eos", false, normStop}, {"length", true, normLength},
		{"function_call", false, normTools}, {"content_filter", false, normFiltered}, {"abort", false, normError}, {"load", false, ""}, {"new", true, ""},
	} {
		if got := normalizeFinish(tc.raw, tc.tools); got != tc.want {
			t.Errorf("%q with tools %v is %q, want %q", tc.raw, tc.tools, got, tc.want)
		}
	}
	tr := say(stream(delta(`{"content":"x"}`), `{"choices":[{"delta":{},"finish_reason":"abort"}]}`, "[DONE]"))
	if tr.DialectEnd || tr.FinishNorm != normError || *tr.FinishReason != "abort" {
		t.Errorf("an aborted answer: end %v, %q, %q", tr.DialectEnd, tr.FinishNorm, *tr.FinishReason)
	}
	half := say(stream(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"},{"index":1,"delta":{"content":"b"}}]}`, "[DONE]"))
	if half.DialectEnd {
		t.Error("one of two choices finished, and the answer counts as ended")
	}
}

func TestRequestFacts(t *testing.T) {
	i64 := func(n int64) *int64 { return &n }
	chat := "/v1/chat/completions"
	for _, tc := range []struct {
		path, body string
		want       RequestFacts
	}{
		{chat, `{"model":"m","stream":true,"max_tokens":7,"n":2,"stream_options":{"include_usage":true}}`, RequestFacts{JSON: true, Model: "m", Stream: true, MaxTokens: i64(7), N: 2, IncludeUsage: true}},
		{chat, `{"max_tokens":7,"max_completion_tokens":9,"n":null,"stream":null}`, RequestFacts{JSON: true, MaxTokens: i64(9), N: 1}},
		{chat, `{"max_tokens":null,"n_predict":-1,"n":0,"stream_options":null}`, RequestFacts{JSON: true, N: 1}},
		{chat, `{"max_tokens":"ten","model":3,"stream":"yes"}`, RequestFacts{JSON: true, N: 1}},
		{chat, `{"max_tokens":0}`, RequestFacts{JSON: true, MaxTokens: i64(0), N: 1}},
		{"/v1/completions", `{"echo":true,"max_tokens":16}`, RequestFacts{JSON: true, MaxTokens: i64(16), N: 1, Echo: true}},
		{"/api/chat", `{"model":"m","options":{"num_predict":5}}`, RequestFacts{JSON: true, Model: "m", Stream: true, MaxTokens: i64(5), N: 1}},
		{"/api/chat", `{"stream":false}`, RequestFacts{JSON: true, N: 1}},
		{"/v1/responses", `{"max_output_tokens":5}`, RequestFacts{JSON: true, MaxTokens: i64(5), N: 1}},
		{chat, ``, RequestFacts{N: 1}}, {chat, `[1]`, RequestFacts{N: 1}}, {chat, `{"model":`, RequestFacts{N: 1}},
		{chat, strings.Repeat("[", 2<<20), RequestFacts{N: 1}},
	} {
		if d := cmp.Diff(tc.want, ReadRequest(tc.path, nil, []byte(tc.body))); d != "" {
			t.Errorf("%s %.60s (-want +got):\n%s", tc.path, tc.body, d)
		}
	}
	coded := []exchange.Header{{Name: "content-encoding", Value: "gzip"}}
	if f := ReadRequest(chat, coded, encode(t, "gzip", []byte(`{"model":"m"}`))); f.Model != "m" {
		t.Errorf("a coded request gives %+v", f)
	}
	if f := ReadRequest(chat, coded, []byte(`{"model":"m"}`)); f.JSON {
		t.Errorf("a request that is not coded as it says gives %+v", f)
	}
}
