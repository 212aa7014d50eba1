package engines

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Capability is whether a served model does something, as its answer to one request showed.
type Capability struct {
	Supported *bool  `json:"supported"` // null: the answer settles nothing
	Evidence  string `json:"evidence"`  // one line
}

// Capabilities are what a suite may need of a served model. They are never taken from the name of an engine: templates,
// flags and builds decide.
type Capabilities struct {
	Tools      Capability `json:"tools"`       // it calls an offered tool
	ToolChoice Capability `json:"tool_choice"` // "required" makes it call one where it would not
	Parallel   Capability `json:"parallel"`    // several calls in one answer
	JSONSchema Capability `json:"json_schema"` // response_format json_schema binds the answer
	JSONObject Capability `json:"json_object"` // response_format json_object does
}

// Send posts a body to the chat completions endpoint and returns the whole answer. The error is for answers that did not
// come.
type Send func(ctx context.Context, body []byte) (status int, answer []byte, err error)

// ProbeCapabilities sends one small request for each capability, one after the other. The error is the first of send:
// what an engine refuses is a finding, not an error.
func ProbeCapabilities(ctx context.Context, model string, send Send) (Capabilities, error) {
	var c Capabilities
	for _, probe := range []struct {
		into  *Capability
		words []string // one of them stands in a refusal of this capability
		body  map[string]any
		judge func(chatAnswer) Capability
	}{
		{&c.Tools, []string{"tool"}, toolRequest("Use the tool: what is the weather in Paris?", "auto"), judgeCall},
		{&c.ToolChoice, []string{"tool"}, toolRequest("Say hello. Do not look up anything.", "required"), judgeForced},
		{&c.Parallel, []string{"tool", "parallel"}, parallelRequest(), judgeParallel},
		{&c.JSONSchema, formatWords, formatRequest(schemaFormat), judgeSchema},
		{&c.JSONObject, formatWords, formatRequest(map[string]any{"type": "json_object"}), judgeObject},
	} {
		probe.body["model"], probe.body["temperature"], probe.body["max_tokens"] = model, 0, 512
		body, err := json.Marshal(probe.body)
		if err != nil {
			return c, fmt.Errorf("write probe: %w", err)
		}
		status, answer, err := send(ctx, body)
		if err != nil {
			return c, fmt.Errorf("probe capabilities: %w", err)
		}
		*probe.into = judge(status, answer, probe.words, probe.judge)
	}
	return c, nil
}

// chatTimeout bounds one request of ProbeCapabilities that ChatSender sends: a short answer of a slow machine.
const chatTimeout = 3 * time.Minute

// ChatSender is a Send to the chat completions of the server at base, with or without /v1 at its end. The headers of o go
// to that origin only; of the other options MaxAnswer counts. The error wraps exchange.ErrUnreachable when no answer came.
func ChatSender(do Doer, base string, o Options) (Send, error) {
	p, err := newProber(do, base, o)
	if err != nil {
		return nil, err
	}
	p.o.ProbeTimeout, p.left = chatTimeout, chatTimeout
	return func(ctx context.Context, body []byte) (int, []byte, error) {
		a, err := p.send(ctx, "/v1/chat/completions", body)
		if err == nil {
			return a.status, a.body, nil
		}
		if ctx.Err() != nil {
			return 0, nil, context.Cause(ctx)
		}
		return 0, nil, &exchange.Error{Op: "ask engine", Object: redact.URL(p.base.String()), Side: exchange.SideEngine,
			Cause: fmt.Errorf("%w: %w", exchange.ErrUnreachable, err), Hint: "does it serve /v1/chat/completions?"}
	}, nil
}

// Each are the capabilities with their names, in the order in which they are probed.
func (c *Capabilities) Each(fn func(name string, found Capability)) {
	fn("tools", c.Tools)
	fn("tool_choice", c.ToolChoice)
	fn("parallel", c.Parallel)
	fn("json_schema", c.JSONSchema)
	fn("json_object", c.JSONObject)
}

var formatWords = []string{"response_format", "json_schema", "json_object", "schema", "grammar", "structured"}

func parallelRequest() map[string]any {
	body := toolRequest("Use the tool for both: what is the weather in Paris, and in Rome?", "auto")
	body["parallel_tool_calls"] = true
	return body
}

