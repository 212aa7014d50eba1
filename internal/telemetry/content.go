package telemetry

import (
	"encoding/json"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// maxContent bounds the texts of one attribute, in bytes; what is over it is left out, and the place says so. The whole is
// in the record.
const maxContent = 16 << 10

// askedTexts are the texts of a request, by the names of the APIs.
type askedTexts struct {
	Messages     json.RawMessage `json:"messages"`     // chat, Anthropic, Ollama
	Input        json.RawMessage `json:"input"`        // Responses: a text or a list
	Prompt       json.RawMessage `json:"prompt"`       // completions, Ollama
	System       json.RawMessage `json:"system"`       // Anthropic
	Instructions json.RawMessage `json:"instructions"` // Responses
	Tools        json.RawMessage `json:"tools"`
}

// part and message are the forms of the conventions.
type part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Result    string `json:"result,omitempty"`
}

type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

// budget is what is left of the bound on texts.
type budget int

// text is s with credentials masked, as far as the budget goes.
func (b *budget) text(s string) string {
	s = redact.Text(cut(s, max(int(*b), 0)))
	*b -= budget(len(s))
	return s
}

// tellContent adds the texts of an exchange to its client span, where that is asked for.
func (t *Tracing) tellContent(s *span, x *exchange.Exchange, a *measure.Analysis) {
	c := t.o.Settings.Content
	if !c.Span && !c.Event {
		return
	}
	texts := contentOf(x, a)
	if c.Span {
		s.attrs = append(s.attrs, texts...)
	}
	if c.Event && len(texts) > 0 {
		s.events = append(s.events, sdktrace.Event{Name: eventContent, Time: s.end, Attributes: texts})
	}
}

// contentOf are the texts of an exchange as attributes.
func contentOf(x *exchange.Exchange, a *measure.Analysis) (out attributes) {
	var q askedTexts
	_ = json.Unmarshal(bodyOf(x), &q) // of a body that is none, nothing is told
	left := budget(maxContent)
	input := left.messages(or(q.Messages, q.Input))
	if len(input) == 0 {
		for _, p := range left.parts(or(q.Prompt)) {
			input = append(input, message{Role: "user", Parts: []part{p}})
		}
	}
	out.json(aiInputMessages, input)
	left = maxContent
	out.json(aiSystem, left.parts(or(q.System, q.Instructions)))
	if tools := or(q.Tools); tools != nil && len(tools) <= maxContent { // a list that is cut is no list
		out.long(aiTools, redact.Text(string(tools)))
	}
	left = maxContent
	out.json(aiOutputMessages, left.answers(a.Transcript))
	return out
}

// json adds a list as JSON, unless it is empty.
func (a *attributes) json(name string, v any) {
	b, err := json.Marshal(v)
	if err == nil && string(b) != "null" && string(b) != "[]" {
		a.long(name, string(b))
	}
}

// messages reads a list of messages, or a text as one of the user.
func (b *budget) messages(raw json.RawMessage) (out []message) {
	var list []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Calls   []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		CallID string `json:"tool_call_id"`
	}
	if raw == nil || json.Unmarshal(raw, &list) != nil {
		if ps := b.parts(raw); len(ps) > 0 {
			out = append(out, message{Role: "user", Parts: ps})
		}
		return out
	}
	for _, m := range list {
		if *b <= 0 {
			break
		}
		one := message{Role: cut(m.Role, maxName), Parts: b.parts(m.Content)}
		if m.CallID != "" {
			for i := range one.Parts {
				one.Parts[i] = part{Type: "tool_call_response", ID: cut(m.CallID, maxName), Result: one.Parts[i].Content}
			}
		}
		for _, c := range m.Calls {
			one.Parts = append(one.Parts, part{Type: "tool_call", ID: cut(c.ID, maxName), Name: cut(c.Function.Name, maxName), Arguments: b.text(plain(c.Function.Arguments))})
		}
		out = append(out, one)
	}
	return out
}

// parts reads a text, or a list of parts of which those that are no text are told by their type alone.
func (b *budget) parts(raw json.RawMessage) (out []part) {
	var one string
	if raw == nil {
		return nil
	}
	if json.Unmarshal(raw, &one) == nil {
		if one != "" {
			out = append(out, part{Type: "text", Content: b.text(one)})
		}
		return out
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, raw := range list {
		if *b <= 0 {
			break
		}
		var p struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		switch {
		case json.Unmarshal(raw, &one) == nil:
			out = append(out, part{Type: "text", Content: b.text(one)})
		case json.Unmarshal(raw, &p) != nil:
		case p.Text != "":
			out = append(out, part{Type: "text", Content: b.text(p.Text)})
		default:
			out = append(out, part{Type: cut(p.Type, maxName)})
		}
	}
	return out
}

// plain is a JSON string as its text, and any other value as it stands.
func plain(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// answers are the choices of an answer.
func (b *budget) answers(t *wire.Transcript) (out []message) {
	for i := range t.Choices {
		c := &t.Choices[i]
		m := message{Role: "assistant", Parts: []part{}}
		for _, p := range []part{{Type: "reasoning", Content: c.Reasoning}, {Type: "text", Content: c.Text}, {Type: "text", Content: c.Refusal}} {
			if p.Content != "" {
				m.Parts = append(m.Parts, part{Type: p.Type, Content: b.text(p.Content)})
			}
		}
		for _, call := range c.ToolCalls {
			m.Parts = append(m.Parts, part{Type: "tool_call", ID: cut(call.ID, maxName), Name: cut(call.Name, maxName), Arguments: b.text(call.Arguments)})
		}
		if c.FinishReason != nil {
			m.Finish = cut(*c.FinishReason, maxName)
		}
		if out = append(out, m); *b <= 0 {
			break
		}
	}
	return out
}
