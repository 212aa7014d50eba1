package bridge

import (
	"encoding/json"
	"strings"
)

var anthropicOptions = map[string]Option{"temperature": OptionTemperature, "top_p": OptionTopP, "top_k": OptionTopK}

// readAnthropic reads a body of /v1/messages.
func readAnthropic(r *reader, _ string, f *fields) *Request {
	q := &Request{Model: f.text("model")}
	q.Stream, _ = f.flag("stream")
	q.Usage = q.Stream
	if system := f.value("system"); system.Raw != nil {
		if parts := r.blocks(system); len(parts) > 0 {
			q.add(Message{Role: RoleSystem, Parts: parts, Path: system.Path})
		}
	}
	for _, v := range f.array("messages") {
		r.anthropicMessage(q, v)
	}
	for _, v := range f.array("tools") {
		r.anthropicTool(q, v)
	}
	r.anthropicChoice(q, f.value("tool_choice"))
	q.Limit = f.limit("max_tokens")
	f.sampling(q, anthropicOptions)
	q.Stop = f.stop("stop_sequences")
	r.anthropicThinking(&q.Thinking, f.value("thinking"))
	o := r.fields(f.value("output_config"))
	if v := o.value("effort"); v.Raw != nil {
		mode := q.Thinking.Mode
		r.level(&q.Thinking, v)
		q.Thinking.Mode = mode // how much is said apart from whether
	}
	q.Format = r.anthropicFormat(o.value("format"))
	o.done()
	if old := f.value("output_format"); old.Raw != nil {
		q.Format = r.anthropicFormat(old)
	}
	f.drop(reasonNeutral, "metadata", "service_tier", "inference_geo")
	f.drop(reasonHint, "cache_control")
	f.done()
	return q
}

func (r *reader) anthropicMessage(q *Request, v Value) {
	f := r.fields(v)
	role := f.text("role")
	m := Message{Path: v.Path, Parts: r.blocks(f.value("content"))}
	switch role {
	case "user":
		q.addTurn(m)
	case "assistant":
		m.Role, m.Parts = RoleAssistant, nonEmpty(m.Parts)
		q.add(m)
	case "system":
		m.Role = RoleSystem
		q.add(m)
	default:
		r.lose(v.Path, v.Raw, "the bridge knows no role "+role)
	}
	f.done()
}

// blocks reads content: a text, or a list of blocks.
func (r *reader) blocks(v Value) []Part {
	if s, ok := parseText(v.Raw); ok {
		return []Part{{Kind: PartText, Text: s, Path: v.Path}}
	}
	list, ok := parseArray(v.Raw)
	if !ok && v.Raw != nil {
		r.lose(v.Path, v.Raw, "it is neither a text nor a list of blocks")
	}
	var out []Part
	for i, raw := range list {
		if p, ok := r.block(Value{raw, at(v.Path, i)}); ok {
			out = append(out, p)
		}
	}
	return out
}

// block reads one block; ok is false for one that is lost.
func (r *reader) block(v Value) (p Part, ok bool) {
	f := r.fields(v)
	p.Path = v.Path
	switch kind := f.text("type"); kind {
	case "text":
		p.Kind, p.Text = PartText, f.text("text")
	case "image":
		p.Kind = PartImage
		if p.Media, ok = r.imageSource(f.value("source")); !ok {
			return p, false
		}
	case "thinking":
		p.Kind, p.Text, p.Signature = PartThinking, f.text("thinking"), f.text("signature")
	case "tool_use":
		p.Kind = PartCall
		p.Call = r.called(Call{ID: f.text("id"), Name: f.text("name"), Arguments: r.arguments(f.value("input"))}, v.Path)
	case "tool_result":
		p.Kind = PartResult
		res := Result{ID: f.text("tool_use_id"), Parts: r.blocks(f.value("content"))}
		res.Error, _ = f.flag("is_error")
		p.Result = r.answers(res)
	default:
		r.lose(v.Path, v.Raw, "the bridge carries no block of the type "+kind)
		return p, false
	}
	f.drop(reasonHint, "cache_control")
	if c := f.value("citations"); c.Raw != nil && string(c.Raw) != "[]" {
		r.lose(c.Path, c.Raw, "citations have no counterpart")
	}
	f.done()
	return p, true
}

func (r *reader) imageSource(v Value) (Media, bool) {
	f := r.fields(v)
	switch kind := f.text("type"); kind {
	case "base64":
		m := Media{Type: f.text("media_type"), Data: f.text("data")}
		f.done()
		return m, true
	case "url":
		m := image(f.text("url"))
		f.done()
		return m, true
	default:
		r.lose(v.Path, v.Raw, "an image of the source "+kind+" is kept at one engine")
		return Media{}, false
	}
}

func (r *reader) anthropicTool(q *Request, v Value) {
	f := r.fields(v)
	if kind := f.text("type"); kind != "" && kind != "custom" {
		r.lose(v.Path, v.Raw, "a tool of the type "+kind+" belongs to one engine")
		return
	}
	q.Tools = append(q.Tools, r.declaration(f, "input_schema"))
	f.drop(reasonHint, "cache_control")
	f.done()
}

func (r *reader) anthropicChoice(q *Request, v Value) {
	if v.Raw == nil {
		return
	}
	f := r.fields(v)
	q.Choice.Path = v.Path
	switch kind := f.text("type"); kind {
	case "auto", "none":
		q.Choice.Mode = ChoiceMode(kind)
	case "any":
		q.Choice.Mode = ChoiceRequired
	case "tool":
		q.Choice.Mode, q.Choice.Name = ChoiceNamed, f.text("name")
	default:
		r.lose(v.Path, v.Raw, "the bridge does not know a choice of the type "+kind)
	}
	if serial, at := f.flag("disable_parallel_tool_use"); serial {
		q.Serial = at
	}
	f.done()
}

func (r *reader) anthropicThinking(t *Thinking, v Value) {
	if v.Raw == nil {
		return
	}
	f := r.fields(v)
	t.Path = v.Path
	switch kind := f.text("type"); kind {
	case "enabled":
		t.Mode, t.Budget = On, f.limit("budget_tokens")
	case "adaptive":
		t.Mode = On
	case "disabled":
		t.Mode = Off
	default:
		r.lose(v.Path, v.Raw, "the bridge does not know thinking of the type "+kind)
	}
	f.drop(reasonNeutral, "display")
	f.done()
}

func (r *reader) anthropicFormat(v Value) Format {
	if v.Raw == nil {
		return Format{}
	}
	f := r.fields(v)
	out := Format{JSON: true, Name: defaultFormatName, Strict: true, Path: v.Path}
	if kind := f.text("type"); kind != "json_schema" {
		r.lose(v.Path, v.Raw, "the bridge does not know a format of the type "+kind)
		return Format{}
	}
	out.Schema = compact(f.value("schema").Raw)
	f.done()
	return out
}

// textOf joins the texts of parts. whole is false when there is more than one text, or anything else.
func textOf(parts []Part) (text string, whole bool) {
	var texts []string
	for _, p := range parts {
		if p.Kind == PartText {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n"), len(texts) == len(parts) && len(texts) <= 1
}

// jsonText is the text of a JSON value as a part.
func jsonText(raw json.RawMessage, path string) []Part {
	return []Part{{Kind: PartText, Text: string(compact(raw)), Path: path}}
}