func toolRequest(prompt, choice string) map[string]any {
	return map[string]any{
		"messages":    []any{map[string]any{"role": "user", "content": prompt}},
		"tool_choice": choice,
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{
			"name": "get_weather", "description": "The weather of a city.",
			"parameters": map[string]any{"type": "object", "required": []string{"city"}, "additionalProperties": false,
				"properties": map[string]any{"city": map[string]any{"type": "string"}}},
		}}},
	}
}

var schemaFormat = map[string]any{"type": "json_schema", "json_schema": map[string]any{
	"name": "count", "strict": true,
	"schema": map[string]any{"type": "object", "required": []string{"n"}, "additionalProperties": false,
		"properties": map[string]any{"n": map[string]any{"type": "integer"}}},
}}

// formatRequest asks for JSON only by response_format and one word of the prompt, which some engines insist on.
func formatRequest(format map[string]any) map[string]any {
	return map[string]any{"messages": []any{map[string]any{"role": "user", "content": "How many legs has a spider? Answer in JSON."}},
		"response_format": format}
}

// chatAnswer is what a judge looks at.
type chatAnswer struct {
	Error   any `json:"error"`
	Choices []struct {
		FinishReason string `json:"finish_reason"`
		Message      struct {
			Content   any `json:"content"`
			ToolCalls []struct {
				Function struct {
					Name      string `json:"name"`
					Arguments any    `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
}

func yes(format string, args ...any) Capability {
	return Capability{pointer(true), fmt.Sprintf(format, args...)}
}

func no(format string, args ...any) Capability {
	return Capability{pointer(false), fmt.Sprintf(format, args...)}
}

func open(format string, args ...any) Capability {
	return Capability{nil, fmt.Sprintf(format, args...)}
}

// judge settles what the status alone tells. A refusal counts only when its text is about the capability: the request may
// have been refused for anything else.
func judge(status int, body []byte, words []string, of func(chatAnswer) Capability) Capability {
	if status != http.StatusOK {
		said := strings.Join(strings.Fields(string(body)), " ")
		refused := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity || status == http.StatusNotImplemented
		for _, w := range words {
			if refused && strings.Contains(strings.ToLower(said), w) {
				return no("refused with status %d: %s", status, clip(said))
			}
		}
		return open("status %d: %s", status, clip(said))
	}
	var a chatAnswer
	if err := json.Unmarshal(body, &a); err != nil || a.Error != nil || len(a.Choices) == 0 {
		return open("the answer is not a chat completion")
	}
	return of(a)
}

// calls counts the calls of the offered tool.
func (a chatAnswer) calls() (n int) {
	for _, c := range a.Choices[0].Message.ToolCalls {
		if c.Function.Name == "get_weather" {
			n++
		}
	}
	return n
}

func (a chatAnswer) content() string {
	s, _ := a.Choices[0].Message.Content.(string)
	return strings.TrimSpace(s)
}

// cut reports an answer that the limit ended: what is missing may have been to come.
func (a chatAnswer) cut() bool { return a.Choices[0].FinishReason == "length" }

func judgeCall(a chatAnswer) Capability {
	if n := a.calls(); n > 0 {
		return yes("%d call of the offered tool", n)
	}
	return open("it answered without a call; that is the model's choice")
}

func judgeForced(a chatAnswer) Capability {
	switch {
	case a.calls() > 0:
		return yes("a call where none was asked for")
	case a.cut():
		return open("the answer was cut before a call")
	}
	return no("no call, though one was required")
}

func judgeParallel(a chatAnswer) Capability {
	if n := a.calls(); n > 1 {
		return yes("%d calls in one answer", n)
	}
	return open("%d calls; that is the model's choice", a.calls())
}

func judgeSchema(a chatAnswer) Capability {
	var o map[string]any
	switch err := json.Unmarshal([]byte(a.content()), &o); {
	case err == nil && len(o) == 1 && isWhole(o["n"]):
		return yes("the content keeps to the schema")
	case a.cut():
		return open("the answer was cut")
	}
	return no("the content does not keep to the schema")
}

func isWhole(v any) bool {
	f, ok := v.(float64)
	return ok && f == float64(int64(f))
}

func judgeObject(a chatAnswer) Capability {
	var o map[string]any
	switch err := json.Unmarshal([]byte(a.content()), &o); {
	case err == nil:
		return yes("the content is a JSON object")
	case a.cut():
		return open("the answer was cut")
	}
	return no("the content is not a JSON object")
}
