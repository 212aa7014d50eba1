package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// talk is a body of a dialect with these messages and nothing else that need not be there.
func talk(d wire.Dialect, messages string) (target, body string) {
	switch d {
	case google:
		return "/v1beta/models/m:generateContent", `{"contents":` + messages + `}`
	case ollama:
		return "/api/chat", `{"model":"m","messages":` + messages + `,"stream":false}`
	case anthropic:
		return "/v1/messages", `{"model":"m","max_tokens":9,"messages":` + messages + `}`
	}
	return "/v1/chat/completions", `{"model":"m","messages":` + messages + `}`
}

const (
	chatCallF  = `{"role":"assistant","content":null,"tool_calls":[{"id":"a.1","type":"function","function":{"name":"f","arguments":"{\"x\": 1e2}"}},{"id":"a_1","type":"function","function":{"name":"g","arguments":""}}]}`
	chatCallF1 = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
)

// turns are translations of messages. What a limit of the dialect asks for besides is left out.
var turns = []struct {
	name     string
	from, to wire.Dialect
	give     string
	want     string
	changes  string
}{
	{"results go together with what the user says next", chat, anthropic,
		`[{"role":"user","content":"q"},` + chatCallF + `,{"role":"tool","tool_call_id":"a.1","content":"r1"},{"role":"tool","tool_call_id":"a_1","content":[{"type":"text","text":"r2"},{"type":"text","text":"r3"}]},{"role":"user","content":"and?"}]`,
		`[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"a_1","name":"f","input":{"x":1e2}},{"type":"tool_use","id":"a_1_2","name":"g","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_1","content":"r1"},{"type":"tool_result","tool_use_id":"a_1_2","content":[{"type":"text","text":"r2"},{"type":"text","text":"r3"}]},{"type":"text","text":"and?"}]}]`,
		`messages[1].tool_calls[0]="a_1" messages[1].tool_calls[1]="a_1_2"`},
	{"and come apart again", anthropic, chat,
		`[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"},{"type":"text","text":"and?"}]}]`,
		`[` + chatCallF1 + `,{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"user","content":"and?"}]`, ""},
	{"results go together there too", chat, google,
		`[` + chatCallF1 + `,{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"user","content":"and?"}]`,
		`[{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":"r"}}},{"text":"and?"}]}]`, ""},
	{"a tool that failed", anthropic, google,
		`[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"no"}]}]`,
		`[{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"error":"no"}}}]}]`, ""},
	{"a tool that failed", anthropic, chat,
		`[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":"no"}]}]`,
		`[` + chatCallF1 + `,{"role":"tool","tool_call_id":"c1","content":"no"}]`, "messages[1].content[0]!"},
	{"a result that is an object", google, ollama,
		`[{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"a":[1.0, 2]}}},{"functionResponse":{"name":"f","response":{"result":"x"}}}]}]`,
		`[{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"name":"f","arguments":{}}},{"id":"call_2","function":{"name":"g","arguments":{}}}]},{"role":"tool","content":"{\"a\":[1.0,2]}","tool_name":"g","tool_call_id":"call_2"},{"role":"tool","content":"x","tool_name":"f","tool_call_id":"call_1"}]`, ""},
	{"results without ids or names", ollama, chat,
		`[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"f","arguments":{"b":1}}}]},{"role":"tool","content":"one"},{"role":"tool","content":"two"}]`,
		`[{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"f","arguments":"{\"b\":1}"}}]},{"role":"tool","tool_call_id":"call_1","content":"one"},{"role":"tool","tool_call_id":"call_2","content":"two"}]`, ""},
	{"a result of nothing", chat, google, `[{"role":"tool","tool_call_id":"lost","content":"r"}]`,
		`[{"role":"user","parts":[{"functionResponse":{"id":"lost","name":"","response":{"output":"r"}}}]}]`, "messages[0]!"},
	{"arguments that are none", chat, ollama, `[{"role":"assistant","content":"x","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}]`,
		`[{"role":"assistant","content":"x","tool_calls":[{"id":"c","function":{"name":"f","arguments":{}}}]}]`, "messages[0].tool_calls[0].function.arguments!"},

	{"a system that speaks again", chat, anthropic, `[{"role":"user","content":"a"},{"role":"developer","content":"b"},{"role":"user","content":"c"}]`,
		`[{"role":"user","content":"a"},{"role":"user","content":"c"}],"system":"b"`, "messages[1]!"},
	{"a system that speaks again", chat, ollama, `[{"role":"user","content":"a"},{"role":"system","content":"b"}]`,
		`[{"role":"user","content":"a"},{"role":"system","content":"b"}]`, ""},
	{"two systems", chat, ollama, `[{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]`,
		`[{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]`, ""},
	{"names of who speaks", chat, ollama, `[{"role":"user","name":"Bob","content":"a"},{"role":"critic","content":"b"}]`,
		`[{"role":"user","content":"a"}]`, "messages[0].name! messages[1]!"},
	{"two texts", chat, ollama, `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`,
		`[{"role":"user","content":"a\n\nb"}]`, "messages[0]="},

	{"an address", chat, anthropic, `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"high"}}]}]`,
		`[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x/y.png"}}]}]`, "messages[0].content[0].image_url.detail!"},
	{"an address", chat, google, `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x/y.png"}}]}]`,
		`[{"role":"user","parts":[{"text":"a"}]}]`, "messages[0].content[1]!"},
	{"an image behind the text", chat, ollama, `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,/9j/AA=="}}]}]`,
		`[{"role":"user","content":"a","images":["/9j/AA=="]}]`, "messages[0].content[1]="},
	{"an image alone", ollama, anthropic, `[{"role":"user","content":"","images":["/9j/AA=="]}]`,
		`[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/AA=="}}]}]`, ""},
	{"an image of an unknown type", ollama, chat, `[{"role":"user","content":"a","images":["AAAA"]}]`,
		`[{"role":"user","content":"a"}]`, "messages[0].images[0]!"},
	{"sound", chat, ollama, `[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}},{"type":"text","text":"a"}]}]`,
		`[{"role":"user","content":"a"}]`, "messages[0].content[0]!"},
	{"a document", anthropic, chat, `[{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA"}},{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]`,
		`[{"role":"user","content":"a"}]`, `messages[0].content[0]! messages[0].content[1].cache_control=`},
	{"what was thought", anthropic, chat, `[{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"a"}]}]`,
		`[{"role":"assistant","content":"a","reasoning_content":"hm"}]`, `messages[0].content[1]! messages[0].content[0]=`},
	{"what was thought", chat, anthropic, `[{"role":"assistant","content":"a","reasoning_content":"hm"}]`,
		`[{"role":"assistant","content":[{"type":"text","text":"a"}]}]`, "messages[0].reasoning_content!"},
	{"what was thought", google, ollama, `[{"role":"model","parts":[{"text":"hm","thought":true},{"text":"a","thoughtSignature":"s"}]}]`,
		`[{"role":"assistant","content":"a","thinking":"hm"}]`, "contents[0].parts[1]="},
}

