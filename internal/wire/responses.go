package wire

import (
	"bytes"
	"strings"

	"github.com/valyala/fastjson"
)

// responsesKnows are the top-level keys of an event that need not be kept beside the dialect, and those of a whole
// response, most of which repeat the request.
func responsesKnows(key string) bool {
	switch key {
	case "type", "response", "sequence_number", "item", "item_id", "output_index", "content_index", "summary_index",
		"delta", "part", "text", "logprobs", "refusal", "arguments", "name", "input", "code", "transcript", "annotation",
		"annotation_index", "partial_image_b64", "partial_image_index", "error", "message", "param":
		return true
	case "id", "object", "created_at", "completed_at", "status", "model", "output", "output_text", "usage", "incomplete_details",
		"background", "conversation", "frequency_penalty", "instructions", "max_output_tokens", "max_tool_calls", "metadata",
		"parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention",
		"reasoning", "safety_identifier", "service_tier", "store", "temperature", "tool_choice", "tools", "top_logprobs", "top_p",
		"truncation", "user":
		return true
	}
	return false
}

// isResponses tells an event or a whole answer of the dialect. Some gateways leave the type of an event to its SSE name.
func isResponses(v *fastjson.Value) bool {
	return firstOf(v, "type", "response", "item", "item_id", "part") != nil || string(text(v.Get("object"))) == "response"
}

// readResponses reads an event of /v1/responses, or the one response object of an answer that was not streamed.
func readResponses(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	r := responsesReader{a: a, c: a.choice(0)}
	kind := a.typeOf(v)
	switch whole := v.Get("response"); {
	case string(kind) == "error":
		r.failed(v)
	case whole != nil && whole.Type() == fastjson.TypeObject:
		r.response(whole, string(kind))
	case string(text(v.Get("object"))) == "response":
		r.response(v, "")
	case !a.quiet:
		r.event(kind, v)
	}
	a.readError(v.Get("error"), "") // llama.cpp sends it bare
	a.keepUnknown(v.GetObject(), data, responsesKnows)
}

// responsesReader reads one event into the answer, which has one choice.
type responsesReader struct {
	a *answer
	c *choice
}

// failed reads an error event, whose fields stand in the event itself or in an error object.
func (r *responsesReader) failed(v *fastjson.Value) {
	r.a.readError(v.Get("error"), "")
	e := errorObject(v)
	e.Type = "" // that of the event
	r.a.fail(e, "")
	if !r.a.ended {
		r.a.finish = "error"
	}
}

// finals are the events that end a response, with the status it then has.
var finals = map[string]string{
	"response.completed": "completed", "response.incomplete": incomplete, "response.failed": "failed",
	"response.cancelled": "cancelled", "response.done": "completed",
}

// response reads a response object: the one that an event carries, or with kind "" one that is the whole body.
func (r *responsesReader) response(v *fastjson.Value, kind string) {
	a := r.a
	identity(&a.id, v.Get("id"))
	identity(&a.model, v.Get("model"))
	status, final := finals[kind]
	if s := word(v.Get("status")); s != "" {
		status = s
	}
	if kind == "" {
		// A response that was sent to the background is answered by an object that is not done, and by no more.
		final = status != "" && (isFinal(status) || a.where == whereBody)
	}
	if u, ok := readUsage(v.Get("usage")); ok {
		a.takeUsage(u, !final)
	}
	if kind == "response.queued" {
		a.queued++
		a.event.phase = PhaseQueue
	}
	if !final {
		return
	}
	if !a.quiet && !a.ended {
		for i, item := range v.GetArray("output") {
			r.item(item, count{int64(i), true}, stageFinal)
		}
	}
	a.readError(v.Get("error"), "")
	if reason := word(v.Get("incomplete_details", "reason")); reason != "" && status == incomplete {
		status += ":" + reason
	}
	r.c.finish, r.c.finished = status, true
	a.ended = true
	if kind != "" {
		a.finish = kind
	}
}

func isFinal(status string) bool {
	_, ok := finals["response."+status]
	return ok
}

// textStreams are the texts that come in deltas, by the name of their events without its last word.
var textStreams = map[string]itemPart{
	"response.output_text":            {kind: KindText},
	"response.audio.transcript":       {kind: KindText},
	"response.refusal":                {kind: KindRefusal},
	"response.reasoning_text":         {kind: KindReasoning},
	"response.reasoning":              {kind: KindReasoning},
	"response.reasoning_summary_text": {kind: KindReasoning, summary: true},
	"response.reasoning_summary":      {kind: KindReasoning, summary: true},
}

// event reads an event that carries no response: a piece of an item, or an item.
func (r *responsesReader) event(kind []byte, v *fastjson.Value) {
	switch string(kind) {
	case "response.output_item.added":
		r.item(v.Get("item"), placeOf(v.Get("output_index")), stageAdded)
		return
	case "response.output_item.done":
		r.item(v.Get("item"), placeOf(v.Get("output_index")), stageDone)
		return
	case "response.image_generation_call.partial_image":
		r.a.addMedia(v.Get("partial_image_b64"))
		return
	case "response.audio.delta":
		r.a.addMedia(v.Get("delta"))
		return
	}
	dot := bytes.LastIndexByte(kind, '.')
	if dot < 0 {
		return
	}
	stream, last := kind[:dot], string(kind[dot+1:])
	switch p, isText := textStreams[string(stream)]; {
	case isText && last == "delta":
		r.textDelta(p, v)
	case isText && last == "done":
		p.n = partIndex(p, v)
		it, known := r.itemOf(v, p.class())
		r.whole(it, known, p, firstOf(v, "text", "refusal", "transcript"), stageDone)
	case string(stream) == "response.content_part":
		c := classMessage
		if string(text(v.Get("part", "type"))) == "reasoning_text" {
			c = classReasoning
		}
		it, known := r.itemOf(v, c)
		r.messagePart(it, known, v.Get("part"), partIndex(itemPart{}, v), stageDone)
	case isCallStream(stream) && last == "delta":
		r.arguments(stream, v, v.Get("delta"), false)
	case isCallStream(stream) && last == "done":
		if args := firstOf(v, argumentKeys...); args != nil {
			r.arguments(stream, v, args, true)
		}
	}
}

// isCallStream tells the streams that bring what a tool is called with (function_call_arguments, code_interpreter_call_code,
// mcp_call_arguments ...) from what it answers and from its states.
func isCallStream(stream []byte) bool {
	_, name, ok := strings.Cut(string(stream), "_call")
	return ok && name != "" && !strings.Contains(name, "output")
}

// textDelta adds a piece of a text.
func (r *responsesReader) textDelta(p itemPart, v *fastjson.Value) {
	p.n = partIndex(p, v)
	piece := v.Get("delta")
	b := text(piece)
	if len(b) == 0 {
		b = text(piece.Get("text"))
	}
	if len(b) == 0 {
		return
	}
	it, _ := r.itemOf(v, p.class())
	r.add(it, p, b, stageAdded)
	r.logprobs(v)
	r.a.event.again = func(b []byte) { r.add(it, p, b, stageAdded) }
}

// partIndex is the place of a part in its item, -1 when the engine does not tell.
func partIndex(p itemPart, v *fastjson.Value) int {
	key := "content_index"
	if p.summary {
		key = "summary_index"
	}
	i, ok := indexOf(v.Get(key))
	if !ok {
		return -1
	}
	return i
}

// firstOf is the first of the fields that is there.
func firstOf(v *fastjson.Value, keys ...string) *fastjson.Value {
	for _, k := range keys {
		if f := v.Get(k); present(f) {
			return f
		}
	}
	return nil
}
