package sim

import (
	"encoding/json"
	"errors"
	"time"
)

// responsesDialect is OpenAI's /v1/responses.
var responsesDialect = dialect{
	prefix: "resp_", mime: mimeSSE, ping: ": ping\n\n",
	parse: parseResponses, stream: streamResponses, plain: plainResponses, refuse: errorObject,
	breakup: func(sent int) []byte {
		return namedSSE("error", encode(object{
			{"type", "error"}, {"code", "server_error"}, {"message", lostModel}, {"param", nil}, {"sequence_number", sent},
		}))
	},
}

// responsesBody is a request body, as far as the engine looks at it.
type responsesBody struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    string          `json:"instructions"`
	Stream          bool            `json:"stream"`
	MaxOutputTokens *int            `json:"max_output_tokens"`
	Tools           []struct {
		Type       string          `json:"type"`
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Text       struct {
		Format struct {
			Type   string          `json:"type"`
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"text"`
	Reasoning *struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	TopLogprobs *int `json:"top_logprobs"`
}

// responsesItem is one item of the input.
type responsesItem struct {
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

func parseResponses(req Request, o Options) (ask, error) {
	var b responsesBody
	if err := readBody(req, &b); err != nil {
		return ask{}, err
	}
	a := newAsk(o)
	a.model, a.stream = b.Model, b.Stream
	a.thinking = b.Reasoning != nil && b.Reasoning.Effort != "none"
	a.bound(b.MaxOutputTokens)
	if b.TopLogprobs != nil {
		a.top = min(max(*b.TopLogprobs, 0), 20)
	}
	switch b.Text.Format.Type {
	case "json_schema":
		a.schema = b.Text.Format.Schema
	case "json_object":
		a.schema = anyJSON
	}
	var items []responsesItem
	a.prompt = words(b.Instructions) + words(stringOrList(b.Input)...)
	if a.prompt == 0 && (json.Unmarshal(b.Input, &items) != nil || len(items) == 0) {
		return a, errors.New("input is missing")
	}
	for _, it := range items {
		a.prompt += words(texts(it.Content)...) + words(texts(it.Output)...)
	}
	wish := toolWish{forbid: string(b.ToolChoice) == `"none"`}
	wish.answered = len(items) > 0 && items[len(items)-1].Type == "function_call_output"
	for _, t := range b.Tools {
		if t.Type == "function" {
			wish.tools = append(wish.tools, newTool(t.Name, t.Parameters))
		}
	}
	var named struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(b.ToolChoice, &named) == nil {
		wish.named = named.Name
	}
	a.offer(wish, o)
	return a, nil
}

// responsesStream writes the events of one stream, numbered.
type responsesStream struct {
	*answerPlan
	*scribe
	next int
}

func streamResponses(p *answerPlan, w *scribe) {
	r := &responsesStream{answerPlan: p, scribe: w}
	for _, kind := range []string{"response.created", "response.in_progress"} {
		r.event(p.opening(), kind, 0, member{"response", p.response("in_progress", array{})})
	}
	for i, b := range p.blocks(0) {
		switch b.kind {
		case kindReasoning:
			r.thinking(i, b)
		case kindText:
			r.text(i, b)
		default:
			r.call(i, b)
		}
	}
	status := p.responseStatus()
	r.event(p.last, "response."+status, 0, member{"response", p.response(status, p.responseOutput())})
}

// event writes one event; its name repeats its type.
func (r *responsesStream) event(at time.Duration, kind string, tokens int, members ...member) {
	o := object{{"type", kind}}.with(members...).with(member{"sequence_number", r.next})
	r.add(at, namedSSE(kind, encode(o)), tokens)
	r.next++
}

// deltas writes the events of a block, and the one that repeats all of it.
func (r *responsesStream) deltas(b block, kind, whole string, at []member) {
	for _, e := range b.events {
		if _, text := e.parts(); text != "" {
			n := len(e.tokens)
			if e.tokens[0].kind == kindCall {
				n-- // the item told the name
			}
			r.event(e.at, kind+".delta", n, append(at[:len(at):len(at)], member{"delta", text})...)
		}
	}
	r.event(b.end(), kind+".done", 0, append(at[:len(at):len(at)], member{whole, b.text})...)
}

// item writes that an item begins or is done.
func (r *responsesStream) item(at time.Duration, what string, index, tokens int, item object) {
	r.event(at, "response.output_item."+what, tokens, member{"output_index", index}, member{"item", item})
}

func (r *responsesStream) thinking(index int, b block) {
	id := r.idOf("rs_", index)
	r.item(b.begin(), "added", index, 0, object{{"id", id}, {"type", "reasoning"}, {"summary", array{}}})
	at := []member{{"item_id", id}, {"output_index", index}, {"summary_index", 0}}
	part := func(text string) member { return member{"part", object{{"type", "summary_text"}, {"text", text}}} }
	r.event(b.begin(), "response.reasoning_summary_part.added", 0, append(at[:3:3], part(""))...)
	r.deltas(b, "response.reasoning_summary_text", "text", at)
	r.event(b.end(), "response.reasoning_summary_part.done", 0, append(at[:3:3], part(b.text))...)
	r.item(b.end(), "done", index, 0, r.outputItem(index, b))
}

func (r *responsesStream) text(index int, b block) {
	id := r.idOf("msg_", index)
	r.item(b.begin(), "added", index, 0, object{
		{"id", id}, {"type", "message"}, {"status", "in_progress"}, {"content", array{}}, {"role", "assistant"},
	})
	at := []member{{"item_id", id}, {"output_index", index}, {"content_index", 0}}
	r.event(b.begin(), "response.content_part.added", 0, append(at[:3:3], member{"part", outputText("", nil)})...)
	for _, e := range b.events {
		r.event(e.at, "response.output_text.delta", len(e.tokens),
			append(at[:3:3], member{"delta", joined(e.tokens)}, member{"logprobs", r.listed(e.tokens)})...)
	}
	r.event(b.end(), "response.output_text.done", 0,
		append(at[:3:3], member{"text", b.text}, member{"logprobs", r.listed(b.tokens())})...)
	r.event(b.end(), "response.content_part.done", 0,
		append(at[:3:3], member{"part", outputText(b.text, r.listed(b.tokens()))})...)
	r.item(b.end(), "done", index, 0, r.outputItem(index, b))
}

func (r *responsesStream) call(index int, b block) {
	r.item(b.begin(), "added", index, 1, r.callItem(index, block{call: b.call, name: b.name}, "in_progress"))
	id := r.idOf("fc_", index)
	r.deltas(b, "response.function_call_arguments", "arguments", []member{{"item_id", id}, {"output_index", index}})
	r.item(b.end(), "done", index, 0, r.outputItem(index, b))
}

// listed are the log-probabilities of tokens, an empty list when none were asked for.
func (p *answerPlan) listed(tokens []token) json.RawMessage {
	if p.top < 0 {
		return json.RawMessage("[]")
	}
	return p.logprobList(tokens)
}

func outputText(text string, logprobs json.RawMessage) object {
	if logprobs == nil {
		logprobs = json.RawMessage("[]")
	}
	return object{{"type", "output_text"}, {"annotations", array{}}, {"logprobs", logprobs}, {"text", text}}
}

// outputItem is a finished item of the output.
func (p *answerPlan) outputItem(index int, b block) object {
	status := "completed"
	if p.responseStatus() == "incomplete" && index == len(p.blocks(0))-1 {
		status = "incomplete"
	}
	switch b.kind {
	case kindReasoning:
		return object{
			{"id", p.idOf("rs_", index)}, {"type", "reasoning"},
			{"summary", array{object{{"type", "summary_text"}, {"text", b.text}}}},
		}
	case kindText:
		return object{
			{"id", p.idOf("msg_", index)}, {"type", "message"}, {"status", status},
			{"content", array{outputText(b.text, p.listed(b.tokens()))}}, {"role", "assistant"},
		}
	}
	return p.callItem(index, b, status)
}

func (p *answerPlan) callItem(index int, b block, status string) object {
	return object{
		{"id", p.idOf("fc_", index)}, {"type", "function_call"}, {"status", status},
		{"arguments", b.text}, {"call_id", p.callID(0, b.call)}, {"name", b.name},
	}
}

func (p *answerPlan) responseOutput() array {
	out := array{}
	for i, b := range p.blocks(0) {
		out = append(out, p.outputItem(i, b))
	}
	return out
}

func (p *answerPlan) responseStatus() string {
	if p.choices[0].finish == "length" {
		return "incomplete"
	}
	return "completed"
}

// response is the response object as it stands under a status.
func (p *answerPlan) response(status string, output array) object {
	var incomplete, usage any
	if status == "incomplete" {
		incomplete = object{{"reason", "max_output_tokens"}}
	}
	if status != "in_progress" && p.Options.Usage != UsageNone {
		t := p.total
		usage = object{
			{"input_tokens", t.Prompt}, {"input_tokens_details", object{{"cached_tokens", t.Cached}}},
			{"output_tokens", t.Completion}, {"output_tokens_details", object{{"reasoning_tokens", t.Reasoning}}},
			{"total_tokens", t.Prompt + t.Completion},
		}
	}
	return object{
		{"id", p.id}, {"object", "response"}, {"created_at", created}, {"status", status}, {"error", nil},
		{"incomplete_details", incomplete}, {"instructions", nil}, {"metadata", object{}}, {"model", p.model}, {"output", output},
		{"parallel_tool_calls", true}, {"temperature", 1}, {"tool_choice", "auto"}, {"tools", array{}}, {"top_p", 1}, {"usage", usage},
	}
}

func plainResponses(p *answerPlan) []byte {
	return encode(p.response(p.responseStatus(), p.responseOutput()))
}
