package bridge

const ollamaPath = "/api/chat"

var ollamaNames = map[Option]string{
	OptionTemperature: "temperature", OptionTopP: "top_p", OptionTopK: "top_k", OptionMinP: "min_p", OptionSeed: "seed",
	OptionFrequency: "frequency_penalty", OptionPresence: "presence_penalty", OptionRepetition: "repeat_penalty",
}

// writeOllama makes a body of /api/chat.
func writeOllama(w *writer, q *Request) (target string, body object) {
	body.put("model", q.Model)
	var messages []object
	for _, m := range q.Messages {
		messages = append(messages, w.ollamaMessages(m)...)
	}
	body.put("messages", list(messages))
	w.functionTools(&body, q)
	w.ollamaChoice(q)
	switch f := q.Format; {
	case f.Schema != nil:
		body.put("format", f.Schema)
	case f.JSON:
		body.put("format", "json")
	}
	w.ollamaOptions(&body, q)
	w.ollamaThinking(&body, q.Thinking)
	body.put("stream", q.Stream)
	return ollamaPath, body
}

// ollamaChoice loses every choice of tools but the one the engine makes itself.
func (w *writer) ollamaChoice(q *Request) {
	if c := q.Choice; c.Mode != "" && c.Mode != ChoiceAuto {
		w.lose(c.Path, encode(c.Mode), w.noPlace())
	}
	w.loseValue(q.Serial, w.noPlace())
}

// ollamaOptions puts the options, those of them that do not stand with the others beside them.
func (w *writer) ollamaOptions(body *object, q *Request) {
	o := object{}
	o.putValue("num_predict", q.Limit)
	rest := *q
	rest.Sampling = map[Option]Value{}
	for _, opt := range options {
		v, ok := q.Sampling[opt]
		if !ok {
			continue
		}
		if opt == OptionLogprobs || opt == OptionTopLogprobs {
			body.put(string(opt), v.Raw)
			continue
		}
		rest.Sampling[opt] = v
	}
	w.sampling(&o, &rest, ollamaNames)
	if len(q.Stop.Texts) > 0 {
		o.put("stop", q.Stop.Texts)
	}
	if len(o) > 0 {
		body.put("options", o)
	}
}

func (w *writer) ollamaThinking(body *object, t Thinking) {
	w.loseValue(t.Budget, w.noPlace())
	switch {
	case t.Mode == Off:
		body.put("think", false)
	case t.Effort == "low" || t.Effort == "medium" || t.Effort == "high":
		body.put("think", t.Effort)
	case t.Effort != "":
		w.lose(t.Path, encode(t.Effort), "there is no level of thinking of that name")
	case t.Mode == On:
		body.put("think", true)
	}
}

// ollamaMessages are the messages that say a message: one, one for each result of a call, and one for each text of the
// system, which the engine joins.
func (w *writer) ollamaMessages(m Message) []object {
	switch m.Role {
	case RoleSystem:
		var out []object
		for _, p := range w.onlyText(m.Parts) {
			o := object{}
			o.put("role", "system")
			o.put("content", p.Text)
			out = append(out, o)
		}
		return out
	case RoleTool:
		var out []object
		for _, p := range m.Parts {
			w.failed(p)
			o := object{}
			o.put("role", "tool")
			o.put("content", w.joined(w.onlyText(p.Result.Parts), p.Path))
			o.putText("tool_name", p.Result.Name)
			o.putText("tool_call_id", p.Result.ID)
			out = append(out, o)
		}
		return out
	}
	return []object{w.ollamaTurn(m)}
}

// joined is the one text of a message.
func (w *writer) joined(parts []Part, path string) string {
	text, whole := textOf(parts)
	if !whole {
		w.tell(path, nil, "", "texts are joined")
	}
	return text
}

// ollamaTurn is what the user or the model says. Images stand before the text.
func (w *writer) ollamaTurn(m Message) object {
	var texts []Part
	var images []string
	var calls []object
	thinking := ""
	for _, p := range m.Parts {
		w.foreign(p)
		switch p.Kind {
		case PartText:
			texts = append(texts, p)
		case PartThinking:
			thinking += p.Text
		case PartImage:
			if p.Media.URL != "" {
				w.lose(p.Path, encode(p.Media.URL), "an image is sent as data there, and the record has its address only")
				continue
			}
			if len(texts) > 0 {
				w.tell(p.Path, nil, "", "images stand before the text")
			}
			images = append(images, p.Media.Data)
		case PartCall:
			fn, o := object{}, object{}
			fn.put("name", p.Call.Name)
			fn.put("arguments", p.Call.Arguments)
			o.put("id", p.Call.ID)
			o.put("function", fn)
			calls = append(calls, o)
		default:
			w.lose(p.Path, nil, w.noPlace())
		}
	}
	o := object{}
	o.put("role", m.Role)
	o.put("content", w.joined(texts, m.Path))
	o.putText("thinking", thinking)
	if len(images) > 0 {
		o.put("images", images)
	}
	if len(calls) > 0 {
		o.put("tool_calls", calls)
	}
	return o
}
