package bridge

import (
	"encoding/json"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/wire"
)

const chatPath = "/v1/chat/completions"

// writeChat makes a body of /v1/chat/completions.
func writeChat(w *writer, q *Request) (target string, body object) {
	body.put("model", q.Model)
	var messages []object
	for _, m := range q.Messages {
		messages = append(messages, w.chatMessages(m)...)
	}
	body.put("messages", list(messages))
	if q.Stream {
		body.put("stream", true)
		if q.Usage {
			body.put("stream_options", object{{"include_usage", json.RawMessage("true")}})
		}
	}
	body.putValue(w.to.limit(), q.Limit)
	w.sampling(&body, q, w.chatNames())
	if len(q.Stop.Texts) > 0 {
		body.put("stop", q.Stop.Texts)
	}
	w.functionTools(&body, q)
	w.chatChoice(&body, q)
	w.chatFormat(&body, q.Format)
	w.chatThinking(&body, q.Thinking)
	return chatPath, body
}

// list is a list that is never null.
func list(os []object) []object {
	if os == nil {
		return []object{}
	}
	return os
}

// hostedLacks are the options of chat that only engines have which are run at home.
var hostedLacks = []Option{OptionTopK, OptionMinP, OptionRepetition}

// chatNames are the options of chat as the target spells them. A hosted API takes no others than its own.
func (w *writer) chatNames() map[Option]string {
	names := map[Option]string{}
	for _, o := range options {
		names[o] = string(o)
	}
	switch {
	case w.to.Repetition == engines.RepetitionNone:
		delete(names, OptionRepetition)
	case w.to.Repetition != "":
		names[OptionRepetition] = w.to.Repetition
	}
	if w.to.Hosted {
		for _, o := range hostedLacks {
			delete(names, o)
		}
	}
	return names
}

// chatMessages are the messages of chat that say a message: one, and one for each result of a call.
func (w *writer) chatMessages(m Message) []object {
	switch m.Role {
	case RoleTool:
		var out []object
		for _, p := range m.Parts {
			o := object{}
			o.put("role", "tool")
			o.put("tool_call_id", p.Result.ID)
			w.failed(p)
			w.orphan(p)
			o.put("content", w.chatContent(w.onlyText(p.Result.Parts)))
			out = append(out, o)
		}
		return out
	case RoleAssistant:
		return []object{w.chatAnswer(m)}
	}
	o := object{}
	o.put("role", m.Role)
	o.put("content", w.chatContent(m.Parts))
	return []object{o}
}

// failed loses the mark of a tool that failed, in dialects without one. What it said stays.
func (w *writer) failed(p Part) {
	if p.Result.Error {
		w.lose(p.Path, nil, "the mark that the tool failed has no place in "+string(w.to.Dialect))
	}
}

// chatContent is one text, or a list of parts.
func (w *writer) chatContent(parts []Part) json.RawMessage {
	if text, whole := textOf(parts); whole {
		return encode(text)
	}
	out := []object{}
	for _, p := range parts {
		o := object{}
		switch p.Kind {
		case PartText:
			o.put("type", "text")
			o.put("text", p.Text)
		case PartImage:
			o.put("type", "image_url")
			url := object{}
			url.put("url", p.Media.address())
			o.put("image_url", url)
		default:
			w.lose(p.Path, nil, w.noPlace())
			continue
		}
		out = append(out, o)
	}
	return encode(out)
}

// address is an image as an address, which holds the data where there is no other.
func (m Media) address() string {
	if m.URL != "" {
		return m.URL
	}
	return "data:" + m.Type + ";base64," + m.Data
}

func (w *writer) chatAnswer(m Message) object {
	o := object{}
	o.put("role", "assistant")
	var texts []Part
	var thinking string
	calls := []object{}
	for _, p := range m.Parts {
		switch p.Kind {
		case PartThinking:
			w.foreign(p)
			if w.to.Hosted {
				w.lose(p.Path, encode(p.Text), "the API takes no thinking back")
				continue
			}
			thinking += p.Text
		case PartCall:
			w.foreign(p)
			calls = append(calls, chatCall(p.Call))
		default:
			texts = append(texts, p)
		}
	}
	if len(texts) > 0 || len(calls) == 0 {
		o.put("content", w.chatContent(texts))
	} else {
		o.put("content", nil)
	}
	o.putText("reasoning_content", thinking)
	if len(calls) > 0 {
		o.put("tool_calls", calls)
	}
	return o
}

