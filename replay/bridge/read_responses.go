package bridge

// readResponses reads a body of /v1/responses. What refers to an earlier response, or to anything else that is kept at
// the engine, is lost.
func readResponses(r *reader, _ string, f *fields) *Request {
	q := &Request{Model: f.text("model")}
	q.Stream, _ = f.flag("stream")
	q.Usage = q.Stream
	if s := f.text("instructions"); s != "" {
		path := below(f.path, "instructions")
		q.add(Message{Role: RoleSystem, Path: path, Parts: []Part{{Kind: PartText, Text: s, Path: path}}})
	}
	r.input(q, f.value("input"))
	for _, v := range f.array("tools") {
		r.flatTool(q, v)
	}
	q.Choice = r.chatChoice(f.value("tool_choice"))
	if parallel, v := f.flag("parallel_tool_calls"); v.Raw != nil && !parallel {
		q.Serial = v
	}
	text := r.fields(f.value("text"))
	q.Format = r.chatFormat(text.value("format"))
	text.done()
	q.Limit = f.limit("max_output_tokens")
	f.sampling(q, map[string]Option{"temperature": OptionTemperature, "top_p": OptionTopP, "top_logprobs": OptionTopLogprobs})
	o := r.fields(f.value("reasoning"))
	r.level(&q.Thinking, o.value("effort"))
	o.drop(reasonNeutral, "summary", "generate_summary")
	o.done()
	f.drop(reasonNeutral, "user", "metadata", "store", "service_tier", "safety_identifier", "include", "stream_options")
	f.drop(reasonHint, "prompt_cache_key", "prompt_cache_retention")
	f.done()
	return q
}

// input reads what is asked: a text, or a list of items.
func (r *reader) input(q *Request, v Value) {
	if s, ok := parseText(v.Raw); ok {
		q.add(Message{Role: RoleUser, Path: v.Path, Parts: []Part{{Kind: PartText, Text: s, Path: v.Path}}})
		return
	}
	list, ok := parseArray(v.Raw)
	if !ok && v.Raw != nil {
		r.lose(v.Path, v.Raw, "it is neither a text nor a list of items")
	}
	for i, raw := range list {
		r.item(q, Value{raw, at(v.Path, i)})
	}
}

// item reads one item. Texts and calls of one answer are items in a row, and one message.
func (r *reader) item(q *Request, v Value) {
	f := r.fields(v)
	f.drop(reasonNeutral, "status")
	kind := f.text("type")
	if kind != "function_call_output" && kind != "function_call" {
		f.drop(reasonNeutral, "id")
	}
	switch kind {
	case "message", "":
		r.messageItem(q, f, v)
	case "function_call":
		f.value("id")
		c := Call{ID: f.text("call_id"), Name: f.text("name"), Arguments: r.textArguments(f)}
		q.answer(Part{Kind: PartCall, Call: r.called(c, v.Path), Path: v.Path})
	case "function_call_output":
		f.value("id")
		res := Result{ID: f.text("call_id"), Parts: r.content(f.value("output"))}
		q.add(Message{Role: RoleTool, Path: v.Path, Parts: []Part{{Kind: PartResult, Result: r.answers(res), Path: v.Path}}})
	default:
		r.lose(v.Path, v.Raw, "the bridge carries no item of the type "+kind)
		return
	}
	f.done()
}

func (r *reader) messageItem(q *Request, f *fields, v Value) {
	role := f.text("role")
	parts := r.content(f.value("content"))
	switch role {
	case "system", "developer":
		q.add(Message{Role: RoleSystem, Parts: parts, Path: v.Path})
	case "user":
		q.add(Message{Role: RoleUser, Parts: parts, Path: v.Path})
	case "assistant":
		q.answer(nonEmpty(parts)...)
	default:
		r.lose(v.Path, v.Raw, "the bridge knows no role "+role)
	}
}

// answer puts parts into the answer at the end of the conversation, and begins one where it does not end with one.
func (q *Request) answer(parts ...Part) {
	if len(parts) == 0 {
		return
	}
	if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == RoleAssistant {
		q.Messages[n-1].Parts = append(q.Messages[n-1].Parts, parts...)
		return
	}
	q.add(Message{Role: RoleAssistant, Parts: parts, Path: parts[0].Path})
}

// flatTool reads a tool whose function has no object of its own.
func (r *reader) flatTool(q *Request, v Value) {
	f := r.fields(v)
	if kind := f.text("type"); kind != "function" {
		r.lose(v.Path, v.Raw, "a tool of the type "+kind+" belongs to one engine")
		return
	}
	q.Tools = append(q.Tools, r.declaration(f, "parameters"))
	f.done()
}
