package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ask is what a generating request asks for, in both dialects.
type ask struct {
	chat    bool
	id      string // of the answer
	model   string
	seed    uint64
	prompt  int // tokens
	stream  bool
	usage   bool // stream_options.include_usage
	limit   int  // tokens that may be generated
	bounded bool // the request set the limit
	endless bool // ignore_eos: generate up to the limit
	n       int
	stop    []string
	tools   []tool
	schema  json.RawMessage // JSON schema of the output, nil = free text
	top     int             // top log-probabilities a token; -1 = no log-probabilities
}

// tool is one function the model may call.
type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// body is the request body of both dialects, as far as the engine looks at it.
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

// parseAsk reads a request body.
func parseAsk(req Request, o Options) (ask, error) {
	var b body
	if err := json.Unmarshal(req.Body, &b); err != nil {
		return ask{}, fmt.Errorf("read request body: %w", err)
	}
	a := ask{
		chat: req.Path() == "/v1/chat/completions", model: b.Model, stream: b.Stream, usage: b.StreamOptions.IncludeUsage,
		n: 1, endless: b.IgnoreEOS, stop: stringOrList(b.Stop), top: -1, limit: o.Answer,
	}
	if a.chat && len(b.Messages) == 0 {
		return a, errors.New("messages must not be empty")
	}
	if !a.chat && len(b.Prompt) == 0 {
		return a, errors.New("prompt is missing")
	}
	for _, limit := range []*int{b.MaxTokens, b.MaxCompletionTokens} {
		if limit != nil {
			a.limit, a.bounded = *limit, true
		}
	}
	if b.N != nil {
		a.n = *b.N
	}
	if a.limit < 1 || a.n < 1 || a.n > 128 {
		return a, errors.New("max_tokens and n must be at least 1, n at most 128")
	}
	a.prompt = b.promptTokens()
	a.chooseTools(b, o)
	a.chooseFormat(b)
	a.seed = seedOf(req, o)
	a.id = answerID(a.chat, a.seed)
	return a, nil
}

// chooseTools keeps the tools that may be called now.
func (a *ask) chooseTools(b body, o Options) {
	if o.Tools == ToolsOff || len(b.Tools) == 0 || string(b.ToolChoice) == `"none"` {
		return
	}
	if len(b.Messages) > 0 && b.Messages[len(b.Messages)-1].Role == "tool" {
		return // the result of a call is answered in words, so that an agent's loop ends
	}
	a.tools = b.Tools
	var named tool
	if json.Unmarshal(b.ToolChoice, &named) == nil && named.Function.Name != "" {
		a.tools = slices.DeleteFunc(slices.Clone(b.Tools), func(t tool) bool { return t.Function.Name != named.Function.Name })
	}
}

// chooseFormat reads the output format and the log-probabilities asked for.
func (a *ask) chooseFormat(b body) {
	switch b.ResponseFormat.Type {
	case "json_schema":
		a.schema = b.ResponseFormat.JSONSchema.Schema
	case "json_object":
		a.schema = json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}}}`)
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

// promptTokens counts by the rule of the package: blank-separated words of all texts, at least one.
func (b body) promptTokens() int {
	n := 0
	for _, m := range b.Messages {
		for _, text := range texts(m.Content) {
			n += len(strings.Fields(text))
		}
	}
	for _, text := range stringOrList(b.Prompt) {
		n += len(strings.Fields(text))
	}
	return max(n, 1)
}

// texts are the texts of a message content: a string, or a list of parts.
func texts(content json.RawMessage) []string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []string{s}
	}
	var parts []struct {
		Text string `json:"text"`
	}
	var out []string
	if json.Unmarshal(content, &parts) == nil {
		for _, p := range parts {
			out = append(out, p.Text)
		}
	}
	return out
}

// stringOrList reads a string or a list of strings; anything else is none.
func stringOrList(raw json.RawMessage) []string {
	var s string
	if json.Unmarshal(raw, &s) == nil && s != "" {
		return []string{s}
	}
	var list []string
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// seedOf is the seed of an answer: path and body, without the wish for a stream, so that both forms say the same.
func seedOf(req Request, o Options) uint64 {
	h := sha256.New()
	h.Write([]byte(req.Path() + "\n"))
	var fields map[string]json.RawMessage
	if json.Unmarshal(req.Body, &fields) == nil {
		delete(fields, "stream")
		delete(fields, "stream_options")
		for _, k := range slices.Sorted(maps.Keys(fields)) {
			var compact bytes.Buffer
			_ = json.Compact(&compact, fields[k]) // it was parsed already
			fmt.Fprintf(h, "%q:%s\n", k, compact.Bytes())
		}
	}
	seed := binary.BigEndian.Uint64(h.Sum(nil)) ^ o.Seed*0x9E3779B97F4A7C15
	if o.Varied {
		seed += uint64(req.Seq) * 0xBF58476D1CE4E5B9
	}
	return seed
}

// answerID is the id of an answer: a function of its seed.
func answerID(chat bool, seed uint64) string {
	if chat {
		return fmt.Sprintf("chatcmpl-%016x", seed)
	}
	return fmt.Sprintf("cmpl-%016x", seed)
}