// chatCall is a call whose arguments are a text.
func chatCall(c Call) object {
	fn, o := object{}, object{}
	fn.put("name", c.Name)
	fn.put("arguments", string(c.Arguments))
	o.put("id", c.ID)
	o.put("type", "function")
	o.put("function", fn)
	return o
}

// functionTools puts tools in the form that chat and Ollama share.
func (w *writer) functionTools(body *object, q *Request) {
	var out []object
	for _, t := range q.Tools {
		fn, o := object{}, object{}
		fn.put("name", t.Name)
		fn.putText("description", t.Description)
		fn.put("parameters", t.parameters())
		switch {
		case t.Strict && w.to.Dialect == wire.DialectOllama:
			w.lose(below(t.Path, "strict"), json.RawMessage("true"), w.noPlace())
		case t.Strict:
			fn.put("strict", true)
		}
		o.put("type", "function")
		o.put("function", fn)
		out = append(out, o)
	}
	if len(out) > 0 {
		body.put("tools", out)
	}
}

func (w *writer) chatChoice(body *object, q *Request) {
	switch q.Choice.Mode {
	case "":
	case ChoiceNamed:
		fn, o := object{}, object{}
		fn.put("name", q.Choice.Name)
		o.put("type", "function")
		o.put("function", fn)
		body.put("tool_choice", o)
	default:
		body.put("tool_choice", q.Choice.Mode)
	}
	if q.Serial.Raw != nil {
		body.put("parallel_tool_calls", false)
	}
}

func (w *writer) chatFormat(body *object, f Format) {
	o := object{}
	switch {
	case !f.JSON:
		return
	case f.Schema == nil:
		o.put("type", "json_object")
	default:
		s := object{}
		name := f.Name
		if name == "" {
			name = defaultFormatName
		}
		s.put("name", name)
		if f.Strict {
			s.put("strict", true)
		}
		s.put("schema", f.Schema)
		o.put("type", "json_schema")
		o.put("json_schema", s)
	}
	body.put("response_format", o)
}

// chatThinking turns thinking on or off as the engine spells it in chat. Where nothing says how, a word for how much is
// the only one there is.
func (w *writer) chatThinking(body *object, t Thinking) {
	if t.Budget.Raw != nil && len(w.to.Budgets) > 0 {
		body.merge(nested(w.to.Budgets[0], t.Budget.Raw))
	} else {
		w.loseValue(t.Budget, w.noPlace())
	}
	o, known := parseObject(w.to.thinking(t.Mode))
	switch {
	case t.Mode == Off && !known && w.to.Hosted:
		body.put("reasoning_effort", "none")
	case t.Effort != "":
		field := "reasoning_effort"
		if len(w.to.Efforts) > 0 {
			field = w.to.Efforts[0]
		}
		word := nested(field, encode(t.Effort))
		body.merge(word)
		body.merge(o)
		body.merge(word) // it says more than a switch of the same name
	case t.Mode != "" && known:
		body.merge(o)
	case t.Mode != "":
		w.lose(t.Path, encode(t.Mode), "nothing is known of how this engine turns thinking "+string(t.Mode))
	}
}

// thinking is the object that turns thinking on or off; nil when nothing is known of it.
func (e Endpoint) thinking(mode Switch) json.RawMessage {
	if mode == Off {
		return e.ThinkingOff
	}
	return e.ThinkingOn
}

// nested is an object that holds a value at a path whose dots lead into objects.
func nested(path string, value json.RawMessage) object {
	name, rest, deeper := strings.Cut(path, ".")
	if deeper {
		value = encode(nested(rest, value))
	}
	return object{{name, value}}
}
