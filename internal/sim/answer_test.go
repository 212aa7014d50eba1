package sim

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStreamBytes holds the exact bytes of one stream: a change of them is a change of every recorded fixture.
func TestStreamBytes(t *testing.T) {
	_, addr := start(t, Config{})
	got, err := roundTrip(t, addr, chat("Connection: close"))
	if err != nil {
		t.Fatal(err)
	}
	open := `{"id":"chatcmpl-cc551ab4251bf903","object":"chat.completion.chunk","created":1767225600,"model":"m","choices":[{"index":0,"delta":`
	want := "HTTP/1.1 200 OK\r\nServer: benchproxy-sim\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n" +
		"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
	for _, e := range []string{
		open + `{"role":"assistant","content":""},"finish_reason":null}]}`,
		open + `{"content":"bird"},"finish_reason":null}]}`,
		open + `{"content":" steel"},"finish_reason":null}]}`,
		open + `{"content":" to"},"finish_reason":null}]}`,
		open + `{"content":" just"},"finish_reason":null}]}`,
		open + `{},"finish_reason":"length"}]}`,
		`[DONE]`,
	} {
		want += string(chunk([]byte("data: " + e + "\n\n")))
	}
	want += "0\r\n\r\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("bytes of the stream (-want +got):\n%s", d)
	}
}

func TestStreamAndPlainSayTheSame(t *testing.T) {
	_, addr := start(t, Config{Options: Options{Reasoning: 3}})
	_, streamed := fetch(t, addr, chat())
	_, plain := fetch(t, addr, post("/v1/chat/completions", strings.Replace(chatBody, "true", "false", 1)))
	var text, thinking string
	for _, e := range decodeStream(t, streamed) {
		text += e.Choices[0].Delta.Content
		thinking += e.Choices[0].Delta.Thinking
	}
	p := decode(t, plain)
	m := p.Choices[0].Message
	if text == "" || thinking == "" || m.Content != text || m.Thinking != thinking {
		t.Errorf("streamed %q %q, plain %q %q", thinking, text, m.Thinking, m.Content)
	}
	if p.Usage == nil || p.Usage.Prompt != 3 || p.Usage.Completion != 4 || p.Usage.Total != 7 || p.Usage.Out["reasoning_tokens"] != 3 {
		t.Errorf("usage %+v", p.Usage)
	}
}

func TestSeedDecidesText(t *testing.T) {
	_, addr := start(t, Config{})
	ask := func(body string, extra ...string) string {
		_, b := fetch(t, addr, post("/v1/chat/completions", body, extra...))
		return decode(t, b).Choices[0].Message.Content
	}
	const base = `{"messages":[{"role":"user","content":"hi"}],"seed":1}`
	first := ask(base)
	if again := ask(base); again != first {
		t.Errorf("equal requests: %q and %q", first, again)
	}
	if reordered := ask(`{ "seed": 1, "messages":[{"role":"user", "content":"hi"}] }`); reordered != first {
		t.Errorf("order and blanks changed the text: %q and %q", first, reordered)
	}
	for name, other := range map[string]string{
		"seed field":  ask(strings.Replace(base, `"seed":1`, `"seed":2`, 1)),
		"prompt":      ask(strings.Replace(base, "hi", "ho", 1)),
		"seed option": ask(base, "X-Sim: seed=9"),
		"varied":      ask(base, "X-Sim: varied=1"),
	} {
		if other == first {
			t.Errorf("another %s gives the same text", name)
		}
	}
}

