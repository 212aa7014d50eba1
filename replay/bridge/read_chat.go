package bridge

import "encoding/json"

// chatOptions are the sampling options of chat, those of engines besides OpenAI's own.
var chatOptions = map[string]Option{
	"temperature": OptionTemperature, "top_p": OptionTopP, "top_k": OptionTopK, "min_p": OptionMinP, "seed": OptionSeed,
	"frequency_penalty": OptionFrequency, "presence_penalty": OptionPresence,
	"repetition_penalty": OptionRepetition, "repeat_penalty": OptionRepetition,
	"n": OptionN, "logprobs": OptionLogprobs, "top_logprobs": OptionTopLogprobs,
}

// readChat reads a body of /v1/chat/completions.
func readChat(r *reader, _ string, f *fields) *Request {
	q := &Request{Model: f.text("model")}
	q.Stream, _ = f.flag("stream")
	o := r.fields(f.value("stream_options"))
	q.Usage, _ = o.flag("include_usage")
	o.drop(reasonNeutral, "include_obfuscation", "continuous_usage_stats")
	o.done()
	for _, v := range f.array("messages") {
		r.chatMessage(q, v)
	}
	for _, v := range f.array("tools") {
		if t, ok := r.functionTool(v); ok {
			q.Tools = append(q.Tools, t)
		}
	}
	q.Choice = r.chatChoice(f.value("tool_choice"))
	if parallel, v := f.flag("parallel_tool_calls"); v.Raw != nil && !parallel {
		q.Serial = v
	}
	q.Format = r.chatFormat(f.value("response_format"))
	q.Limit = f.limit("max_tokens")
	if l := f.limit("max_completion_tokens"); l.Raw != nil {
		q.Limit = l
	}
	f.sampling(q, chatOptions)
	q.Stop = f.stop("stop")
	q.Thinking = r.chatThinking(f)
	f.drop(reasonNeutral, "user", "metadata", "store", "service_tier", "safety_identifier", "timings_per_token", "return_progress",
		"return_token_ids", "return_tokens")
	f.drop(reasonHint, "prompt_cache_key", "prompt_cache_retention", "cache_prompt", "id_slot", "cache_salt")
	f.done()
	return q
}

func (r *reader) chatMessage(q *Request, v Value) {
	f := r.fields(v)
	m := Message{Path: v.Path}
	switch role := f.text("role"); role {
	case "system", "developer":
		m.Role, m.Parts = RoleSystem, r.content(f.value("content"))
		q.add(m)
	case "user":
		m.Role, m.Parts = RoleUser, r.content(f.value("content"))
		q.add(m)
	case "assistant":
		m.Role = RoleAssistant
		if t := f.text("reasoning_content", "reasoning"); t != "" {
			m.Parts = append(m.Parts, Part{Kind: PartThinking, Text: t, Path: below(v.Path, "reasoning_content")})
		}
		m.Parts = append(m.Parts, nonEmpty(r.content(f.value("content")))...)
		for _, c := range f.array("tool_calls") {
			m.Parts = append(m.Parts, r.functionCall(c))
		}
		if v := f.value("annotations"); v.Raw != nil && string(compact(v.Raw)) != "[]" { // clients send back what they were told
			r.lose(v.Path, v.Raw, "annotations have no counterpart")
		}
		q.add(m)
	case "tool":
		res := Result{ID: f.text("tool_call_id"), Name: f.text("name"), Parts: r.content(f.value("content"))}
		q.add(Message{Role: RoleTool, Path: v.Path, Parts: []Part{{Kind: PartResult, Result: r.answers(res), Path: v.Path}}})
	default:
		r.lose(v.Path, v.Raw, "the bridge knows no role "+role)
		return
	}
	f.done()
}

// nonEmpty leaves out texts without text, which some dialects refuse.
func nonEmpty(parts []Part) []Part {
	var out []Part
	for _, p := range parts {
		if p.Kind != PartText || p.Text != "" {
			out = append(out, p)
		}
	}
	return out
}

// content reads what a message of chat says: a text, or a list of parts.
func (r *reader) content(v Value) []Part {
	if s, ok := parseText(v.Raw); ok {
		return []Part{{Kind: PartText, Text: s, Path: v.Path}}
	}
	list, ok := parseArray(v.Raw)
	if !ok && v.Raw != nil {
		r.lose(v.Path, v.Raw, "it is neither a text nor a list of parts")
	}
	var out []Part
	for i, raw := range list {
		at := Value{raw, at(v.Path, i)}
		f := r.fields(at)
		switch kind := f.text("type"); kind {
		case "text", "input_text", "output_text":
			out = append(out, Part{Kind: PartText, Text: f.text("text"), Path: at.Path})
			f.drop(reasonNeutral, "annotations", "logprobs")
			f.drop(reasonHint, "cache_control")
		case "image_url", "input_image":
			out = append(out, Part{Kind: PartImage, Media: r.imageURL(f), Path: at.Path})
		default:
			r.lose(at.Path, raw, "the bridge carries no content of the type "+kind)
			continue
		}
		f.done()
	}
	return out
}

// imageURL reads the address of an image: in an object with chat, bare with Responses.
func (r *reader) imageURL(f *fields) Media {
	v := f.value("image_url")
	url, bare := parseText(v.Raw)
	o := f
	if !bare {
		o = r.fields(v)
		url = o.text("url")
	}
	if d := o.value("detail"); d.Raw != nil && string(d.Raw) != `"auto"` {
		r.lose(d.Path, d.Raw, "the detail in which an image is seen has no counterpart")
	}
	if !bare {
		o.done()
	}
	return image(url)
}