func TestMessages(t *testing.T) {
	for _, tc := range turns {
		t.Run(fmt.Sprintf("%s to %s: %s", tc.from, tc.to, tc.name), func(t *testing.T) {
			target, body := talk(tc.from, tc.give)
			messages, system, ok := strings.Cut(tc.want, `],"system":`)
			if ok {
				messages += "]"
			}
			_, want := talk(tc.to, messages)
			if ok {
				want = strings.Replace(want, `,"messages"`, `,"system":`+system+`,"messages"`, 1)
			}
			if tc.to != anthropic {
				body = strings.Replace(body, `"max_tokens":9,`, ``, 1)
			} else if tc.from != anthropic {
				body = strings.TrimSuffix(body, "}") + map[wire.Dialect]string{chat: `,"max_tokens":9}`, google: `,"generationConfig":{"maxOutputTokens":9}}`, ollama: `,"options":{"num_predict":9}}`}[tc.from]
			}
			got, err := Translate(tc.from, target, []byte(body), vllm(tc.to), "")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, string(got.Body)); diff != "" {
				t.Errorf("%s\n got %s\nwant %s", diff, got.Body, want)
			}
			if diff := cmp.Diff(tc.changes, told(got.Changes)); diff != "" {
				t.Errorf("%s\n%+v", diff, got.Changes)
			}
		})
	}
}

