package sim

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/google/go-cmp/cmp"
)

// spoken is one dialect as a test speaks it. The fields are request bodies; "" where the dialect cannot ask for that.
type spoken struct {
	name        string
	dialect     wire.Dialect
	path        string // of a plain answer
	streamPath  string // of a stream; "" = path
	on, off     string // what a body gets that asks for a stream or for none
	text        string // six words, no limit
	limited     string // an answer of at most three tokens
	stopped     string // an answer that ends before a blank
	thinking    string // asks for thinking in the dialect's own way
	tools       string // get_weather with a city and days
	answered    string // tools, and the last message is a result
	schema      string // output by a JSON schema
	finish      [3]string
	callFinish  string
	noReasoning bool // usage does not tell the thinking apart
	noCached    bool // usage does not tell the cached prompt
}

const (
	simSchema  = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":3}}}`
	geminiType = `{"type":"OBJECT","properties":{"city":{"type":"STRING"},"days":{"type":"INTEGER","minimum":1,"maximum":3}}}`
	chatTools  = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":` + simSchema + `}}]`
	chatUser   = `"messages":[{"role":"user","content":"one two three four five six"}]`
	gemUser    = `"contents":[{"role":"user","parts":[{"text":"one two three"},{"text":"four five six"}]}]`
	gemTools   = `"tools":[{"functionDeclarations":[{"name":"get_weather","parameters":` + geminiType + `}]}]`
	respTools  = `"tools":[{"type":"function","name":"get_weather","parameters":` + simSchema + `}]`
	anthTools  = `"tools":[{"name":"get_weather","input_schema":` + simSchema + `}]`
)