func TestUsagePlacement(t *testing.T) {
	_, addr := start(t, Config{})
	asked := strings.Replace(chatBody, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	for _, c := range []struct {
		name, body, mode string
		want             []int // completion tokens of each event, -1 without usage
		last             bool  // the last event has no choices
	}{
		{"not asked", chatBody, UsageRequest, []int{-1, -1, -1, -1, -1, -1}, false},
		{"asked", asked, UsageRequest, []int{-1, -1, -1, -1, -1, -1, 4}, true},
		{"always", chatBody, UsageAlways, []int{-1, -1, -1, -1, -1, -1, 4}, true},
		{"finish", chatBody, UsageFinish, []int{-1, -1, -1, -1, -1, 4}, false},
		{"continuous", chatBody, UsageContinuous, []int{-1, 1, 2, 3, 4, 4, 4}, true},
		{"none", asked, UsageNone, []int{-1, -1, -1, -1, -1, -1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, body := fetch(t, addr, post("/v1/chat/completions", c.body, "X-Sim: usage="+c.mode))
			all := decodeStream(t, body)
			var got []int
			for _, e := range all {
				n := -1
				if e.Usage != nil {
					n = e.Usage.Completion
				}
				got = append(got, n)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if last := len(all[len(all)-1].Choices) == 0; last != c.last {
				t.Errorf("last event without choices: %v", last)
			}
		})
	}
}

const toolBody = `{"messages":[{"role":"user","content":"weather?"}],"stream":true,"tools":[
	{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{"zone":{"type":"string"}}}}},
	{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":3}}}}}]}`

func TestToolCalls(t *testing.T) {
	_, addr := start(t, Config{})
	for _, mode := range []string{ToolsFragments, ToolsWhole} {
		for _, stream := range []string{"true", "false"} {
			t.Run(mode+"/stream="+stream, func(t *testing.T) {
				raw := strings.Replace(toolBody, "true", stream, 1)
				_, body := fetch(t, addr, post("/v1/chat/completions", raw, "X-Sim: tool_calls=2; tools="+mode))
				names, args, finish := collectCalls(t, body, stream == "true")
				if d := cmp.Diff([]string{"get_time", "get_weather"}, names); d != "" {
					t.Error(d)
				}
				var weather struct {
					City string
					Days int
				}
				if err := json.Unmarshal([]byte(args[1]), &weather); err != nil || weather.City == "" || weather.Days < 1 || weather.Days > 3 {
					t.Errorf("arguments %q: %v", args[1], err)
				}
				if finish != "tool_calls" {
					t.Errorf("finish %q", finish)
				}
			})
		}
	}
}

// collectCalls joins the tool calls of an answer.
func collectCalls(t *testing.T, body string, stream bool) (names, args []string, finish string) {
	t.Helper()
	all := []parsed{}
	if stream {
		all = decodeStream(t, body)
	} else {
		all = append(all, decode(t, body))
	}
	names, args = make([]string, 2), make([]string, 2)
	for _, e := range all {
		c := e.Choices[0]
		for _, call := range append(c.Delta.Calls, c.Message.Calls...) {
			if call.Function.Name != "" && (call.ID == "" || call.Type != "function") {
				t.Errorf("call without id or type: %+v", call)
			}
			names[call.Index] += call.Function.Name
			args[call.Index] += call.Function.Arguments
		}
		finish += c.Finish
	}
	return names, args, finish
}

func TestToolsNotCalled(t *testing.T) {
	_, addr := start(t, Config{})
	afterResult := strings.Replace(toolBody, `"messages":[`, `"messages":[{"role":"user","content":"x"},`, 1)
	afterResult = strings.Replace(afterResult, `{"role":"user","content":"weather?"}`, `{"role":"tool","content":"sunny"}`, 1)
	for name, body := range map[string]string{
		"choice none":  strings.Replace(toolBody, `"stream"`, `"tool_choice":"none","stream"`, 1),
		"after result": afterResult,
	} {
		_, got := fetch(t, addr, post("/v1/chat/completions", body))
		if !strings.Contains(got, `"content":"`) || strings.Contains(got, "tool_calls") {
			t.Errorf("%s: %q", name, got)
		}
	}
	named := strings.Replace(toolBody, `"stream"`, `"tool_choice":{"type":"function","function":{"name":"get_weather"}},"stream"`, 1)
	if _, got := fetch(t, addr, post("/v1/chat/completions", named)); !strings.Contains(got, "get_weather") || strings.Contains(got, "get_time") {
		t.Errorf("a named tool: %q", got)
	}
}

func TestStructuredOutput(t *testing.T) {
	_, addr := start(t, Config{})
	body := `{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":
		{"type":"object","properties":{"name":{"type":"string"},"ok":{"type":"boolean"},"kind":{"enum":["a","b"]},"fixed":{"const":7},
		"list":{"type":"array","items":{"type":"number"},"minItems":3},"any":{"anyOf":[{"type":"null"}]},"opt":{"type":["string","null"]}}}}}}`
	_, got := fetch(t, addr, post("/v1/chat/completions", body))
	var value struct {
		Name, Kind string
		OK         bool
		Fixed      int
		List       []float64
		Any        any
		Opt        *string
	}
	text := decode(t, got).Choices[0].Message.Content
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if value.Name == "" || value.Fixed != 7 || len(value.List) != 3 || value.Opt == nil || !strings.Contains("ab", value.Kind) {
		t.Errorf("%q does not fit the schema", text)
	}
	object := `{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}}`
	_, got = fetch(t, addr, post("/v1/chat/completions", object))
	if text := decode(t, got).Choices[0].Message.Content; !json.Valid([]byte(text)) {
		t.Errorf("json_object: %q", text)
	}
}

func TestStopAndLimit(t *testing.T) {
	_, addr := start(t, Config{Options: Options{Answer: 6}})
	ask := func(extra string) parsed {
		_, b := fetch(t, addr, post("/v1/completions", `{"prompt":"go"`+extra+`}`))
		return decode(t, b)
	}
	whole := ask("")
	if whole.Object != "text_completion" || whole.Choices[0].Finish != "stop" || len(strings.Fields(whole.Choices[0].Text)) != 6 {
		t.Fatalf("natural end: %+v", whole.Choices[0])
	}
	if c := ask(`,"max_tokens":2`).Choices[0]; c.Finish != "length" || len(strings.Fields(c.Text)) != 2 {
		t.Errorf("limit: %+v", c)
	}
	if c := ask(`,"max_tokens":20,"ignore_eos":true`).Choices[0]; c.Finish != "length" || len(strings.Fields(c.Text)) != 20 {
		t.Errorf("ignore_eos: %+v", c)
	}
	if c := ask(`,"stop":" "`).Choices[0]; c.Finish != "stop" || c.Text == "" || strings.Contains(c.Text, " ") {
		t.Errorf("stop string: %+v", c)
	}
}

func TestChoicesLogprobsTimings(t *testing.T) {
	_, addr := start(t, Config{})
	body := `{"messages":[{"role":"user","content":"a b c d"}],"stream":true,"n":2,"max_tokens":3,"logprobs":true,"top_logprobs":2,"stream_options":{"include_usage":true}}`
	_, got := fetch(t, addr, post("/v1/chat/completions", body, "X-Sim: timings=1; cached=3; per_event=2; prefill=1000; decode=100"))
	text := map[int]string{}
	entries := 0
	all := decodeStream(t, got)
	for _, e := range all {
		for _, c := range e.Choices {
			text[c.Index] += c.Delta.Content
			if c.Log != nil {
				entries += len(c.Log["content"].([]any))
			}
		}
	}
	if len(text) != 2 || text[0] == text[1] || entries != 6 {
		t.Errorf("choices %v, %d log-probability entries", text, entries)
	}
	last := all[len(all)-1]
	if last.Usage == nil || last.Usage.Completion != 6 || last.Usage.In["cached_tokens"] != 3 {
		t.Errorf("usage %+v", last.Usage)
	}
	want := map[string]float64{"cache_n": 3, "prompt_n": 1, "prompt_ms": 1, "prompt_per_second": 1000, "predicted_n": 6, "predicted_ms": 20, "predicted_per_second": 300}
	if d := cmp.Diff(want, last.Timings); d != "" {
		t.Error(d)
	}
	_, got = fetch(t, addr, post("/v1/completions", `{"prompt":"x","max_tokens":2,"logprobs":1}`))
	if log := decode(t, got).Choices[0].Log; len(log["tokens"].([]any)) != 2 || len(log["top_logprobs"].([]any)) != 2 {
		t.Errorf("completions log-probabilities: %v", log)
	}
}
