package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

const (
	png    = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	gemini = "/v1beta/models/m:streamGenerateContent?alt=sse"
)

// said is one conversation with all that every dialect can say, written by hand in each. Reading one and writing another
// must give exactly the other.
var said = map[wire.Dialect]struct{ target, body string }{
	wire.DialectChat: {"/v1/chat/completions", `{"model":"m","messages":[
		{"role":"system","content":"Be brief."},
		{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}},{"type":"text","text":"Where is <this> & what's the weather?"}]},
		{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\",\"days\":1.50}"}}]},
		{"role":"tool","tool_call_id":"call_1","content":"sunny"},
		{"role":"assistant","content":"Sunny."},
		{"role":"user","content":"And tomorrow?"}],
		"stream":true,"stream_options":{"include_usage":true},"max_tokens":64,"temperature":0.70,"top_p":0.9,"top_k":40,"stop":["END","\n\n"],
		"tools":[{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"number"}},"required":["city"]}}},
			{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],
		"tool_choice":"auto",
		"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object","properties":{"t":{"type":"number"}},"additionalProperties":false}}},
		"chat_template_kwargs":{"enable_thinking":false}}`},
	wire.DialectAnthropic: {"/v1/messages", `{"model":"m","max_tokens":64,"system":"Be brief.","messages":[
		{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}},{"type":"text","text":"Where is <this> & what's the weather?"}]},
		{"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"call_1","name":"get_weather","input":{"city":"Oslo","days":1.50}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"sunny"}]},
		{"role":"assistant","content":"Sunny."},
		{"role":"user","content":"And tomorrow?"}],
		"tools":[{"name":"get_weather","description":"Weather of a city","input_schema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"number"}},"required":["city"]}},
			{"name":"now","input_schema":{"type":"object","properties":{}}}],
		"tool_choice":{"type":"auto"},"temperature":0.70,"top_p":0.9,"top_k":40,"stop_sequences":["END","\n\n"],
		"thinking":{"type":"disabled"},
		"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"t":{"type":"number"}},"additionalProperties":false}}},
		"stream":true}`},
	wire.DialectGemini: {gemini, `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[
		{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + png + `"}},{"text":"Where is <this> & what's the weather?"}]},
		{"role":"model","parts":[{"text":"Let me see."},{"functionCall":{"id":"call_1","name":"get_weather","args":{"city":"Oslo","days":1.50}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"get_weather","response":{"output":"sunny"}}}]},
		{"role":"model","parts":[{"text":"Sunny."}]},
		{"role":"user","parts":[{"text":"And tomorrow?"}]}],
		"tools":[{"functionDeclarations":[{"name":"get_weather","description":"Weather of a city","parametersJsonSchema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"number"}},"required":["city"]}},{"name":"now"}]}],
		"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},
		"generationConfig":{"maxOutputTokens":64,"temperature":0.70,"topP":0.9,"topK":40,"stopSequences":["END","\n\n"],
			"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"t":{"type":"number"}},"additionalProperties":false},
			"thinkingConfig":{"thinkingBudget":0}}}`},
	wire.DialectOllama: {"/api/chat", `{"model":"m","messages":[
		{"role":"system","content":"Be brief."},
		{"role":"user","content":"Where is <this> & what's the weather?","images":["` + png + `"]},
		{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"call_1","function":{"name":"get_weather","arguments":{"city":"Oslo","days":1.50}}}]},
		{"role":"tool","content":"sunny","tool_name":"get_weather","tool_call_id":"call_1"},
		{"role":"assistant","content":"Sunny."},
		{"role":"user","content":"And tomorrow?"}],
		"tools":[{"type":"function","function":{"name":"get_weather","description":"Weather of a city","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"number"}},"required":["city"]}}},
			{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],
		"format":{"type":"object","properties":{"t":{"type":"number"}},"additionalProperties":false},
		"options":{"num_predict":64,"temperature":0.70,"top_p":0.9,"top_k":40,"stop":["END","\n\n"]},"think":false,"stream":true}`},
}

// unsaid are the parts of a body that a dialect cannot say, and that are left out before it is compared.
var unsaid = map[wire.Dialect][]string{
	wire.DialectOllama: {`"tool_choice":"auto",`, `"tool_choice":{"type":"auto"},`, `"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},`},
}

// vllm is an engine of which all spellings are known, as its profile has them.
func vllm(d wire.Dialect) Endpoint {
	return Endpoint{Dialect: d, Engine: "vllm", Limits: []string{"max_tokens", "max_completion_tokens"}, Repetition: "repetition_penalty",
		ThinkingOn:  json.RawMessage(`{"chat_template_kwargs":{"enable_thinking":true}}`),
		ThinkingOff: json.RawMessage(`{"chat_template_kwargs":{"enable_thinking":false}}`),
		ThinkingAlso: []json.RawMessage{json.RawMessage(`{"chat_template_kwargs":{"thinking":true}}`),
			json.RawMessage(`{"chat_template_kwargs":{"thinking":false}}`)},
		Efforts: []string{"reasoning_effort", "chat_template_kwargs.reasoning_effort"}, Budgets: []string{"thinking_token_budget"}}
}

func TestEndpointOfAProfile(t *testing.T) {
	got := endpoint(t, wire.DialectChat, "vllm")
	got.ThinkingOn, got.ThinkingOff = compact(got.ThinkingOn), compact(got.ThinkingOff)
	for i, also := range got.ThinkingAlso {
		got.ThinkingAlso[i] = compact(also)
	}
	if diff := cmp.Diff(vllm(wire.DialectChat), got); diff != "" {
		t.Error(diff)
	}
	if got := endpoint(t, wire.DialectChat, "openai"); !got.Hosted || got.limit() != "max_completion_tokens" {
		t.Errorf("%+v", got)
	}
	if got := endpoint(t, wire.DialectChat, "llamacpp"); got.Repetition != "repeat_penalty" {
		t.Errorf("%+v", got)
	}
}

func endpoint(t *testing.T, d wire.Dialect, engine string) Endpoint {
	t.Helper()
	catalog, err := engines.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	p, ok := catalog.Lookup(engine)
	if !ok {
		t.Fatalf("there is no profile of %s", engine)
	}
	return EndpointOf(d, p)
}

func oneLine(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(body)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryPairOfDialects(t *testing.T) {
	for from, source := range said {
		for to, want := range said {
			if from == to {
				continue
			}
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				body := oneLine(t, source.body)
				wanted := oneLine(t, want.body)
				for _, part := range unsaid[to] {
					body = string(bytes.ReplaceAll([]byte(body), []byte(part), nil))
				}
				for _, part := range unsaid[from] {
					wanted = string(bytes.ReplaceAll([]byte(wanted), []byte(part), nil))
				}
				got, err := Translate(from, source.target, []byte(body), vllm(to), "")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(wanted, string(got.Body)); diff != "" {
					t.Errorf("%s\n got %s\nwant %s", diff, got.Body, wanted)
				}
				if got.Target != want.target {
					t.Errorf("target %s, want %s", got.Target, want.target)
				}
				if len(got.Changes) > 0 {
					t.Errorf("changes %+v", got.Changes)
				}
				if to == wire.DialectAnthropic {
					if diff := cmp.Diff([]exchange.Header{{Name: "anthropic-version", Value: "2023-06-01"}}, got.Headers); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
	}
}

// TestThereAndBack holds the identity of the package on the same conversation.
func TestThereAndBack(t *testing.T) {
	for from, source := range said {
		first, changes, err := Read(from, source.target, []byte(source.body))
		if err != nil || len(changes) > 0 {
			t.Fatalf("%s: %v, %+v", from, err, changes)
		}
		for to := range said {
			first := *first
			if to == wire.DialectOllama {
				first.Choice = Choice{}
			}
			out := Write(&first, vllm(to))
			second, changes, err := Read(to, out.Target, out.Body)
			if err != nil || len(changes)+len(out.Changes) > 0 {
				t.Fatalf("%s to %s: %v, %+v, %+v", from, to, err, changes, out.Changes)
			}
			if diff := cmp.Diff(&first, second, sameRequest); diff != "" {
				t.Errorf("%s to %s and read again: %s", from, to, diff)
			}
		}
	}
}

// sameRequest leaves out where things stood.
var sameRequest = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Path" }, cmp.Ignore())