// dialectsSpoken are all dialects that generate.
func dialectsSpoken() []spoken {
	gemini := spoken{
		name: "gemini", dialect: "gemini", path: "/v1beta/models/m:generateContent", streamPath: "/v1beta/models/m:streamGenerateContent?alt=sse",
		text: `{` + gemUser + `}`, limited: `{` + gemUser + `,"generationConfig":{"maxOutputTokens":3}}`,
		stopped:  `{` + gemUser + `,"generationConfig":{"stopSequences":[" "]}}`,
		thinking: `{` + gemUser + `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}}`,
		tools:    `{` + gemUser + `,` + gemTools + `}`,
		answered: `{"contents":[{"role":"user","parts":[{"text":"a b c d e f"}]},{"role":"user","parts":[{"functionResponse":{"name":"get_weather"}}]}],` + gemTools + `}`,
		schema:   `{` + gemUser + `,"generationConfig":{"responseMimeType":"application/json","responseSchema":` + geminiType + `}}`,
		finish:   [3]string{"STOP", "MAX_TOKENS", "STOP"}, callFinish: "STOP",
	}
	growing := gemini
	growing.name, growing.streamPath = "gemini array", "/v1beta/models/m:streamGenerateContent"
	return []spoken{
		{
			name: "chat", dialect: wire.DialectChat, path: "/v1/chat/completions", on: `"stream":true,"stream_options":{"include_usage":true},`,
			text: `{` + chatUser + `}`, limited: `{` + chatUser + `,"max_tokens":3}`, stopped: `{` + chatUser + `,"stop":" "}`,
			tools:    `{` + chatUser + `,` + chatTools + `}`,
			answered: `{"messages":[{"role":"user","content":"a b c d e"},{"role":"tool","content":"f"}],` + chatTools + `}`,
			schema:   `{` + chatUser + `,"response_format":{"type":"json_schema","json_schema":{"schema":` + simSchema + `}}}`,
			finish:   [3]string{"stop", "length", "stop"}, callFinish: "tool_calls",
		},
		{
			name: "completions", dialect: wire.DialectCompletions, path: "/v1/completions", on: `"stream":true,"stream_options":{"include_usage":true},`,
			text: `{"prompt":"one two three four five six"}`, limited: `{"prompt":"one two three four five six","max_tokens":3}`,
			stopped: `{"prompt":"one two three four five six","stop":" "}`,
			finish:  [3]string{"stop", "length", "stop"},
		},
		{
			name: "responses", dialect: "responses", path: "/v1/responses", on: `"stream":true,`,
			text: `{"input":"one two three four five six"}`, limited: `{"input":"one two three four five six","max_output_tokens":3}`,
			thinking: `{"instructions":"one two","input":[{"role":"user","content":[{"type":"input_text","text":"three four five six"}]}],"reasoning":{"effort":"low"}}`,
			tools:    `{"input":"one two three four five six",` + respTools + `}`,
			answered: `{"input":[{"role":"user","content":"a b c d e"},{"type":"function_call_output","call_id":"c","output":"f"}],` + respTools + `}`,
			schema:   `{"input":"one two three four five six","text":{"format":{"type":"json_schema","name":"n","schema":` + simSchema + `}}}`,
			finish:   [3]string{"completed", "incomplete:max_output_tokens", ""}, callFinish: "completed",
		},
		{
			name: "messages", dialect: "anthropic", path: "/v1/messages", on: `"stream":true,`,
			text: `{"max_tokens":99,` + chatUser + `}`, limited: `{"max_tokens":3,` + chatUser + `}`,
			stopped:  `{"max_tokens":99,"stop_sequences":[" "],` + chatUser + `}`,
			thinking: `{"max_tokens":99,"thinking":{"type":"enabled","budget_tokens":9},"system":"one two","messages":[{"role":"user","content":[{"type":"text","text":"three four five six"}]}]}`,
			tools:    `{"max_tokens":99,` + chatUser + `,` + anthTools + `}`,
			answered: `{"max_tokens":99,"messages":[{"role":"user","content":"a b c d e"},{"role":"user","content":[{"type":"tool_result","content":"f"}]}],` + anthTools + `}`,
			finish:   [3]string{"end_turn", "max_tokens", "stop_sequence"}, callFinish: "tool_use",
		},
		gemini, growing,
		{
			name: "ollama chat", dialect: wire.DialectOllama, path: "/api/chat", off: `"stream":false,`,
			text: `{` + chatUser + `}`, limited: `{` + chatUser + `,"options":{"num_predict":3}}`, stopped: `{` + chatUser + `,"options":{"stop":[" "]}}`,
			thinking: `{"think":true,` + chatUser + `}`, tools: `{` + chatUser + `,` + chatTools + `}`,
			answered: `{"messages":[{"role":"user","content":"a b c d e"},{"role":"tool","content":"f"}],` + chatTools + `}`,
			schema:   `{"format":` + simSchema + `,` + chatUser + `}`,
			finish:   [3]string{"stop", "length", "stop"}, callFinish: "stop", noReasoning: true, noCached: true,
		},
		{
			name: "ollama generate", dialect: wire.DialectOllama, path: "/api/generate", off: `"stream":false,`,
			text: `{"prompt":"one two three four five six"}`, limited: `{"system":"one","prompt":"two three four five six","options":{"num_predict":3}}`,
			stopped:  `{"prompt":"one two three four five six","options":{"stop":" "}}`,
			thinking: `{"think":"high","prompt":"one two three four five six"}`,
			schema:   `{"format":"json","prompt":"one two three four five six"}`,
			finish:   [3]string{"stop", "length", "stop"}, noReasoning: true, noCached: true,
		},
		{
			name: "llama.cpp", dialect: wire.DialectLlamaCpp, path: "/completion", on: `"stream":true,`,
			text: `{"prompt":"one two three four five six","n_predict":-1}`, limited: `{"prompt":"one two three four five six","n_predict":3}`,
			stopped: `{"prompt":"one two three four five six","stop":[" "]}`, schema: `{"prompt":"one two three four five six","json_schema":` + simSchema + `}`,
			finish: [3]string{"eos", "limit", "word"}, noReasoning: true,
		},
		{
			name: "sglang", dialect: wire.DialectSGLang, path: "/generate", on: `"stream":true,`,
			text: `{"text":"one two three four five six"}`, limited: `{"text":"one two three four five six","sampling_params":{"max_new_tokens":3}}`,
			stopped: `{"text":"one two three four five six","sampling_params":{"stop":" "}}`,
			schema:  `{"input_ids":[1,2,3,4,5,6],"sampling_params":{"json_schema":"{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}"}}`,
			finish:  [3]string{"stop", "length", "stop"}, noReasoning: true,
		},
	}
}

// ask is the request for one body, as a stream or not.
func (s spoken) ask(body string, stream bool, extra ...string) string {
	path, wish := s.path, s.off
	if stream {
		wish = s.on
		if s.streamPath != "" {
			path = s.streamPath
		}
	}
	return post(path, "{"+wish+strings.TrimPrefix(body, "{"), extra...)
}

