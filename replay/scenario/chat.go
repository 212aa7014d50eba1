package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// chat is the body of a request of chat completions. Its fields are written in this order.
type chat struct {
	Model          string    `json:"model,omitempty"`
	Messages       []message `json:"messages"`
	Tools          []tool    `json:"tools,omitempty"`
	ToolChoice     any       `json:"tool_choice,omitempty"` // a word, or a namedTool
	Parallel       *bool     `json:"parallel_tool_calls,omitempty"`
	ResponseFormat any       `json:"response_format,omitempty"`
	MaxTokens      int       `json:"max_tokens"`
	Temperature    float64   `json:"temperature"`
	*sampling
	Logprobs      bool           `json:"logprobs,omitempty"`
	TopLogprobs   int            `json:"top_logprobs,omitempty"`
	Stream        bool           `json:"stream"`
	StreamOptions map[string]any `json:"stream_options,omitempty"`

	more json.RawMessage // an object whose fields stand behind the others: what a scenario of the user's asks for besides
}

// sampling is the rest of the sampling that the validation states. All are greedy, so they only have to be alike.
type sampling struct {
	TopP             int `json:"top_p"`
	TopK             int `json:"top_k"`
	Seed             int `json:"seed"`
	RepeatPenalty    int `json:"repeat_penalty"`
	PresencePenalty  int `json:"presence_penalty"`
	FrequencyPenalty int `json:"frequency_penalty"`
}

// validationSampling is that of the validation suites.
func validationSampling() *sampling { return &sampling{TopP: 1, Seed: 42, RepeatPenalty: 1} }

// message is a message of a chat.
type message struct {
	Role      string `json:"role"`
	Content   any    `json:"content"` // text, parts, null, or the object that a tool gave
	ToolCalls []call `json:"tool_calls,omitempty"`
	CallID    string `json:"tool_call_id,omitempty"`
}

// call is a tool call as it is told back to the engine.
type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// tool is a declared tool.
type tool struct {
	Type     string      `json:"type"`
	Function declaration `json:"function"`
}

type declaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// declare is a tool with the JSON schema of its arguments.
func declare(name, description, schema string) tool {
	return tool{Type: "function", Function: declaration{name, description, json.RawMessage(schema)}}
}

// namedTool is the tool_choice that names a tool.
func namedTool(name string) any {
	return map[string]any{"type": "function", "function": map[string]any{"name": name}}
}

// contentPart is a part of a message that holds more than text.
type contentPart struct {
	Type       string          `json:"type"`
	Text       string          `json:"text,omitempty"`
	ImageURL   json.RawMessage `json:"image_url,omitempty"`
	InputAudio json.RawMessage `json:"input_audio,omitempty"`
	VideoURL   json.RawMessage `json:"video_url,omitempty"`
	File       json.RawMessage `json:"file,omitempty"`
}

// prefixed is the content of a message with text before all else that it holds.
func prefixed(content any, prefix string) any {
	if prefix == "" {
		return content
	}
	switch c := content.(type) {
	case string:
		return prefix + c
	case []contentPart:
		if len(c) > 0 && c[0].Type == "text" {
			c = slices.Clone(c)
			c[0].Text = prefix + c[0].Text
			return c
		}
		return append([]contentPart{{Type: "text", Text: prefix}}, c...)
	}
	return content
}

// user is a message of the user.
func user(text string) message { return message{Role: "user", Content: text} }

// told is an answer as a message of the history. Reasoning is not told back: templates differ in what they make of it.
func (a Answer) told() message {
	m := message{Role: "assistant", Content: a.Content}
	if a.Content == "" && len(a.Calls) > 0 {
		m.Content = nil
	}
	for _, c := range a.Calls {
		m.ToolCalls = append(m.ToolCalls, call{ID: c.ID, Type: "function", Function: function{c.Name, c.Arguments}})
	}
	return m
}

// result is the message that gives the result of a call, as text or as the object itself.
func (o Options) result(id, result string) message {
	m := message{Role: "tool", CallID: id, Content: result}
	if o.StructuredResults {
		m.Content = json.RawMessage(result)
	}
	return m
}

// bytes writes a body.
func (c chat) bytes() json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		panic(fmt.Sprintf("scenario: a body is always JSON: %v", err))
	}
	body := bytes.TrimRight(b.Bytes(), "\n")
	if len(c.more) > 0 {
		body = append(append(body[:len(body)-1], ','), c.more[1:]...)
	}
	return body
}
