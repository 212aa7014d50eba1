package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Talks reports whether answers of a dialect can be put into the next turn of a conversation.
func Talks(d wire.Dialect) bool { return writerOf(d) != nil }

// Said is an answer as the message of a conversation.
type Said struct {
	Message json.RawMessage
	Calls   []Call // without arguments
}

var errUnreadable = errors.New("the answer has a content coding and cannot be put into the next turn")

// Answer is the message that a complete answer becomes. Where an engine signs what it thought, or parts of what it said,
// the message holds all that as it came: it wants it back.
func Answer(d wire.Dialect, x *exchange.Exchange, t *wire.Transcript) (Said, error) {
	c := t.Choice0()
	said := Said{}
	for _, call := range c.ToolCalls {
		said.Calls = append(said.Calls, Call{ID: call.ID, Name: call.Name})
	}
	if t.Coding != "" && (d == wire.DialectAnthropic || d == wire.DialectGemini) {
		return said, errUnreadable
	}
	switch d {
	case wire.DialectAnthropic:
		blocks, calls := anthropicAnswer(framesOf(x))
		said.Message, said.Calls = encode(anthropicTurn("assistant", encode(blocks))), calls
	case wire.DialectGemini:
		o := object{}
		o.put("role", "model")
		o.put("parts", geminiAnswer(framesOf(x)))
		said.Message = encode(o)
	case wire.DialectOllama:
		said.Message = encode(ollamaAnswer(c))
	default:
		said.Message = encode(chatAnswer(c))
	}
	return said, nil
}

// chatAnswer is an answer of chat, without what was thought before it.
func chatAnswer(c wire.Choice) object {
	o := object{}
	o.put("role", "assistant")
	if c.Text != "" || len(c.ToolCalls) == 0 {
		o.put("content", c.Text)
	} else {
		o.put("content", nil)
	}
	var calls []object
	for _, k := range c.ToolCalls {
		calls = append(calls, chatCall(Call{ID: k.ID, Name: k.Name, Arguments: json.RawMessage(k.Arguments)}))
	}
	if len(calls) > 0 {
		o.put("tool_calls", calls)
	}
	return o
}

// ollamaAnswer is an answer of Ollama, whose arguments are objects.
func ollamaAnswer(c wire.Choice) object {
	o := object{}
	o.put("role", "assistant")
	o.put("content", c.Text)
	o.putText("thinking", c.Reasoning)
	var calls []object
	for _, k := range c.ToolCalls {
		fn, call := object{}, object{}
		fn.put("name", k.Name)
		args := json.RawMessage(k.Arguments)
		if _, ok := parseObject(args); !ok {
			args = json.RawMessage("{}")
		}
		fn.put("arguments", args)
		call.putText("id", k.ID)
		call.put("function", fn)
		calls = append(calls, call)
	}
	if len(calls) > 0 {
		o.put("tool_calls", calls)
	}
	return o
}

// framesOf are the JSON objects of a response body, whatever its framing.
func framesOf(x *exchange.Exchange) []object {
	kind, _ := exchange.HeaderValue(x.Response.Headers, "Content-Type")
	var out []object
	f := wire.NewFramer(kind, func(fr wire.Frame) {
		if o, ok := parseObject(bytes.Clone(fr.Data)); ok {
			out = append(out, o)
		}
	})
	for _, chunk := range x.Response.Body.Chunks {
		f.Feed(chunk, 0)
	}
	f.Finish(true)
	return out
}

// get is the value of a name, nil when there is none.
func (o object) get(name string) json.RawMessage {
	for _, m := range slices.Backward(o) {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// inner is an object within an object, empty when there is none.
func (o object) inner(name string) object {
	in, _ := parseObject(o.get(name))
	return in
}

// text is a string within an object.
func (o object) text(name string) string {
	s, _ := parseText(o.get(name))
	return s
}

// set gives a name its value, in the place it has.
func (o *object) set(name string, v any) {
	for i := range *o {
		if (*o)[i].name == name {
			(*o)[i].value = encode(v)
			return
		}
	}
	o.put(name, v)
}

// openBlock is a content block of a stream.
type openBlock struct {
	index   string
	block   object
	input   []byte
	written map[string]string // texts that deltas add to
}

// anthropicAnswer puts the content blocks of an answer together, and names its calls.
func anthropicAnswer(events []object) (blocks []object, calls []Call) {
	blocks = []object{}
	var open []*openBlock
	for _, e := range events {
		switch e.text("type") {
		case "message":
			list, _ := parseArray(e.get("content"))
			for _, raw := range list {
				block, _ := parseObject(raw)
				open = append(open, &openBlock{block: block})
			}
		case "content_block_start":
			open = append(open, &openBlock{index: string(e.get("index")), block: e.inner("content_block"), written: map[string]string{}})
		case "content_block_delta":
			index := string(e.get("index"))
			if i := slices.IndexFunc(open, func(b *openBlock) bool { return b.index == index }); i >= 0 {
				open[i].add(e.inner("delta"))
			}
		}
	}
	for _, b := range open {
		block := b.whole()
		kind := block.text("type")
		if kind == "text" && block.text("text") == "" {
			continue // the API refuses it
		}
		if kind == "tool_use" {
			calls = append(calls, Call{ID: block.text("id"), Name: block.text("name")})
		}
		blocks = append(blocks, block)
	}
	return blocks, calls
}

func (b *openBlock) add(delta object) {
	for _, name := range []string{"text", "thinking", "signature"} {
		if s := delta.text(name); s != "" {
			b.written[name] += s
		}
	}
	b.input = append(b.input, delta.text("partial_json")...)
}

func (b *openBlock) whole() object {
	for _, name := range []string{"text", "thinking", "signature"} {
		if s := b.written[name]; s != "" {
			b.block.set(name, b.block.text(name)+s)
		}
	}
	if len(b.input) > 0 && json.Valid(b.input) {
		b.block.set("input", json.RawMessage(b.input))
	}
	return b.block
}

// geminiAnswer puts the parts of an answer together. Texts that follow each other are one; a part with anything besides
// its text, such as a signature, stays one of its own.
func geminiAnswer(chunks []object) []object {
	out := []object{}
	plain := false // the last part is text alone
	for _, c := range chunks {
		candidates, _ := parseArray(c.get("candidates"))
		if len(candidates) == 0 {
			continue
		}
		first, _ := parseObject(candidates[0])
		parts, _ := parseArray(first.inner("content").get("parts"))
		for _, raw := range parts {
			p, ok := parseObject(raw)
			if !ok {
				continue
			}
			text, isText := parseText(p.get("text"))
			thought := string(p.get("thought")) == "true"
			bare := isText && len(p) == map[bool]int{true: 2, false: 1}[thought]
			switch n := len(out); {
			case bare && text == "":
				continue
			case bare && plain && thought == (string(out[n-1].get("thought")) == "true"):
				out[n-1].set("text", out[n-1].text("text")+text)
			default:
				out = append(out, p)
			}
			plain = bare
		}
	}
	return out
}
