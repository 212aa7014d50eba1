package bridge

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// answered is a sealed exchange with this answer.
func answered(target, kind, body string) *exchange.Exchange {
	x := &exchange.Exchange{End: exchange.EndEOF}
	x.Request.Target = target
	x.Response.Status = 200
	x.Response.Headers = []exchange.Header{{Name: "Content-Type", Value: kind}}
	x.Response.Body = exchange.NewBody([]byte(body))
	return x
}

const sse = "text/event-stream"

// TestAnswersBecomeMessages holds that what an engine signs comes back as it was sent.
func TestAnswersBecomeMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		target, kind, body string
		want               string
		calls              []Call
	}{
		"chat": {"/v1/chat/completions", "application/json", `{"choices":[{"message":{"content":null,"reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},"finish_reason":"tool_calls"}]}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]}`, []Call{{ID: "c1", Name: "f"}}},
		"messages": {"/v1/messages", "application/json", `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S=="},{"type":"redacted_thinking","data":"R"},{"type":"text","text":""},{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1.0}}],"stop_reason":"tool_use"}`,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"S=="},{"type":"redacted_thinking","data":"R"},{"type":"text","text":"a"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1.0}}]}`, []Call{{ID: "t1", Name: "f"}}},
		"messages, streamed": {"/v1/messages", sse, `event: message_start
data: {"type":"message_start","message":{"content":[]}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

: a comment

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h<"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S=="}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1.0}"}}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t2","name":"g","input":{}}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

data: {"type":"message_stop"}

`, `{"role":"assistant","content":[{"type":"thinking","thinking":"h<m","signature":"S=="},{"type":"tool_use","id":"t1","name":"f","input":{"a":1.0}},{"type":"tool_use","id":"t2","name":"g","input":{}}]}`, []Call{{ID: "t1", Name: "f"}, {ID: "t2", Name: "g"}}},
		"gemini, streamed": {"/v1beta/models/m:streamGenerateContent?alt=sse", sse, `data: {"candidates":[{"content":{"parts":[{"text":"h","thought":true}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"m","thought":true},{"text":"a"}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"b"},{"functionCall":{"name":"f","args":{"a":1.0}},"thoughtSignature":"S"}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"T"},{"text":""}]},"finishReason":"STOP"}]}

`, `{"role":"model","parts":[{"text":"hm","thought":true},{"text":"ab"},{"functionCall":{"name":"f","args":{"a":1.0}},"thoughtSignature":"S"},{"text":"","thoughtSignature":"T"}]}`, []Call{{Name: "f"}}},
		"gemini, a list": {"/v1beta/models/m:streamGenerateContent", "application/json", `[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},
{"promptFeedback":{}},{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}]`, `{"role":"model","parts":[{"text":"ab"}]}`, nil},
		"ollama": {"/api/chat", "application/x-ndjson", `{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}
{"message":{"role":"assistant","content":"a","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}
{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}
`, `{"role":"assistant","content":"a","thinking":"hm","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]}`, []Call{{Name: "f"}}},
	} {
		t.Run(name, func(t *testing.T) {
			x := answered(tc.target, tc.kind, tc.body)
			got, err := Answer(wire.DialectOf(tc.target), x, wire.Parse(x))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got.Message)); diff != "" {
				t.Errorf("%s\n%s", diff, got.Message)
			}
			if diff := cmp.Diff(tc.calls, got.Calls); diff != "" {
				t.Error(diff)
			}
			if !json.Valid(got.Message) {
				t.Error("not JSON")
			}
		})
	}
}

func TestCodedAnswersBecomeNoMessage(t *testing.T) {
	for d, wants := range map[wire.Dialect]error{chat: nil, ollama: nil, anthropic: errUnreadable, google: errUnreadable} {
		if _, err := Answer(d, answered("/", "", ""), &wire.Transcript{Coding: "gzip"}); !errors.Is(err, wants) {
			t.Errorf("%s: err = %v", d, err)
		}
	}
}

func TestTurnsOfARequest(t *testing.T) {
	for d, s := range said {
		got := Turns(d, []byte(s.body))
		shift := 0 // messages of the system
		if d == chat || d == ollama {
			shift = 1
		}
		if len(got) != 5+shift {
			t.Fatalf("%s: %d turns", d, len(got))
		}
		call, result := got[1+shift], got[2+shift]
		if !call.Assistant || len(call.Calls) != 1 || call.Calls[0].ID != "call_1" || call.Calls[0].Name != "get_weather" {
			t.Errorf("%s: the call is %+v", d, call)
		}
		if result.Assistant || len(result.Results) != 1 || result.Results[0].ID != "call_1" {
			t.Errorf("%s: the result is %+v", d, result)
		}
		if got[4+shift].Assistant || !got[3+shift].Assistant {
			t.Errorf("%s: %+v", d, got)
		}
	}
	if got := Turns(chat, []byte(`no JSON`)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