func TestPromptOfGenerate(t *testing.T) {
	got, err := Translate(ollama, "/api/generate", []byte(`{"model":"m","system":"s","prompt":"p","suffix":"x","raw":true,"stream":false}`), vllm(chat), "")
	want := `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"p"}]}`
	if err != nil || string(got.Body) != want || told(got.Changes) != "suffix! raw!" {
		t.Errorf("%v, %s, %s", err, got.Body, told(got.Changes))
	}
}

func TestModelOfARequestThatNamesNone(t *testing.T) {
	got, err := Translate(chat, "/v1/chat/completions", []byte(`{"messages":[]}`), vllm(google), "org/m one")
	if err != nil || got.Target != "/v1beta/models/org%2Fm%20one:generateContent" || string(got.Body) != `{"contents":[]}` {
		t.Errorf("%v, %s, %s", err, got.Target, got.Body)
	}
	q, _, err := Read(google, got.Target, got.Body)
	if err != nil || q.Model != "org/m one" {
		t.Errorf("%v, %+v", err, q)
	}
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	for body, want := range map[string]string{
		``: "read body", `[]`: "no JSON object", `{"a":1,"a":2}`: "duplicate key", `{"a":"\ud800"}`: "lone surrogate",
		"{\"a\":\"\xff\"}": "invalid UTF-8", `{"a":`: "not JSON",
	} {
		if _, err := Translate(chat, "/v1/chat/completions", []byte(body), vllm(ollama), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want %s", body, err, want)
		}
	}
	if _, err := Translate(wire.DialectEmbeddings, "/v1/embeddings?x=1", []byte(`{}`), vllm(ollama), ""); err == nil || !strings.Contains(err.Error(), "a request to /v1/embeddings cannot be translated") {
		t.Errorf("err = %v", err)
	}
	if _, err := Translate(chat, "/v1/chat/completions", []byte(`{}`), Endpoint{Dialect: wire.DialectLlamaCpp}, ""); err == nil || !strings.Contains(err.Error(), "does not speak llamacpp") {
		t.Errorf("err = %v", err)
	}
}

// TestNothingIsLostInSilence holds that every leaf of a body is in the new one or among the changes: fields that nobody
// knows are put everywhere in a request of each dialect.
func TestNothingIsLostInSilence(t *testing.T) {
	tried := 0
	for from, source := range said {
		for path, body := range strangers(json.RawMessage(source.body), "") {
			if strings.Contains(path, "schema") || strings.Contains(path, "parameters") || strings.Contains(path, "arguments") || strings.Contains(path, "args") ||
				strings.Contains(path, "input") || strings.Contains(path, "format.") || strings.Contains(path, "Schema") || strings.Contains(path, "esponse.") {
				continue // what stands in schemas and values passes as it is
			}
			for to := range said {
				if to == from {
					continue
				}
				tried++
				got, err := Translate(from, source.target, []byte(body), vllm(to), "")
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				found := false
				for _, c := range got.Changes {
					found = found || c.Lost && strings.Contains(c.Path+c.From, "stranger")
				}
				if !found && !strings.Contains(string(got.Body), "stranger") {
					t.Errorf("%s to %s: %s is lost in silence; changes %s", from, to, path, told(got.Changes))
				}
			}
		}
	}
	if tried < 200 {
		t.Errorf("%d places tried, which are not all", tried)
	}
}

// strangers are copies of a value with an unknown member in each of its objects, by the path of the object.
func strangers(raw json.RawMessage, path string) map[string]string {
	out := map[string]string{}
	if o, ok := parseObject(raw); ok {
		more := append(o[:len(o):len(o)], member{"stranger", json.RawMessage("5")})
		out[path] = string(encode(more))
		for i, m := range o {
			for p, changed := range strangers(m.value, below(path, m.name)) {
				c := append(object{}, o...)
				c[i].value = json.RawMessage(changed)
				out[p] = string(encode(c))
			}
		}
	} else if list, ok := parseArray(raw); ok {
		for i, v := range list {
			for p, changed := range strangers(v, at(path, i)) {
				c := append([]json.RawMessage{}, list...)
				c[i] = json.RawMessage(changed)
				out[p] = string(encode(c))
			}
		}
	}
	return out
}
