package bridge

import (
	"encoding/json"
	"net/url"
)

const (
	geminiPath   = "/v1beta/models/"
	geminiSingle = ":generateContent"
	geminiStream = ":streamGenerateContent?alt=sse"
)

var geminiNames = map[Option]string{
	OptionTemperature: "temperature", OptionTopP: "topP", OptionTopK: "topK", OptionSeed: "seed",
	OptionFrequency: "frequencyPenalty", OptionPresence: "presencePenalty", OptionN: "candidateCount",
	OptionLogprobs: "responseLogprobs", OptionTopLogprobs: "logprobs",
}

// writeGemini makes a body of :generateContent or :streamGenerateContent.
func writeGemini(w *writer, q *Request) (target string, body object) {
	target = geminiPath + url.PathEscape(q.Model) + geminiSingle
	if q.Stream {
		target = geminiPath + url.PathEscape(q.Model) + geminiStream
	}
	system, rest := w.opening(q)
	if len(system) > 0 {
		o := object{}
		o.put("parts", w.geminiParts(system))
		body.put("systemInstruction", o)
	}
	body.put("contents", list(w.geminiContents(rest)))
	w.geminiTools(&body, q)
	w.geminiChoice(&body, q)
	w.geminiConfig(&body, q)
	return target, body
}

// geminiContents are the turns. Results of calls are said by the user, together with what the user says next.
func (w *writer) geminiContents(messages []Message) []object {
	var out []object
	var open []object // results that what the user says next goes with
	for _, m := range messages {
		role, parts := "user", w.geminiParts(m.Parts)
		if m.Role == RoleAssistant {
			role = "model"
		}
		if open != nil && m.Role == RoleUser {
			parts, out = append(open, parts...), out[:len(out)-1]
		}
		o := object{}
		o.put("role", role)
		o.put("parts", parts)
		out, open = append(out, o), nil
		if m.Role == RoleTool {
			open = parts
		}
	}
	return out
}

func (w *writer) geminiParts(parts []Part) []object {
	out := []object{}
	for _, p := range parts {
		o := object{}
		w.foreign(p)
		switch p.Kind {
		case PartText:
			o.put("text", p.Text)
		case PartThinking:
			o.put("text", p.Text)
			o.put("thought", true)
		case PartImage:
			if p.Media.URL != "" {
				w.lose(p.Path, encode(p.Media.URL), "an image is sent as data there, and the record has its address only")
				continue
			}
			data := object{}
			data.put("mimeType", p.Media.Type)
			data.put("data", p.Media.Data)
			o.put("inlineData", data)
		case PartCall:
			call := object{}
			call.put("id", p.Call.ID)
			call.put("name", p.Call.Name)
			call.put("args", p.Call.Arguments)
			o.put("functionCall", call)
		case PartResult:
			o.put("functionResponse", w.functionResponse(p))
		}
		out = append(out, o)
	}
	return out
}

// functionResponse is a result, which must name its tool and be an object.
func (w *writer) functionResponse(p Part) object {
	res := object{}
	if p.Result.Name == "" {
		w.lose(p.Path, encode(p.Result.ID), "a result names its tool there, and no call has its id")
	}
	texts := w.onlyText(p.Result.Parts)
	text, whole := textOf(texts)
	if !whole {
		w.tell(p.Path, nil, "", "texts are joined")
	}
	said := object{}
	if p.Result.Error {
		said.put("error", text)
	} else {
		said.put("output", text)
	}
	res.put("id", p.Result.ID)
	res.put("name", p.Result.Name)
	res.put("response", said)
	return res
}

func (w *writer) geminiTools(body *object, q *Request) {
	var out []object
	for _, t := range q.Tools {
		o := object{}
		o.put("name", t.Name)
		o.putText("description", t.Description)
		if t.Parameters != nil {
			o.put("parametersJsonSchema", t.Parameters)
		}
		if t.Strict {
			w.lose(below(t.Path, "strict"), json.RawMessage("true"), w.noPlace())
		}
		out = append(out, o)
	}
	if len(out) > 0 {
		o := object{}
		o.put("functionDeclarations", out)
		body.put("tools", []object{o})
	}
}

func (w *writer) geminiChoice(body *object, q *Request) {
	w.loseValue(q.Serial, w.noPlace())
	o := object{}
	switch q.Choice.Mode {
	case ChoiceAuto:
		o.put("mode", "AUTO")
	case ChoiceNone:
		o.put("mode", "NONE")
	case ChoiceRequired:
		o.put("mode", "ANY")
	case ChoiceNamed:
		o.put("mode", "ANY")
		o.put("allowedFunctionNames", []string{q.Choice.Name})
	default:
		return
	}
	c := object{}
	c.put("functionCallingConfig", o)
	body.put("toolConfig", c)
}

func (w *writer) geminiConfig(body *object, q *Request) {
	o := object{}
	o.putValue("maxOutputTokens", q.Limit)
	w.sampling(&o, q, geminiNames)
	if len(q.Stop.Texts) > 0 {
		o.put("stopSequences", q.Stop.Texts)
	}
	if q.Format.JSON {
		o.put("responseMimeType", "application/json")
		if q.Format.Schema != nil {
			o.put("responseJsonSchema", q.Format.Schema)
		}
	}
	if t := w.geminiThinking(q.Thinking); len(t) > 0 {
		o.put("thinkingConfig", t)
	}
	if len(o) > 0 {
		body.put("generationConfig", o)
	}
}

func (w *writer) geminiThinking(t Thinking) object {
	o := object{}
	switch t.Mode {
	case Off:
		o.put("thinkingBudget", 0)
		return o
	case On:
		o.put("includeThoughts", true)
		o.putValue("thinkingBudget", t.Budget)
	}
	switch t.Effort {
	case "":
	case "minimal", "low", "medium", "high":
		o.put("thinkingLevel", t.Effort)
	default:
		w.lose(t.Path, encode(t.Effort), "there is no level of thinking of that name")
	}
	return o
}
