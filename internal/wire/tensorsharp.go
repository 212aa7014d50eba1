package wire

import "github.com/valyala/fastjson"

// tensorSharpKnows are the keys of TensorSharp's page events that need not be kept beside the dialect. Those of the last
// event are: Timings is read from them.
func tensorSharpKnows(key string) bool {
	switch key {
	case "token", "thinking", "tool_calls", "done", "error", "queue_position", "queue_pending":
		return true
	}
	return false
}

// isTensorSharp tells an event of TensorSharp's page from the other streams that web applications serve at /api/chat.
func isTensorSharp(v *fastjson.Value) bool {
	for _, key := range [...]string{"token", "thinking", "queue_position", "tokenCount"} {
		if present(v.Get(key)) {
			return true
		}
	}
	return isTrue(v.Get("done")) || present(v.Get("tool_calls"))
}

// readTensorSharp reads an event of the stream that TensorSharp's own web page speaks: places in the queue, thinking,
// tokens, whole tool calls, and one last event with counts, the rate and the error, if there was one.
func readTensorSharp(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	c, done := a.choice(0), false
	v.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "token":
			a.add(&c.text, KindText, text(v))
		case "thinking":
			a.add(&c.reasoning, KindReasoning, text(v))
		case "tool_calls":
			a.readFlatCalls(c, v)
		case "queue_position":
			a.readQueue(v)
		case "error":
			a.readError(v, "")
		case "done":
			done = isTrue(v)
		}
	})
	a.mayRecur(c)
	if done {
		a.endTensorSharp(v)
	}
	a.keepUnknown(v.GetObject(), data, tensorSharpKnows)
}

// endTensorSharp reads the last event. An answer that was aborted ended early, whoever asked for it.
func (a *answer) endTensorSharp(v *fastjson.Value) {
	a.ended, a.finish = true, "done:true"
	usage := usageCounts{
		prompt: countOf(v.Get("promptTokens")), completion: countOf(v.Get("tokenCount")), cached: countOf(v.Get("kvReusedTokens")),
	}
	if usage.prompt.ok || usage.completion.ok {
		a.takeUsage(usage, false)
	}
	if isTrue(v.Get("aborted")) {
		a.fail(Error{Message: "generation was aborted", Type: "aborted"}, "")
	}
}

// readFlatCalls reads a list of whole calls whose name and arguments stand in the entry itself.
func (a *answer) readFlatCalls(c *choice, list *fastjson.Value) {
	for _, call := range list.GetArray() {
		if call.Type() != fastjson.TypeObject {
			continue
		}
		f := fragment{index: c.tools.top, hasIndex: true, id: text(call.Get("id"))}
		f.function(call)
		a.addFragment(c, f)
	}
}
