package sim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
)

// messagesDialect is Anthropic's /v1/messages.
var messagesDialect = dialect{
	prefix: "msg_", mime: mimeSSE, ping: "event: ping\ndata: {\"type\":\"ping\"}\n\n",
	parse: parseMessages, stream: streamMessages, plain: plainMessages, refuse: refuseMessages,
	breakup: func(int) []byte { return namedSSE("error", refuseMessages(529, "", lostModel)) },
}

// messagesBody is a request body, as far as the engine looks at it.
type messagesBody struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	System        json.RawMessage `json:"system"`
	MaxTokens     *int            `json:"max_tokens"`
	Stream        bool            `json:"stream"`
	StopSequences []string        `json:"stop_sequences"`
	Tools         []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	Thinking struct {
		Type string `json:"type"`
	} `json:"thinking"`
}

// messagesPart is one part of a message's content.
type messagesPart struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"` // of a tool result
}

func parseMessages(req Request, o Options) (ask, error) {
	var b messagesBody
	if err := readBody(req, &b); err != nil {
		return ask{}, err
	}
	a := newAsk(o)
	a.model, a.stream, a.stop = b.Model, b.Stream, b.StopSequences
	a.thinking = b.Thinking.Type == "enabled" || b.Thinking.Type == "adaptive"
	if len(b.Messages) == 0 {
		return a, errors.New("messages: at least one message is required")
	}
	if b.MaxTokens == nil {
		return a, errors.New("max_tokens: field required")
	}
	a.bound(b.MaxTokens)
	wish := toolWish{forbid: b.ToolChoice.Type == "none", named: b.ToolChoice.Name}
	a.prompt = words(texts(b.System)...)
	for _, m := range b.Messages {
		a.prompt += words(texts(m.Content)...)
		wish.answered = false
		var parts []messagesPart
		if json.Unmarshal(m.Content, &parts) != nil {
			continue // plain text
		}
		for _, part := range parts {
			a.prompt += words(texts(part.Content)...)
			wish.answered = wish.answered || part.Type == "tool_result"
		}
	}
	for _, t := range b.Tools {
		wish.tools = append(wish.tools, newTool(t.Name, t.InputSchema))
	}
	a.offer(wish, o)
	return a, nil
}

// streamMessages writes the message's opening, each block, and the stop reason with the usage.
func streamMessages(p *answerPlan, w *scribe) {
	opening := p.message(array{}, nil, nil)
	if p.Options.Usage != UsageNone {
		opening = opening.with(member{"usage", p.messageUsage(1)})
	}
	w.add(p.opening(), messageEvent("message_start", member{"message", opening}), 0)
	for i, b := range p.blocks(0) {
		p.messageBlock(w, i, b)
	}
	reason, sequence := p.stopReason()
	end := []member{{"delta", object{{"stop_reason", reason}, {"stop_sequence", sequence}}}}
	if p.Options.Usage != UsageNone {
		usage := object{{"output_tokens", p.total.Completion}}
		if p.total.Reasoning > 0 {
			usage = usage.with(p.thinkingTokens())
		}
		end = append(end, member{"usage", usage})
	}
	w.add(p.last, messageEvent("message_delta", end...), 0)
	w.add(p.last, messageEvent("message_stop"), 0)
}

// messageEvent is one event; its name repeats its type.
func messageEvent(kind string, members ...member) []byte {
	return namedSSE(kind, encode(object{{"type", kind}}.with(members...)))
}

