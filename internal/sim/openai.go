package sim

import (
	"encoding/json"
	"errors"
)

// chatDialect is /v1/chat/completions.
var chatDialect = dialect{
	prefix: "chatcmpl-", mime: mimeSSE, ping: ": ping\n\n",
	parse:  func(req Request, o Options) (ask, error) { return parseOpenAI(req, o, true) },
	stream: streamOpenAI, plain: (*answerPlan).wholeAnswer, refuse: errorObject, breakup: breakOpenAI,
}

// completionsDialect is /v1/completions.
var completionsDialect = dialect{
	prefix: "cmpl-", mime: mimeSSE, ping: ": ping\n\n",
	parse:  func(req Request, o Options) (ask, error) { return parseOpenAI(req, o, false) },
	stream: streamOpenAI, plain: (*answerPlan).wholeAnswer, refuse: errorObject, breakup: breakOpenAI,
}

// breakOpenAI is the error event of a stream.
func breakOpenAI(int) []byte { return sse(errorObject(500, "server_error", lostModel)) }

// body is the request body of chat and completions, as far as the engine looks at it.
type body struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	N                   *int            `json:"n"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	Stop                json.RawMessage `json:"stop"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	ResponseFormat      struct {
		Type       string `json:"type"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Logprobs    json.RawMessage `json:"logprobs"`
	TopLogprobs int             `json:"top_logprobs"`
}

// parseOpenAI reads a request body.
func parseOpenAI(req Request, o Options, chat bool) (ask, error) {
	var b body
	if err := readBody(req, &b); err != nil {
		return ask{}, err
	}
	a := newAsk(o)
	a.chat, a.model, a.stream, a.usage = chat, b.Model, b.Stream, b.StreamOptions.IncludeUsage
	a.endless, a.stop = b.IgnoreEOS, stringOrList(b.Stop)
	if a.chat && len(b.Messages) == 0 {
		return a, errors.New("messages must not be empty")
	}
	if !a.chat && len(b.Prompt) == 0 {
		return a, errors.New("prompt is missing")
	}
	a.bound(b.MaxTokens)
	a.bound(b.MaxCompletionTokens)
	if b.N != nil {
		a.n = *b.N
	}
	a.prompt = b.promptTokens()
	a.offer(b.toolWish(), o)
	a.chooseFormat(b)
	return a, nil
}

func (b body) toolWish() toolWish {
	w := toolWish{tools: b.Tools, forbid: string(b.ToolChoice) == `"none"`}
	w.answered = len(b.Messages) > 0 && b.Messages[len(b.Messages)-1].Role == "tool"
	var named tool
	if json.Unmarshal(b.ToolChoice, &named) == nil {
		w.named = named.Function.Name
	}
	return w
}

// chooseFormat reads the output format and the log-probabilities asked for.
func (a *ask) chooseFormat(b body) {
	switch b.ResponseFormat.Type {
	case "json_schema":
		a.schema = b.ResponseFormat.JSONSchema.Schema
	case "json_object":
		a.schema = anyJSON
	}
	var want bool
	var count int
	switch {
	case json.Unmarshal(b.Logprobs, &want) == nil && want:
		a.top = min(max(b.TopLogprobs, 0), 20)
	case json.Unmarshal(b.Logprobs, &count) == nil && len(b.Logprobs) > 0 && string(b.Logprobs) != "null":
		a.top = min(max(count, 0), 20)
	}
}

// promptTokens counts by the rule of the package: blank-separated words of all texts.
func (b body) promptTokens() int {
	n := 0
	for _, m := range b.Messages {
		n += words(texts(m.Content)...)
	}
	return n + words(stringOrList(b.Prompt)...)
}

// streamOpenAI writes role, tokens, finish reason, usage and [DONE].
func streamOpenAI(p *answerPlan, w *scribe) {
	if p.chat {
		for i := range p.choices {
			w.add(p.opening(), sse(p.roleEvent(i)), 0)
		}
	}
	running := 0
	for _, e := range p.events {
		running += len(e.tokens)
		w.add(e.at, sse(p.contentEvent(e, running)), len(e.tokens))
	}
	for i, c := range p.choices {
		w.add(p.last, sse(p.finishEvent(i, c.finish)), 0)
	}
	if p.lastChunk() {
		w.add(p.last, sse(p.usageEvent()), 0)
	}
	w.add(p.last, []byte("data: [DONE]\n\n"), 0)
}

// lastChunk reports whether the stream ends with a chunk for the usage alone.
func (p *answerPlan) lastChunk() bool {
	switch p.Options.Usage {
	case UsageRequest:
		return p.ask.usage
	case UsageAlways, UsageContinuous:
		return true
	}
	return false
}

func (s *Server) models() []byte {
	b := []byte(`{"object":"list","data":[{"id":`)
	b = appendString(b, s.cfg.Model)
	return append(b, `,"object":"model","created":1767225600,"owned_by":"sim"}]}`...)
}
