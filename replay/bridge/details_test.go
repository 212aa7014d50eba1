package bridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// detail is a translation in one thing besides the smallest request.
type detail struct {
	name     string
	from, to wire.Dialect
	engine   string // "" is vllm
	give     string // members of the recorded body besides model and messages
	want     string // members of the new one besides model and messages
	changes  string // path, a mark and what stands there now, in order: ! lost, = carried otherwise
}

// small is the smallest request of each dialect with more members, as it is written.
func small(d wire.Dialect, more string) (target, body string) {
	if more != "" {
		more = "," + more
	}
	switch d {
	case wire.DialectGemini:
		return "/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]` + more + `}`
	case wire.DialectOllama:
		return "/api/chat", `{"model":"m","messages":[{"role":"user","content":"hi"}]` + more + `,"stream":false}`
	}
	return "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]` + more + `}`
}

const (
	chat      = wire.DialectChat
	anthropic = wire.DialectAnthropic
	google    = wire.DialectGemini
	ollama    = wire.DialectOllama
	toolJSON  = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}]`
)

var details = []detail{
	// Choice of tools.
	{"one call at a time", chat, anthropic, "", toolJSON + `,"parallel_tool_calls":false,"max_tokens":9`,
		`"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, ""},
	{"one call, and it must be", chat, anthropic, "", toolJSON + `,"tool_choice":"required","parallel_tool_calls":false,"max_tokens":9`,
		`"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, ""},
	{"no call", chat, anthropic, "", toolJSON + `,"tool_choice":"none","parallel_tool_calls":false,"max_tokens":9`,
		`"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"none"}`, "parallel_tool_calls="},
	{"one call of no tool", chat, anthropic, "", `"parallel_tool_calls":false,"max_tokens":9`, ``, "parallel_tool_calls="},
	{"a named tool", chat, anthropic, "", toolJSON + `,"tool_choice":{"type":"function","function":{"name":"f"}},"max_tokens":9`,
		`"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"tool","name":"f"}`, ""},
	{"a named tool", chat, google, "", toolJSON + `,"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false`,
		`"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`, "parallel_tool_calls!"},
	{"a tool that must be", chat, ollama, "", toolJSON + `,"tool_choice":"required","parallel_tool_calls":false`, toolJSON, "tool_choice! parallel_tool_calls!"},
	{"calls in parallel are the default", chat, ollama, "", toolJSON + `,"parallel_tool_calls":true,"tool_choice":"auto"`, toolJSON, ""},
	{"an unknown choice", chat, ollama, "", `"tool_choice":"perhaps"`, ``, "tool_choice!"},
	{"several tools to choose from", google, chat, "", `"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","g"]}}`,
		`"tool_choice":"required"`, "toolConfig.functionCallingConfig.allowedFunctionNames!"},
	{"a strict tool", chat, anthropic, "", `"max_tokens":9,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]`,
		`"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"string"}}},"strict":true}]`, ""},
	{"a strict tool", chat, ollama, "", `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]`,
		`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}]`, `tools[0].function.strict!`},
	{"a tool of the engine", anthropic, chat, "", `"tools":[{"type":"web_search_20250305","name":"web_search"}]`, `"max_tokens":9`, "tools[0]!"},

	// Structured output.
	{"constraints", chat, anthropic, "", `"max_tokens":9,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"minimum":{"type":"integer","minimum":1,"maximum":9},"s":{"type":"string","minLength":2,"pattern":"^a"},"l":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"type":"number","multipleOf":2},{"type":"null"}]}}},"required":["minimum"]}}}`,
		`"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"minimum":{"type":"integer"},"s":{"type":"string","pattern":"^a"},"l":{"type":"array","minItems":1,"items":{"anyOf":[{"type":"number"},{"type":"null"}]}}},"required":["minimum"],"additionalProperties":false}}}`,
		"response_format.properties.minimum.minimum= response_format.properties.minimum.maximum= response_format.properties.s.minLength= response_format.properties.l.items.anyOf[0].multipleOf= response_format.properties.l.maxItems= response_format.additionalProperties=false"},
	{"constraints stay elsewhere", chat, ollama, "", `"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"integer","minimum":1.0}}}`, `"format":{"type":"integer","minimum":1.0}`, ""},
	{"JSON without a schema", chat, anthropic, "", `"max_tokens":9,"response_format":{"type":"json_object"}`, ``, "response_format!"},
	{"JSON without a schema", chat, ollama, "", `"response_format":{"type":"json_object"}`, `"format":"json"`, ""},
	{"JSON without a schema", chat, google, "", `"response_format":{"type":"json_object"}`, `"generationConfig":{"responseMimeType":"application/json"}`, ""},
	{"text", chat, google, "", `"response_format":{"type":"text"}`, ``, ""},
	{"a grammar", chat, google, "", `"response_format":{"type":"grammar","grammar":"x"}`, ``, "response_format!"},
	{"types in capitals", google, chat, "", `"generationConfig":{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true}}}}`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object","properties":{"type":{"type":["string","null"]}}}}}`, ""},

	// Limits.
	{"none", chat, anthropic, "", ``, `"max_tokens":4096`, "max_tokens=4096"},
	{"the newer name wins", chat, google, "", `"max_tokens":5,"max_completion_tokens":6`, `"generationConfig":{"maxOutputTokens":6}`, ""},
	{"as the engine calls it", anthropic, chat, "openai", ``, `"max_completion_tokens":9`, ""},
	{"as the engine calls it", anthropic, chat, "ollama", ``, `"max_tokens":9`, ""},
	{"without an end", ollama, chat, "", `"options":{"num_predict":-1}`, ``, "options.num_predict="},
	{"no number", chat, ollama, "", `"max_tokens":"many"`, ``, "max_tokens!"},

	// Sampling.
	{"what it has", chat, google, "", `"temperature":1.5,"top_p":0.5,"top_k":3,"seed":7,"frequency_penalty":0.5,"presence_penalty":0.25,"n":2,"logprobs":true,"top_logprobs":3`,
		`"generationConfig":{"temperature":1.5,"topP":0.5,"topK":3,"seed":7,"frequencyPenalty":0.5,"presencePenalty":0.25,"candidateCount":2,"responseLogprobs":true,"logprobs":3}`, ""},
	{"what it has not", chat, anthropic, "", `"max_tokens":9,"seed":7,"min_p":0.1,"repetition_penalty":1.1,"n":2`, ``, "min_p! seed! repetition_penalty! n!"},
	{"what asks for nothing", chat, anthropic, "", `"max_tokens":9,"frequency_penalty":0,"presence_penalty":0.0,"repetition_penalty":1.0,"n":1,"logprobs":false,"seed":null`, ``, ""},
	{"too hot", chat, anthropic, "", `"max_tokens":9,"temperature":1.2`, ``, "temperature!"},
	{"all in its options", chat, ollama, "", `"temperature":0,"repeat_penalty":1.1,"stop":"x","logprobs":true,"top_logprobs":2,"min_p":0.05`,
		`"logprobs":true,"top_logprobs":2,"options":{"temperature":0,"min_p":0.05,"repeat_penalty":1.1,"stop":["x"]}`, ""},
	{"as llama.cpp calls it", ollama, chat, "llamacpp", `"options":{"repeat_penalty":1.1}`, `"repeat_penalty":1.1`, ""},
	{"as vLLM calls it", ollama, chat, "", `"options":{"repeat_penalty":1.1,"top_k":3}`, `"top_k":3,"repetition_penalty":1.1`, ""},
	{"not a vendor's", ollama, chat, "openai", `"options":{"repeat_penalty":1.1,"top_k":3,"seed":1}`, `"seed":1`, "options.top_k! options.repeat_penalty!"},
	{"an engine's own", ollama, chat, "", `"options":{"num_ctx":4096,"mirostat":2}`, ``, "options.num_ctx! options.mirostat!"},

	// Thinking.
	{"off", chat, anthropic, "", `"max_tokens":9,"enable_thinking":false`, `"thinking":{"type":"disabled"}`, ""},
	{"off", chat, google, "", `"reasoning_effort":"none"`, `"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}`, ""},
	{"off", chat, ollama, "", `"chat_template_kwargs":{"enable_thinking":false}`, `"think":false`, ""},
	{"off", ollama, chat, "tabbyapi", `"think":false`, `"enable_thinking":false`, ""},
	{"off", ollama, chat, "openai", `"think":false`, `"reasoning_effort":"none"`, ""},
	{"off, nobody knows how", ollama, chat, "generic", `"think":false`, ``, "think!"},
	{"on", ollama, anthropic, "", `"options":{"num_predict":4000},"think":true`, `"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":1024}`, "think=1024"},
	{"on, in too small a limit", ollama, anthropic, "", `"options":{"num_predict":100},"think":true`, `"max_tokens":100`, "think!"},
	{"by a budget", anthropic, google, "", `"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":2000}`, `"generationConfig":{"maxOutputTokens":4000,"thinkingConfig":{"includeThoughts":true,"thinkingBudget":2000}}`, ""},
	{"by a budget", anthropic, ollama, "", `"thinking":{"type":"enabled","budget_tokens":2000}`, `"options":{"num_predict":9},"think":true`, "thinking.budget_tokens!"},
	{"by effort", chat, anthropic, "", `"max_tokens":9,"reasoning_effort":"high"`, `"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, ""},
	{"by effort it has not", chat, anthropic, "", `"max_tokens":9,"reasoning_effort":"minimal"`, `"thinking":{"type":"adaptive"}`, "reasoning_effort!"},
	{"by effort", chat, ollama, "", `"reasoning_effort":"low"`, `"think":"low"`, ""},
	{"by level", google, chat, "", `"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW"}}`, `"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking":true}`, ""},

	// The rest.
	{"what asks for nothing", chat, ollama, "", `"user":"u","metadata":{"a":"b"},"cache_prompt":false,"stream_options":{"include_usage":true}`, ``, "user= metadata= cache_prompt="},
	{"what nobody knows", chat, ollama, "", `"logit_bias":{"5":1},"ignore_eos":true,"min_tokens":5`, ``, "logit_bias! ignore_eos! min_tokens!"},
	{"what is not what it should be", chat, ollama, "", `"stream":"yes","stop":5,"tools":{},"stream_options":[]`, ``, "stream! stream_options! tools! stop!"},
	{"safety", google, anthropic, "", `"generationConfig":{"maxOutputTokens":9},"safetySettings":[],"cachedContent":"c"`, ``, "safetySettings! cachedContent!"},
}

func TestDetails(t *testing.T) {
	for _, tc := range details {
		t.Run(fmt.Sprintf("%s to %s: %s", tc.from, tc.to, tc.name), func(t *testing.T) {
			e := vllm(tc.to)
			if tc.engine != "" {
				e = endpoint(t, tc.to, tc.engine)
			}
			target, body := whole(tc.from, tc.give)
			_, want := whole(tc.to, tc.want)
			got, err := Translate(tc.from, target, []byte(body), e, "")
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

// whole is the smallest request with more members, each in the place where the dialect writes it.
func whole(d wire.Dialect, more string) (target, body string) {
	if d != anthropic {
		return small(d, more)
	}
	limit, rest, ok := strings.Cut(more, ",")
	if !strings.HasPrefix(limit, `"max_tokens"`) {
		limit, rest, ok = `"max_tokens":9`, more, more != ""
	}
	if ok {
		rest = "," + rest
	}
	return "/v1/messages", `{"model":"m",` + limit + `,"messages":[{"role":"user","content":"hi"}]` + rest + `}`
}

// told is the changes as details write them.
func told(changes []Change) string {
	var out []string
	for _, c := range changes {
		mark := "=" + c.To
		if c.Lost {
			mark = "!"
		}
		if c.Reason == "" {
			mark += " without a reason"
		}
		out = append(out, c.Path+mark)
	}
	return strings.Join(out, " ")
}
