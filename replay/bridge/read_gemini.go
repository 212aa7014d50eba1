package bridge

import (
	"encoding/json"
	"net/url"
	"strings"
)

var geminiOptions = map[string]Option{
	"temperature": OptionTemperature, "topP": OptionTopP, "top_p": OptionTopP, "topK": OptionTopK, "top_k": OptionTopK,
	"seed": OptionSeed, "frequencyPenalty": OptionFrequency, "presencePenalty": OptionPresence,
	"candidateCount": OptionN, "candidate_count": OptionN, "responseLogprobs": OptionLogprobs, "logprobs": OptionTopLogprobs,
}

// readGemini reads a body of :generateContent or :streamGenerateContent, whose path names the model.
func readGemini(r *reader, target string, f *fields) *Request {
	path, _, _ := strings.Cut(target, "?")
	name := path[strings.LastIndexByte(path, '/')+1:]
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	method := name[strings.LastIndexByte(name, ':')+1:] // the model may have a colon too
	q := &Request{Model: strings.TrimSuffix(name, ":"+method), Stream: strings.HasPrefix(method, "stream")}
	q.Usage = q.Stream
	f.value("model")
	if v := f.value("systemInstruction", "system_instruction"); v.Raw != nil {
		o := r.fields(v)
		o.value("role")
		if parts := r.geminiParts(o.array("parts")); len(parts) > 0 {
			q.add(Message{Role: RoleSystem, Parts: parts, Path: v.Path})
		}
		o.done()
	}
	for _, v := range f.array("contents") {
		r.geminiContent(q, v)
	}
	for _, v := range f.array("tools") {
		r.geminiTools(q, v)
	}
	r.geminiChoice(q, f.value("toolConfig", "tool_config"))
	r.geminiConfig(q, f.value("generationConfig", "generation_config"))
	f.drop(reasonNeutral, "labels")
	f.done()
	return q
}

func (r *reader) geminiContent(q *Request, v Value) {
	f := r.fields(v)
	role := f.text("role")
	m := Message{Path: v.Path, Parts: r.geminiParts(f.array("parts"))}
	switch role {
	case "user", "function", "":
		q.addTurn(m)
	case "model":
		m.Role, m.Parts = RoleAssistant, nonEmpty(m.Parts)
		q.add(m)
	default:
		r.lose(v.Path, v.Raw, "the bridge knows no role "+role)
	}
	f.done()
}

func (r *reader) geminiParts(list []Value) []Part {
	var out []Part
	for _, v := range list {
		if p, ok := r.geminiPart(v); ok {
			out = append(out, p)
		}
	}
	return out
}

// geminiPart reads one part; ok is false for one that is lost.
func (r *reader) geminiPart(v Value) (p Part, ok bool) {
	f := r.fields(v)
	p.Path, p.Signature = v.Path, f.text("thoughtSignature", "thought_signature")
	thought, _ := f.flag("thought")
	if call := f.value("functionCall", "function_call"); call.Raw != nil {
		o := r.fields(call)
		p.Kind = PartCall
		p.Call = r.called(Call{ID: o.text("id"), Name: o.text("name"), Arguments: r.arguments(o.value("args"))}, v.Path)
		o.done()
	} else if res := f.value("functionResponse", "function_response"); res.Raw != nil {
		p.Kind = PartResult
		p.Result = r.functionResponse(res)
	} else if data := f.value("inlineData", "inline_data"); data.Raw != nil {
		o := r.fields(data)
		p.Kind, p.Media = PartImage, Media{Type: o.text("mimeType", "mime_type"), Data: o.text("data")}
		o.done()
		if !strings.HasPrefix(p.Media.Type, "image/") {
			r.lose(v.Path, nil, "the bridge carries no data of the type "+p.Media.Type)
			return p, false
		}
	} else if text := f.value("text"); text.Raw != nil {
		p.Text, _ = parseText(text.Raw)
		if thought {
			p.Kind = PartThinking
		}
	} else {
		r.lose(v.Path, v.Raw, "the bridge does not know this part")
		return p, false
	}
	f.done()
	return p, true
}