// answered is a request's record, its body, and what the parser makes of that.
type answered struct {
	record Record
	body   string
	read   *wire.Transcript
}

// say sends a request and reads its answer with the parser, write by write.
func (s spoken) say(t *testing.T, srv *Server, addr, raw string) answered {
	t.Helper()
	c := dial(t, addr)
	srv.Reset()
	resp, body := answerOf(t, c, bufio.NewReader(c), raw)
	r := await(t, srv, Ended(1)).Requests[0]
	p := wire.NewParser(wire.Info{Path: r.Target, Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type")})
	at := 0
	for i, w := range r.Writes {
		p.Feed([]byte(body[at:w.Body]), i)
		at = w.Body
	}
	return answered{record: r, body: body, read: p.Finish(at == len(body))}
}

// mustAgree holds what the parser read to the truth: the usage, and which writes carried generated content.
func (s spoken) mustAgree(t *testing.T, a answered) {
	t.Helper()
	if a.read.Dialect != s.dialect || a.read.ParseErrors != 0 || a.read.Error != nil || !a.read.DialectEnd {
		t.Fatalf("dialect %q, %d parse errors, error %v, end %t of\n%s", a.read.Dialect, a.read.ParseErrors, a.read.Error, a.read.DialectEnd, a.body)
	}
	count := func(what string, got *int64, want int) {
		if got == nil || *got != int64(want) {
			t.Errorf("%s is %v, want %d, in\n%s", what, got, want, a.body)
		}
	}
	truth, u := a.record.Usage, a.read.Usage
	if u == nil {
		t.Fatalf("no usage in\n%s", a.body)
	}
	count("prompt", u.Prompt, truth.Prompt)
	count("completion", u.Completion, truth.Completion)
	if truth.Reasoning > 0 && !s.noReasoning {
		count("reasoning", u.Reasoning, truth.Reasoning)
	}
	if truth.Cached > 0 && !s.noCached {
		count("cached", u.Cached, truth.Cached)
	}
	tokens, want, got := 0, []int{}, []int{}
	for i, w := range a.record.Writes {
		tokens += w.Tokens
		if w.Token {
			want = append(want, i)
		}
	}
	for _, e := range a.read.Events {
		if e.Kinds != 0 {
			got = append(got, e.Read)
		}
	}
	if tokens != truth.Completion {
		t.Errorf("%d tokens in writes, %d in the truth", tokens, truth.Completion)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("writes with generated content (-truth +parser):\n%s\n%s", d, a.body)
	}
}

// both asks for a stream and for a plain answer and holds that they say the same.
func (s spoken) both(t *testing.T, srv *Server, addr, body string, extra ...string) (streamed, plain *wire.Transcript) {
	t.Helper()
	x, y := s.say(t, srv, addr, s.ask(body, true, extra...)), s.say(t, srv, addr, s.ask(body, false, extra...))
	s.mustAgree(t, x)
	s.mustAgree(t, y)
	for _, d := range []string{
		cmp.Diff(saidBy(x.read), saidBy(y.read)), cmp.Diff(x.read.FinishReason, y.read.FinishReason),
		cmp.Diff(x.record.Usage, y.record.Usage), cmp.Diff(x.read.Model, y.read.Model),
	} {
		if d != "" {
			t.Errorf("stream and plain answer differ (-stream +plain):\n%s\n%s\n%s", d, x.body, y.body)
		}
	}
	return x.read, y.read
}

// saidBy is the first choice. The index of a call is the answer's own in some dialects and an order in others.
func saidBy(t *wire.Transcript) wire.Choice {
	c := t.Choice0()
	c.ToolCalls = slices.Clone(c.ToolCalls)
	for i := range c.ToolCalls {
		c.ToolCalls[i].Index = i
	}
	return c
}

func TestDialects(t *testing.T) {
	srv, addr := start(t, Config{Model: "m", Options: Options{Answer: 6}})
	for _, s := range dialectsSpoken() {
		t.Run(s.name, func(t *testing.T) {
			for i, body := range []string{s.text, s.limited, s.stopped} {
				if body == "" {
					continue
				}
				got, _ := s.both(t, srv, addr, body)
				if words := len(strings.Fields(got.Choice0().Text)); got.FinishReason == nil || *got.FinishReason != s.finish[i] || words != []int{6, 3, 1}[i] {
					t.Errorf("%d words, finish %v, want %s", words, got.FinishReason, s.finish[i])
				}
			}
			got, _ := s.both(t, srv, addr, s.text, "X-Sim: reasoning=5; per_event=2; cached=4")
			thoughts := len(strings.Fields(got.Choice0().Reasoning))
			if mute := s.dialect == wire.DialectLlamaCpp || s.dialect == wire.DialectSGLang; mute != (thoughts == 0) && s.name != "completions" {
				t.Errorf("%d words of thinking", thoughts)
			}
			if s.thinking != "" {
				got, _ = s.both(t, srv, addr, s.thinking)
				if n := len(strings.Fields(got.Choice0().Reasoning)); n != defaultThinking {
					t.Errorf("asked for thinking, got %d words of it", n)
				}
			}
			if s.schema != "" {
				got, _ = s.both(t, srv, addr, s.schema)
				mustBeObject(t, got.Choice0().Text)
			}
		})
	}
}

func TestDialectTools(t *testing.T) {
	srv, addr := start(t, Config{Model: "m", Options: Options{Answer: 6}})
	for _, s := range dialectsSpoken() {
		if s.tools == "" {
			continue
		}
		for _, mode := range []string{ToolsFragments, ToolsWhole} {
			t.Run(s.name+"/"+mode, func(t *testing.T) {
				got, _ := s.both(t, srv, addr, s.tools, "X-Sim: tool_calls=2; reasoning=2; tools="+mode)
				calls := got.Choice0().ToolCalls
				if len(calls) != 2 || *got.FinishReason != s.callFinish || got.FinishNorm != "tool_calls" {
					t.Fatalf("%+v, finish %q", calls, *got.FinishReason)
				}
				for _, c := range calls {
					if c.Name != "get_weather" || c.ID == "" {
						t.Errorf("%+v", c)
					}
					mustBeObject(t, c.Arguments)
				}
			})
		}
		t.Run(s.name+"/answered", func(t *testing.T) {
			if got, _ := s.both(t, srv, addr, s.answered); len(got.Choice0().ToolCalls) != 0 || got.Choice0().Text == "" {
				t.Errorf("the result of a call is answered with %+v", got.Choice0())
			}
			if got, _ := s.both(t, srv, addr, s.tools, "X-Sim: tools=off"); len(got.Choice0().ToolCalls) != 0 {
				t.Errorf("tools are off: %+v", got.Choice0())
			}
		})
	}
}

// TestDialectErrors holds that a dialect's errors are in its own form: as the whole answer, and inside a stream.
func TestDialectErrors(t *testing.T) {
	srv, addr := start(t, Config{Model: "m", APIKey: "k", Context: 8})
	key := "Authorization: Bearer k"
	for _, s := range dialectsSpoken() {
		t.Run(s.name, func(t *testing.T) {
			for sim, status := range map[string]int{"X-Sim: status=529": 529, "X-Sim: status=429": 429, "X-Sim: ttft=soon": 400} {
				a := s.say(t, srv, addr, s.ask(s.text, true, key, sim))
				if a.read.Error == nil || a.read.Error.Message == "" || a.read.DialectEnd {
					t.Errorf("%d: %+v of %s", status, a.read.Error, a.body)
				}
			}
			if a := s.say(t, srv, addr, s.ask(s.text+" ", true, key, "Content-Type: x")); a.read.Error != nil {
				t.Errorf("blanks behind the body: %+v", a.read.Error)
			}
			for _, fault := range []string{"error@3", "error_done@3", "error@0"} {
				a := s.say(t, srv, addr, s.ask(s.text, true, key, "X-Sim: fault="+fault))
				if a.read.Error == nil || a.read.Error.Message != lostModel || a.read.ParseErrors != 0 {
					t.Errorf("%s: %+v of %s", fault, a.read.Error, a.body)
				}
			}
			a := s.say(t, srv, addr, s.ask(s.text, false, key, "X-Sim: fault=error"))
			if a.read.Error == nil || a.read.Error.Message != lostModel {
				t.Errorf("plain: %+v of %s", a.read.Error, a.body)
			}
		})
	}
}

// TestDialectRefusals holds what each dialect refuses, in its own words.
func TestDialectRefusals(t *testing.T) {
	_, addr := start(t, Config{Model: "m", APIKey: "k", Context: 4})
	const bearer, anthropic, google = "Authorization: Bearer k", "x-api-key: k", "x-goog-api-key: k"
	long := `"a b c d e"`
	for _, c := range []struct {
		path, body, header string
		status             int
		part               string
	}{
		{"/v1/responses", `{"model":`, bearer, 400, "read request body"},
		{"/v1/responses", `{}`, bearer, 400, "input is missing"},
		{"/v1/responses", `{"input":` + long + `}`, bearer, 400, `"type":"exceed_context_size_error"`},
		{"/v1/messages", `{"max_tokens":1}`, anthropic, 400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages`},
		{"/v1/messages", `{` + chatUser + `}`, anthropic, 400, "max_tokens: field required"},
		{"/v1/messages", `{`, anthropic, 400, "read request body"},
		{"/v1/messages", `{}`, "x-api-key: no", 401, `"type":"authentication_error"`},
		{"/v1beta/models/m:generateContent", `{}`, google, 400, `"status":"INVALID_ARGUMENT"`},
		{"/v1beta/models/m:generateContent", `{`, google, 400, "read request body"},
		{"/v1beta/models/m:generateContent", `{}`, bearer + "x", 401, `"status":"UNAUTHENTICATED"`},
		{"/v1beta/models/m:streamGenerateContent", `{}`, google, 400, `[{"error":{"code":400`},
		{"/v1/messages", `{}`, "X-Sim: x=1", 400, `{"type":"error","error":{"type":"invalid_request_error"`},
		{"/v1beta/models/m:dance", `{}`, google, 404, "no such path"},
		{"/api/chat", `{`, "", 400, `{"error":"read request body`},
		{"/api/generate", `{`, "", 400, `{"error":"read request body`},
		{"/api/generate", `{"prompt":` + long + `}`, "", 400, `{"error":"the prompt has 5 tokens, the context holds 4"}`},
		{"/completion", `{"prompt":["a","b"]}`, "", 400, `"message":"\"prompt\" must be one string","type":"invalid_request_error"`},
		{"/completion", `{`, "", 400, "read request body"},
		{"/generate", `{}`, "", 400, `{"error":{"message":"either text or input_ids must be given"}}`},
		{"/generate", `{`, "", 400, "read request body"},
		{"/v1/embeddings", `{`, bearer, 400, "read request body"},
		{"/v1/embeddings", `{"input":[]}`, bearer, 400, "input is missing"},
		{"/v1/embeddings", `{"input":"a","dimensions":0}`, bearer, 400, "dimensions"},
		{"/api/embed", `{"input":"a","dimensions":99999}`, "", 400, `{"error":"dimensions`},
		{"/api/embed", `{`, "", 400, `{"error":"read request body`},
		{"/api/embeddings", `{}`, "", 400, `{"error":"input is missing"}`},
	} {
		t.Run(c.path+" "+c.body, func(t *testing.T) {
			var extra []string
			if c.header != "" {
				extra = append(extra, c.header)
			}
			resp, body := fetch(t, addr, post(c.path, c.body, extra...))
			if resp.StatusCode != c.status || !strings.Contains(body, c.part) {
				t.Errorf("%d %s, want %d with %s", resp.StatusCode, body, c.status, c.part)
			}
		})
	}
}

// TestStatusWords holds the words that two dialects have for a status.
func TestStatusWords(t *testing.T) {
	for status, want := range map[int][2]string{
		400: {"invalid_request_error", "INVALID_ARGUMENT"}, 401: {"authentication_error", "UNAUTHENTICATED"}, 403: {"permission_error", "PERMISSION_DENIED"},
		404: {"not_found_error", "NOT_FOUND"}, 413: {"request_too_large", "INTERNAL"}, 429: {"rate_limit_error", "RESOURCE_EXHAUSTED"},
		500: {"api_error", "INTERNAL"}, 503: {"api_error", "UNAVAILABLE"}, 529: {"overloaded_error", "INTERNAL"},
	} {
		got := [2]string{string(refuseMessages(status, "", "x")), string(refuseGemini(status, "", "x"))}
		for i := range got {
			if !strings.Contains(got[i], fmt.Sprintf("%q", want[i])) {
				t.Errorf("%d: %s, want %s", status, got[i], want[i])
			}
		}
	}
}