// functionTool reads a tool in the form that chat and Ollama share. ok is false for one that is no function.
func (r *reader) functionTool(v Value) (t Tool, ok bool) {
	f := r.fields(v)
	if kind := f.text("type"); kind != "function" && kind != "" {
		r.lose(v.Path, v.Raw, "a tool of the type "+kind+" belongs to one engine")
		return t, false
	}
	fn := r.fields(f.value("function"))
	t = r.declaration(fn, "parameters")
	fn.done()
	f.done()
	return t, true
}

// declaration reads name, description and schema of a function.
func (r *reader) declaration(f *fields, parameters string) Tool {
	t := Tool{Path: f.path, Name: f.text("name"), Description: f.text("description")}
	t.Parameters = schema(f.value(parameters).Raw)
	t.Strict, _ = f.flag("strict")
	return t
}

// functionCall reads a call whose arguments are the text of an object.
func (r *reader) functionCall(v Value) Part {
	f := r.fields(v)
	id := f.text("id")
	f.value("type")
	f.value("index")
	fn := r.fields(f.value("function"))
	c := Call{ID: id, Name: fn.text("name"), Arguments: r.textArguments(fn)}
	fn.done()
	f.done()
	return Part{Kind: PartCall, Call: r.called(c, v.Path), Path: v.Path}
}

// textArguments reads arguments that are an object in a text, or the object itself.
func (r *reader) textArguments(f *fields) json.RawMessage {
	v := f.value("arguments")
	if s, ok := parseText(v.Raw); ok {
		v.Raw = json.RawMessage(s)
		if !json.Valid(v.Raw) && s != "" {
			r.lose(v.Path, encode(s), "the arguments are no object")
			v.Raw = nil
		}
	}
	return r.arguments(v)
}

func (r *reader) chatChoice(v Value) Choice {
	if v.Raw == nil {
		return Choice{}
	}
	if s, ok := parseText(v.Raw); ok {
		switch mode := ChoiceMode(s); mode {
		case ChoiceAuto, ChoiceNone, ChoiceRequired:
			return Choice{Mode: mode, Path: v.Path}
		}
		r.lose(v.Path, v.Raw, "the bridge does not know this choice of tools")
		return Choice{}
	}
	f := r.fields(v)
	if kind := f.text("type"); kind != "function" {
		r.lose(v.Path, v.Raw, "the bridge does not know a choice of the type "+kind)
		return Choice{}
	}
	c := Choice{Mode: ChoiceNamed, Path: v.Path}
	if fn := f.value("function"); fn.Raw != nil {
		o := r.fields(fn)
		c.Name = o.text("name")
		o.done()
	} else {
		c.Name = f.text("name") // Responses
	}
	f.done()
	return c
}

func (r *reader) chatFormat(v Value) Format {
	if v.Raw == nil {
		return Format{}
	}
	f := r.fields(v)
	switch kind := f.text("type"); kind {
	case "text":
		f.done()
		return Format{}
	case "json_object":
		f.done()
		return Format{JSON: true, Path: v.Path}
	case "json_schema":
		inner := f
		if o := f.value("json_schema"); o.Raw != nil {
			inner = r.fields(o)
			defer inner.done()
		} // else Responses, which has no inner object
		out := r.namedSchema(inner)
		out.Path = v.Path
		f.done()
		return out
	default:
		r.lose(v.Path, v.Raw, "the bridge does not know a format of the type "+kind)
		return Format{}
	}
}

func (r *reader) namedSchema(f *fields) Format {
	out := Format{JSON: true, Name: f.text("name"), Schema: compact(f.value("schema").Raw)}
	out.Strict, _ = f.flag("strict")
	if d := f.value("description"); d.Raw != nil {
		r.lose(d.Path, d.Raw, "a description of the format has no counterpart")
	}
	if len(out.Schema) == 0 {
		out.Schema = nil
	}
	return out
}

// chatThinking reads the switches of thinking that engines have in chat.
func (r *reader) chatThinking(f *fields) Thinking {
	t := Thinking{}
	flip := func(o *fields, names ...string) {
		if on, v := o.flag(names...); v.Raw != nil {
			t.Mode, t.Path = Off, v.Path
			if on {
				t.Mode = On
			}
		}
	}
	for _, name := range []string{"chat_template_kwargs", "template_vars"} {
		o := r.fields(f.value(name))
		flip(o, "enable_thinking", "thinking")
		o.done()
	}
	flip(f, "enable_thinking")
	r.level(&t, f.value("think"))
	r.level(&t, f.value("reasoning_effort"))
	o := r.fields(f.value("reasoning"))
	r.level(&t, o.value("effort"))
	flip(o, "enabled")
	o.drop(reasonNeutral, "summary")
	o.done()
	t.Budget = f.limit("thinking_budget", "thinking_token_budget", "reasoning_budget_tokens")
	return t
}

// level reads how much to think: a switch, or a word. none is off.
func (r *reader) level(t *Thinking, v Value) {
	if v.Raw == nil {
		return
	}
	t.Path = v.Path
	switch s, ok := parseText(v.Raw); {
	case string(v.Raw) == "true":
		t.Mode = On
	case string(v.Raw) == "false" || ok && s == "none":
		t.Mode = Off
	case ok && s != "":
		t.Mode, t.Effort = On, s
	default:
		r.lose(v.Path, v.Raw, "the bridge does not know this much thinking")
	}
}