// functionResponse reads a result. One that holds its text under the usual name is that text.
func (r *reader) functionResponse(v Value) Result {
	f := r.fields(v)
	res := Result{ID: f.text("id"), Name: f.text("name")}
	at := f.value("response")
	f.done()
	if o, ok := parseObject(at.Raw); ok && len(o) == 1 {
		text, isText := parseText(o[0].value)
		if name := o[0].name; isText && (name == "output" || name == "result" || name == "error") {
			res.Error = name == "error"
			res.Parts = []Part{{Kind: PartText, Text: text, Path: below(at.Path, name)}}
			return r.answers(res)
		}
	}
	if at.Raw != nil {
		res.Parts = jsonText(at.Raw, at.Path)
	}
	return r.answers(res)
}

func (r *reader) geminiTools(q *Request, v Value) {
	f := r.fields(v)
	for _, d := range f.array("functionDeclarations", "function_declarations") {
		o := r.fields(d)
		old := o.value("parameters")
		t := r.declaration(o, "parametersJsonSchema")
		if t.Parameters == nil && old.Raw != nil {
			t.Parameters = schema(lowerTypes(old.Raw))
		}
		q.Tools = append(q.Tools, t)
		o.done()
	}
	f.done()
}

func (r *reader) geminiChoice(q *Request, v Value) {
	if v.Raw == nil {
		return
	}
	f := r.fields(v)
	c := f.value("functionCallingConfig", "function_calling_config")
	o := r.fields(c)
	q.Choice.Path = c.Path
	allowed := o.value("allowedFunctionNames", "allowed_function_names")
	var names []string
	if allowed.Raw != nil && json.Unmarshal(allowed.Raw, &names) != nil {
		r.lose(allowed.Path, allowed.Raw, "it is no list of names")
	}
	switch mode := o.text("mode"); {
	case mode == "AUTO":
		q.Choice.Mode = ChoiceAuto
	case mode == "NONE":
		q.Choice.Mode = ChoiceNone
	case mode == "ANY" && len(names) == 1:
		q.Choice.Mode, q.Choice.Name = ChoiceNamed, names[0]
		names = nil
	case mode == "ANY":
		q.Choice.Mode = ChoiceRequired
	case mode != "" && mode != "MODE_UNSPECIFIED":
		r.lose(below(c.Path, "mode"), encode(mode), "the bridge does not know this choice of tools")
	}
	if len(names) > 0 {
		r.lose(allowed.Path, allowed.Raw, "a choice of several tools has no counterpart")
	}
	o.done()
	f.done()
}

func (r *reader) geminiConfig(q *Request, v Value) {
	if v.Raw == nil {
		return
	}
	f := r.fields(v)
	f.sampling(q, geminiOptions)
	q.Limit = f.limit("maxOutputTokens", "max_output_tokens")
	q.Stop = f.stop("stopSequences", "stop_sequences")
	if t := f.value("thinkingConfig", "thinking_config"); t.Raw != nil {
		r.geminiThinking(&q.Thinking, t)
	}
	kind := f.text("responseMimeType", "response_mime_type")
	old, s := f.value("responseSchema", "response_schema"), f.value("responseJsonSchema", "response_json_schema")
	switch {
	case s.Raw != nil:
		q.Format = Format{JSON: true, Schema: compact(s.Raw), Path: s.Path}
	case old.Raw != nil:
		q.Format = Format{JSON: true, Schema: compact(lowerTypes(old.Raw)), Path: old.Path}
	case kind == "application/json":
		q.Format = Format{JSON: true, Path: below(v.Path, "responseMimeType")}
	case kind != "" && kind != "text/plain":
		r.lose(below(v.Path, "responseMimeType"), encode(kind), "the bridge does not know this format")
	}
	if q.Format.Schema != nil {
		q.Format.Name, q.Format.Strict = defaultFormatName, true
	}
	f.done()
}

func (r *reader) geminiThinking(t *Thinking, v Value) {
	f := r.fields(v)
	t.Path = v.Path
	if on, at := f.flag("includeThoughts", "include_thoughts"); on {
		t.Mode, t.Path = On, at.Path
	}
	budget := f.value("thinkingBudget", "thinking_budget")
	switch string(budget.Raw) {
	case "":
	case "0":
		t.Mode, t.Path = Off, budget.Path
	case "-1":
		t.Mode, t.Path = On, budget.Path
	default:
		t.Mode, t.Budget = On, budget
	}
	if level := f.value("thinkingLevel", "thinking_level"); level.Raw != nil {
		s, _ := parseText(level.Raw)
		r.level(t, Value{encode(strings.ToLower(s)), level.Path})
	}
	f.done()
}
