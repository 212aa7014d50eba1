package bridge

import (
	"encoding/json"
	"slices"
	"strconv"
)

const (
	anthropicPath    = "/v1/messages"
	anthropicVersion = "2023-06-01"
	// anthropicLimit is the output limit of a request that has none: the API asks for one.
	anthropicLimit = "4096"
	// anthropicBudget is the smallest budget of thinking that the API takes.
	anthropicBudget = 1024
)

// ReasonLimit is the reason of the change that gives a request an output limit.
const ReasonLimit = "the API asks for a limit, and the request had none"

var anthropicNames = map[Option]string{OptionTemperature: "temperature", OptionTopP: "top_p", OptionTopK: "top_k"}

// writeAnthropic makes a body of /v1/messages.
func writeAnthropic(w *writer, q *Request) (target string, body object) {
	w.headers = append(w.headers, member{"anthropic-version", json.RawMessage(anthropicVersion)})
	body.put("model", q.Model)
	limit := q.Limit
	if limit.Raw == nil {
		limit.Raw = json.RawMessage(anthropicLimit)
		w.tell("max_tokens", nil, anthropicLimit, ReasonLimit)
	}
	body.putValue("max_tokens", limit)
	system, rest := w.opening(q)
	if len(system) > 0 {
		body.put("system", w.anthropicContent(system))
	}
	body.put("messages", list(w.anthropicMessages(rest)))
	w.anthropicTools(&body, q)
	w.anthropicChoice(&body, q)
	w.anthropicSampling(&body, q)
	if len(q.Stop.Texts) > 0 {
		body.put("stop_sequences", q.Stop.Texts)
	}
	w.anthropicThinking(&body, q, limit)
	w.anthropicOutput(&body, q)
	if q.Stream {
		body.put("stream", true)
	}
	return anthropicPath, body
}

// anthropicSampling puts the options. A temperature ends at 1 there.
func (w *writer) anthropicSampling(body *object, q *Request) {
	w.sampling(body, q, anthropicNames)
	t, ok := q.Sampling[OptionTemperature]
	if n, err := strconv.ParseFloat(string(t.Raw), 64); ok && (err != nil || n > 1) {
		w.lose(t.Path, t.Raw, "the temperature ends at 1 there")
		*body = slices.DeleteFunc(*body, func(m member) bool { return m.name == string(OptionTemperature) })
	}
}

// anthropicMessages are the turns. Results of calls are said by the user, together with what the user says next.
func (w *writer) anthropicMessages(messages []Message) []object {
	var out []object
	var open []object // results that what the user says next goes with
	for _, m := range messages {
		role := "user"
		if m.Role == RoleAssistant {
			role = "assistant"
		}
		joins := open != nil && m.Role == RoleUser
		if text, whole := textOf(m.Parts); whole && !joins {
			out, open = append(out, anthropicTurn(role, encode(text))), nil
			continue
		}
		blocks := w.anthropicBlocks(m.Parts)
		if joins {
			blocks, out = append(open, blocks...), out[:len(out)-1]
		}
		out, open = append(out, anthropicTurn(role, encode(blocks))), nil
		if m.Role == RoleTool {
			open = blocks
		}
	}
	return out
}

func anthropicTurn(role string, content json.RawMessage) object {
	o := object{}
	o.put("role", role)
	o.put("content", content)
	return o
}

// anthropicContent is one text, or a list of blocks.
func (w *writer) anthropicContent(parts []Part) json.RawMessage {
	if text, whole := textOf(parts); whole {
		return encode(text)
	}
	return encode(w.anthropicBlocks(parts))
}

func (w *writer) anthropicBlocks(parts []Part) []object {
	out := []object{}
	for _, p := range parts {
		o := object{}
		switch p.Kind {
		case PartText:
			o.put("type", "text")
			o.put("text", p.Text)
		case PartImage:
			o.put("type", "image")
			o.put("source", p.Media.source())
		case PartThinking:
			w.lose(p.Path, encode(p.Text), "the API takes back its own thinking only, which it signed")
			continue
		case PartCall:
			w.foreign(p)
			o.put("type", "tool_use")
			o.put("id", w.id(p.Call.ID, p.Path))
			o.put("name", p.Call.Name)
			o.put("input", p.Call.Arguments)
		case PartResult:
			o.put("type", "tool_result")
			w.orphan(p)
			o.put("tool_use_id", w.id(p.Result.ID, p.Path))
			o.put("content", w.anthropicContent(p.Result.Parts))
			if p.Result.Error {
				o.put("is_error", true)
			}
		}
		out = append(out, o)
	}
	return out
}

