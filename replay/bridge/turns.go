package bridge

import (
	"encoding/json"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// Turn is a message of a request, as far as a conversation goes on from it.
type Turn struct {
	Path      string // of the message
	Assistant bool   // the model said it
	Calls     []Call // without arguments
	Results   []ResultAt
}

// ResultAt is where the result of a call names the call.
type ResultAt struct {
	ID   string // "" when it names none
	Path string // of the id, which need not be there
}

// Turns are the messages of a request, in order; none when the body is no request of the dialect.
func Turns(d wire.Dialect, body []byte) []Turn {
	o, _ := parseObject(body)
	name := "messages"
	if d == wire.DialectGemini {
		name = "contents"
	}
	list, _ := parseArray(o.get(name))
	out := make([]Turn, 0, len(list))
	for i, raw := range list {
		m, _ := parseObject(raw)
		t := Turn{Path: at(name, i)}
		switch d {
		case wire.DialectAnthropic:
			t.anthropic(m)
		case wire.DialectGemini:
			t.gemini(m)
		default:
			t.chat(m)
		}
		out = append(out, t)
	}
	return out
}

// chat reads a message of chat or Ollama.
func (t *Turn) chat(m object) {
	role := m.text("role")
	t.Assistant = role == "assistant"
	if role == "tool" {
		t.Results = []ResultAt{{m.text("tool_call_id"), below(t.Path, "tool_call_id")}}
	}
	t.each(m.get("tool_calls"), func(c object, _ string) {
		t.Calls = append(t.Calls, Call{ID: c.text("id"), Name: c.inner("function").text("name")})
	}, "tool_calls")
}

func (t *Turn) anthropic(m object) {
	t.Assistant = m.text("role") == "assistant"
	t.each(m.get("content"), func(b object, path string) {
		switch b.text("type") {
		case "tool_use":
			t.Calls = append(t.Calls, Call{ID: b.text("id"), Name: b.text("name")})
		case "tool_result":
			t.Results = append(t.Results, ResultAt{b.text("tool_use_id"), below(path, "tool_use_id")})
		}
	}, "content")
}

func (t *Turn) gemini(m object) {
	t.Assistant = m.text("role") == "model"
	t.each(m.get("parts"), func(p object, path string) {
		if c := p.inner("functionCall"); len(c) > 0 {
			t.Calls = append(t.Calls, Call{ID: c.text("id"), Name: c.text("name")})
		}
		if r := p.inner("functionResponse"); len(r) > 0 {
			t.Results = append(t.Results, ResultAt{r.text("id"), below(below(path, "functionResponse"), "id")})
		}
	}, "parts")
}

// each gives the objects of a list of the message.
func (t *Turn) each(raw json.RawMessage, do func(o object, path string), name string) {
	list, _ := parseArray(raw)
	for i, v := range list {
		if o, ok := parseObject(v); ok {
			do(o, at(below(t.Path, name), i))
		}
	}
}
