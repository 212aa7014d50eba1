package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// hostile are requests that clients and engines really make, and some that nobody should, by dialect. lost is what a
// translation to any dialect must lose, "" for nothing that is the same in all.
var hostile = []struct{ name, target, body, lost string }{
	{"ids of each answer from the beginning", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_0","content":"one"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_0","content":"two"}]}`, ""},
	{"parallel calls out of order", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},
		{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}},{"id":"y","function":{"name":"g","arguments":"{\"a\":1e400}"}}]},
		{"role":"tool","tool_call_id":"y","content":"two"},{"role":"tool","tool_call_id":"x","content":[{"type":"text","text":"one"}]}]}`, ""},
	{"calls without ids", "/api/chat", `{"model":"m","options":{"num_predict":9},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"g","arguments":{}}}]},
		{"role":"tool","content":"two","tool_name":"g"},{"role":"tool","content":"one"}]}`, ""},
	{"an id that looks made", "/api/chat", `{"model":"m","options":{"num_predict":9},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"id":"call_1","function":{"name":"g","arguments":{}}}]},
		{"role":"tool","content":"one","tool_name":"f"},{"role":"tool","content":"two","tool_call_id":"call_1"}]}`, ""},
	{"system in the middle and a developer", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"developer","content":"d"},{"role":"user","content":"a"},{"role":"system","content":"s"}]}`, ""},
	{"empty and null", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":""},{"role":"assistant","content":null,"refusal":null,"annotations":[],"tool_calls":null},{"role":"user","content":[]}],"tools":null,"stop":[],"temperature":null}`, ""},
	{"no messages", "/v1/chat/completions", `{"model":"m","max_tokens":9}`, ""},
	{"arguments that are none", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]}]}`, "messages[0].tool_calls[0].function.arguments"},
	{"a limit that is no number", "/v1/chat/completions", `{"model":"m","max_tokens":1e400,"messages":[]}`, "max_tokens"},
	{"audio", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA=="}}]}]}`, "messages[0].content[0]"},
	{"a role of nobody", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"function","name":"f","content":"x"}]}`, "messages[0]"},
	{"messages that are none", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[7,"x",null,["y"]],"tools":{}}`, "messages[0]"},
	{"an image without a type", "/v1/chat/completions", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:;base64,` + png + `"}}]}]}`, ""},
	{"a result with an image", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]}]}]}`, "messages[1].content[0].content[1]"},
	{"a result nobody asked for", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","content":"t"}]}]}`, "messages[0].content[0]"},
	{"a conversation of thoughts", "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}]}`, "messages[0].content[0]"},
	{"unicode", "/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"\u0000 \ud83d\ude00 e\u0301 \u2028 <&>"}]}],"generationConfig":{"maxOutputTokens":9}}`, ""},
}

// TestHostileRequests holds for every request to every other dialect that what comes of it is JSON, that reading it back
// finds every call answered that was, under ids of their own, and that what must be lost is told.
func TestHostileRequests(t *testing.T) {
	for _, tc := range hostile {
		from := wire.DialectOf(tc.target)
		for _, to := range Dialects() {
			if from == to {
				continue
			}
			t.Run(fmt.Sprintf("%s to %s", tc.name, to), func(t *testing.T) {
				got, err := Translate(from, tc.target, []byte(tc.body), vllm(to), "")
				if err != nil || !json.Valid(got.Body) {
					t.Fatalf("%v: %s", err, got.Body)
				}
				q, changes, err := Read(to, got.Target, got.Body)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range changes {
					if c.Lost {
						t.Errorf("what was written is not read: %+v", c)
					}
				}
				lost := ""
				for _, c := range got.Changes {
					if c.Lost && (c.Path == tc.lost || lost == "") {
						lost = c.Path
					}
				}
				// A result with an image is one that Messages and chat may say; the others lose it.
				if tc.lost != "" && lost != tc.lost && to != wire.DialectOllama && to != wire.DialectGemini {
					t.Errorf("lost %q, want %q: %+v", lost, tc.lost, got.Changes)
				}
				answersFit(t, q, tc.body)
			})
		}
	}
}

// answersFit holds that results which say one and two belong to the calls of f and g, and that no two calls share an id.
func answersFit(t *testing.T, q *Request, body string) {
	t.Helper()
	names, fits := map[string]string{}, 0
	for _, m := range q.Messages {
		for _, p := range m.Parts {
			switch p.Kind {
			case PartCall:
				if names[p.Call.ID] != "" {
					t.Errorf("two calls have the id %q", p.Call.ID)
				}
				names[p.Call.ID] = p.Call.Name
			case PartResult:
				text, _ := textOf(p.Result.Parts)
				if want := map[string]string{"one": "f", "two": "g"}[text]; want != "" && names[p.Result.ID] == want {
					fits++
				}
			}
		}
	}
	if want := strings.Count(body, `"one"`) + strings.Count(body, `"two"`); fits != want {
		t.Errorf("%d of %d results belong to their calls", fits, want)
	}
}

// TestWhatHasNoMeaningIsNotTranslated holds that it is an error, and not a guess.
func TestWhatHasNoMeaningIsNotTranslated(t *testing.T) {
	for name, body := range map[string]string{
		"a name twice":       `{"model":"m","model":"n","messages":[]}`,
		"a name twice below": `{"model":"m","messages":[{"role":"user","role":"system","content":"x"}]}`,
		"half a pair":        `{"model":"m","messages":[{"role":"user","content":"\ud800"}]}`,
		"no UTF-8":           "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}",
		"too deep":           `{"model":"m","messages":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
		"no object":          `[]`,
		"nothing":            ``,
		"two":                `{}{}`,
	} {
		if got, err := Translate(chat, "/v1/chat/completions", []byte(body), vllm(anthropic), ""); err == nil {
			t.Errorf("%s became %s", name, got.Body)
		}
	}
}

// TestLargeImageIsCarried holds that the data of an image of 8 MB is that which was recorded.
func TestLargeImageIsCarried(t *testing.T) {
	data := "iVBORw0KGgo" + strings.Repeat("A", 8<<20)
	body := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;charset=x;base64,` + data + `"}}]}]}`
	got, err := Translate(chat, "/v1/chat/completions", []byte(body), vllm(anthropic), "")
	if err != nil || !strings.Contains(string(got.Body), `"media_type":"image/png","data":"`+data+`"`) || len(got.Changes) > 0 {
		t.Errorf("%v, %d bytes, %+v", err, len(got.Body), got.Changes)
	}
}
