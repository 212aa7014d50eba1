package bridge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire"
)

func TestResponsesAreRead(t *testing.T) {
	body := `{"model":"m","instructions":"Be brief.","stream":true,"max_output_tokens":64,"temperature":0.5,"store":false,"previous_response_id":"resp_1",
		"input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:image/png;base64,` + png + `","detail":"auto"}]},
			{"type":"reasoning","id":"rs_1","summary":[]},
			{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Let me see.","annotations":[]}]},
			{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"a\":1}"},
			{"type":"function_call_output","call_id":"c1","output":"r"}],
		"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"number"}}},"strict":true},{"type":"web_search"}],
		"tool_choice":{"type":"function","name":"f"},"reasoning":{"effort":"low","summary":"auto"},
		"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"integer"}}}}`
	want := `{"model":"m","messages":[{"role":"system","content":"Be brief."},
		{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}}]},
		{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"r"}],
		"stream":true,"stream_options":{"include_usage":true},"max_tokens":64,"temperature":0.5,
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"number"}}},"strict":true}}],
		"tool_choice":{"type":"function","function":{"name":"f"}},
		"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"integer"}}},
		"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking":true}}`
	got, err := Translate(wire.DialectResponses, "/v1/responses", []byte(body), vllm(chat), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(oneLine(t, want), string(got.Body)); diff != "" {
		t.Error(diff)
	}
	lost := `input[1].id= input[1]! input[2].status= input[2].id= input[2].content[0].annotations= tools[1]! reasoning.summary= store= previous_response_id!`
	if diff := cmp.Diff(lost, told(got.Changes)); diff != "" {
		t.Errorf("%s\n%s", diff, told(got.Changes))
	}
}

func TestSmallResponses(t *testing.T) {
	for give, want := range map[string]struct{ body, changes string }{
		`{"model":"m","input":"hi"}`:                                        {`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":false}`, ""},
		`{"model":"m","input":5}`:                                           {`{"model":"m","messages":[],"stream":false}`, "input!"},
		`{"model":"m","input":[{"role":"critic","content":"x"}]}`:           {`{"model":"m","messages":[],"stream":false}`, "input[0]!"},
		`{"model":"m","input":[{"role":"developer","content":"x"}]}`:        {`{"model":"m","messages":[{"role":"system","content":"x"}],"stream":false}`, ""},
		`{"model":"m","input":"hi","conversation":"c","prompt":{"id":"p"}}`: {`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":false}`, "conversation! prompt!"},
	} {
		got, err := Translate(wire.DialectResponses, "/v1/responses", []byte(give), vllm(ollama), "")
		if err != nil || string(got.Body) != want.body || told(got.Changes) != want.changes {
			t.Errorf("%s became %s, %s, %v", give, got.Body, told(got.Changes), err)
		}
	}
}