func (m Media) source() object {
	o := object{}
	if m.URL != "" {
		o.put("type", "url")
		o.put("url", m.URL)
		return o
	}
	o.put("type", "base64")
	o.put("media_type", m.Type)
	o.put("data", m.Data)
	return o
}

func (w *writer) anthropicTools(body *object, q *Request) {
	var out []object
	for _, t := range q.Tools {
		o := object{}
		o.put("name", t.Name)
		o.putText("description", t.Description)
		o.put("input_schema", t.parameters())
		if t.Strict {
			o.put("strict", true)
		}
		out = append(out, o)
	}
	if len(out) > 0 {
		body.put("tools", out)
	}
}

// anthropicChoice puts the choice of tools, in which one call at a time is said too. A choice of none makes no call.
func (w *writer) anthropicChoice(body *object, q *Request) {
	o := object{}
	switch q.Choice.Mode {
	case ChoiceNone:
		o.put("type", "none")
		if q.Serial.Raw != nil {
			w.tell(q.Serial.Path, q.Serial.Raw, "", "no tool is called")
		}
		body.put("tool_choice", o)
		return
	case ChoiceRequired:
		o.put("type", "any")
	case ChoiceNamed:
		o.put("type", "tool")
		o.put("name", q.Choice.Name)
	case ChoiceAuto:
		o.put("type", "auto")
	default:
		if q.Serial.Raw == nil {
			return
		}
		if len(q.Tools) == 0 {
			w.tell(q.Serial.Path, q.Serial.Raw, "", "there is no tool")
			return
		}
		o.put("type", "auto")
	}
	if q.Serial.Raw != nil {
		o.put("disable_parallel_tool_use", true)
	}
	body.put("tool_choice", o)
}

// anthropicThinking puts the switch. Thinking that is on needs a budget below the output limit.
func (w *writer) anthropicThinking(body *object, q *Request, limit Value) {
	t := q.Thinking
	o := object{}
	switch {
	case t.Mode == Off:
		o.put("type", "disabled")
	case t.Mode == On && t.Effort != "" && t.Budget.Raw == nil:
		o.put("type", "adaptive")
	case t.Mode == On:
		budget := t.Budget
		if budget.Raw == nil {
			budget.Raw = encode(anthropicBudget)
		}
		if !lessThan(budget.Raw, limit.Raw) {
			w.lose(t.Path, budget.Raw, "the budget of thinking must be below max_tokens")
			return
		}
		if t.Budget.Raw == nil {
			w.tell(t.Path, nil, string(budget.Raw), "the API asks for a budget of thinking")
		}
		o.put("type", "enabled")
		o.put("budget_tokens", budget.Raw)
	default:
		return
	}
	body.put("thinking", o)
}

// lessThan compares whole numbers; what is none is not less.
func lessThan(a, b json.RawMessage) bool {
	x, errX := strconv.ParseInt(string(a), 10, 64)
	y, errY := strconv.ParseInt(string(b), 10, 64)
	return errX == nil && errY == nil && x < y
}

// anthropicOutput puts the effort and the format.
func (w *writer) anthropicOutput(body *object, q *Request) {
	o := object{}
	switch e := q.Thinking.Effort; e {
	case "":
	case "low", "medium", "high", "max":
		o.put("effort", e)
	default:
		w.lose(q.Thinking.Path, encode(e), "the API has no effort of that name")
	}
	switch f := q.Format; {
	case f.Schema != nil:
		s := object{}
		s.put("type", "json_schema")
		s.put("schema", w.supported(Value{f.Schema, f.Path}))
		o.put("format", s)
	case f.JSON:
		w.lose(f.Path, nil, "the API has no JSON without a schema")
	}
	if len(o) > 0 {
		body.put("output_config", o)
	}
}
