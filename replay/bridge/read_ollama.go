package bridge

import "strings"

var ollamaOptions = map[string]Option{
	"temperature": OptionTemperature, "top_p": OptionTopP, "top_k": OptionTopK, "min_p": OptionMinP, "seed": OptionSeed,
	"frequency_penalty": OptionFrequency, "presence_penalty": OptionPresence, "repeat_penalty": OptionRepetition,
}

// readOllama reads a body of /api/chat, or of /api/generate, whose prompt is what a user says.
func readOllama(r *reader, target string, f *fields) *Request {
	q := &Request{Model: f.text("model"), Stream: true}
	if on, v := f.flag("stream"); v.Raw != nil {
		q.Stream = on
	}
	q.Usage = q.Stream
	path, _, _ := strings.Cut(target, "?")
	if strings.HasSuffix(path, "/generate") {
		r.ollamaPrompt(q, f)
	} else {
		for _, v := range f.array("messages") {
			r.ollamaMessage(q, v)
		}
	}
	for _, v := range f.array("tools") {
		if t, ok := r.functionTool(v); ok {
			q.Tools = append(q.Tools, t)
		}
	}
	o := r.fields(f.value("options"))
	o.sampling(q, ollamaOptions)
	q.Limit = o.limit("num_predict")
	q.Stop = o.stop("stop")
	o.done()
	f.sampling(q, map[string]Option{"logprobs": OptionLogprobs, "top_logprobs": OptionTopLogprobs})
	if v := f.value("format"); v.Raw != nil {
		q.Format = r.ollamaFormat(v)
	}
	r.level(&q.Thinking, f.value("think"))
	f.drop(reasonNeutral, "keep_alive")
	f.done()
	return q
}

func (r *reader) ollamaPrompt(q *Request, f *fields) {
	if s := f.text("system"); s != "" {
		path := below(f.path, "system")
		q.add(Message{Role: RoleSystem, Path: path, Parts: []Part{{Kind: PartText, Text: s, Path: path}}})
	}
	m := Message{Role: RoleUser, Path: below(f.path, "prompt"), Parts: r.ollamaImages(f)}
	m.Parts = append(m.Parts, Part{Kind: PartText, Text: f.text("prompt"), Path: m.Path})
	q.add(m)
}

// ollamaImages reads images, which are data without a type.
func (r *reader) ollamaImages(f *fields) []Part {
	var out []Part
	for _, v := range f.array("images") {
		data, _ := parseText(v.Raw)
		kind := imageType(data)
		if kind == "" {
			r.lose(v.Path, v.Raw, "it is no image of a type the bridge knows")
			continue
		}
		out = append(out, Part{Kind: PartImage, Media: Media{Type: kind, Data: data}, Path: v.Path})
	}
	return out
}

func (r *reader) ollamaMessage(q *Request, v Value) {
	f := r.fields(v)
	path := below(v.Path, "content")
	text := Part{Kind: PartText, Text: f.text("content"), Path: path}
	switch role := f.text("role"); role {
	case "system":
		q.add(Message{Role: RoleSystem, Parts: []Part{text}, Path: v.Path})
	case "user":
		parts := r.ollamaImages(f)
		if text.Text != "" || len(parts) == 0 { // an image needs no text, and some dialects refuse an empty one
			parts = append(parts, text)
		}
		q.add(Message{Role: RoleUser, Parts: parts, Path: v.Path})
	case "assistant":
		m := Message{Role: RoleAssistant, Path: v.Path}
		if t := f.text("thinking"); t != "" {
			m.Parts = append(m.Parts, Part{Kind: PartThinking, Text: t, Path: below(v.Path, "thinking")})
		}
		if text.Text != "" {
			m.Parts = append(m.Parts, text)
		}
		for _, c := range f.array("tool_calls") {
			m.Parts = append(m.Parts, r.functionCall(c))
		}
		q.add(m)
	case "tool":
		res := Result{ID: f.text("tool_call_id"), Name: f.text("tool_name", "name"), Parts: []Part{text}}
		q.add(Message{Role: RoleTool, Path: v.Path, Parts: []Part{{Kind: PartResult, Result: r.answers(res), Path: v.Path}}})
	default:
		r.lose(v.Path, v.Raw, "the bridge knows no role "+role)
		return
	}
	f.done()
}

// ollamaFormat reads "json", or a schema.
func (r *reader) ollamaFormat(v Value) Format {
	s, isText := parseText(v.Raw)
	switch {
	case isText && s == "":
		return Format{}
	case isText && s == "json":
		return Format{JSON: true, Path: v.Path}
	case isText:
		r.lose(v.Path, v.Raw, "the bridge does not know this format")
		return Format{}
	}
	return Format{JSON: true, Schema: compact(v.Raw), Name: defaultFormatName, Strict: true, Path: v.Path}
}