// messageBlock writes one content block. The opening of a tool's block is where its name is told; the first piece of
// its input is an empty one.
func (p *answerPlan) messageBlock(w *scribe, index int, b block) {
	at := member{"index", index}
	delta := func(kind, key, text string) []byte {
		return messageEvent("content_block_delta", at, member{"delta", object{{"type", kind}, {key, text}}})
	}
	open, opened := object{{"type", "text"}, {"text", ""}}, 0
	kind, key := "text_delta", "text"
	switch b.kind {
	case kindReasoning:
		open = object{{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}
		kind, key = "thinking_delta", "thinking"
	case kindCall:
		open = object{{"type", "tool_use"}, {"id", p.callID(0, b.call)}, {"name", b.name}, {"input", object{}}}
		opened = 1
		kind, key = "input_json_delta", "partial_json"
	}
	w.add(b.begin(), messageEvent("content_block_start", at, member{"content_block", open}), opened)
	if b.kind == kindCall {
		w.add(b.begin(), delta(kind, key, ""), 0)
	}
	for _, e := range b.events {
		if name, text := e.parts(); text != "" {
			n := len(e.tokens)
			if name != "" {
				n -= opened
			}
			w.add(e.at, delta(kind, key, text), n)
		}
	}
	if b.kind == kindReasoning {
		w.add(b.end(), delta("signature_delta", "signature", p.signature()), 0)
	}
	w.add(b.end(), messageEvent("content_block_stop", at), 0)
}

// message is the message object, without its usage.
func (p *answerPlan) message(content array, reason, sequence any) object {
	return object{
		{"id", p.id}, {"type", "message"}, {"role", "assistant"}, {"model", p.model}, {"content", content},
		{"stop_reason", reason}, {"stop_sequence", sequence},
	}
}

// messageUsage counts the cached part of the prompt apart from the rest, as the dialect does.
func (p *answerPlan) messageUsage(output int) object {
	return object{
		{"input_tokens", p.total.Prompt - p.total.Cached}, {"cache_creation_input_tokens", 0},
		{"cache_read_input_tokens", p.total.Cached}, {"output_tokens", output},
	}
}

func (p *answerPlan) thinkingTokens() member {
	return member{"output_tokens_details", object{{"thinking_tokens", p.total.Reasoning}}}
}

// signature is what a client must hand back with the thinking.
func (p *answerPlan) signature() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, p.seed))
}

// stopReason is the reason in the dialect's words, and the stop string that was met or null.
func (p *answerPlan) stopReason() (reason string, sequence any) {
	c := p.choices[0]
	switch {
	case c.stopped != "":
		return "stop_sequence", c.stopped
	case c.finish == "length":
		return "max_tokens", nil
	case c.finish == "tool_calls":
		return "tool_use", nil
	}
	return "end_turn", nil
}

func plainMessages(p *answerPlan) []byte {
	content := array{}
	for _, b := range p.blocks(0) {
		switch b.kind {
		case kindReasoning:
			content = append(content, object{{"type", "thinking"}, {"thinking", b.text}, {"signature", p.signature()}})
		case kindText:
			content = append(content, object{{"type", "text"}, {"text", b.text}})
		default:
			content = append(content, object{
				{"type", "tool_use"}, {"id", p.callID(0, b.call)}, {"name", b.name}, {"input", b.arguments()},
			})
		}
	}
	reason, sequence := p.stopReason()
	m := p.message(content, reason, sequence)
	if p.Options.Usage == UsageNone {
		return encode(m)
	}
	usage := p.messageUsage(p.total.Completion)
	if p.total.Reasoning > 0 {
		usage = usage.with(p.thinkingTokens())
	}
	return encode(m.with(member{"usage", usage}))
}

// refuseMessages is an error in Anthropic's form, whose types follow from the status.
func refuseMessages(status int, _, message string) []byte {
	kind := "api_error"
	switch status {
	case 400, 405:
		kind = "invalid_request_error"
	case 401:
		kind = "authentication_error"
	case 403:
		kind = "permission_error"
	case 404:
		kind = "not_found_error"
	case 413:
		kind = "request_too_large"
	case 429:
		kind = "rate_limit_error"
	case 529:
		kind = "overloaded_error"
	}
	return encode(object{{"type", "error"}, {"error", object{{"type", kind}, {"message", message}}}})
}

// messagesModels is the listing that Anthropic's clients read at /v1/models.
func (s *Server) messagesModels() []byte {
	id := s.cfg.Model
	return encode(object{
		{"data", array{object{{"type", "model"}, {"id", id}, {"display_name", id}, {"created_at", stampAt(0)}}}},
		{"has_more", false}, {"first_id", id}, {"last_id", id},
	})
}
