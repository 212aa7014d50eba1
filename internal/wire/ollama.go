package wire

import "github.com/valyala/fastjson"

// ollamaKnows are the keys of a line that need not be kept beside the dialect. The durations and counts of the last
// line are extras: they are kept verbatim, and Timings is read from them.
func ollamaKnows(key string) bool {
	switch key {
	case "model", "created_at", "message", "response", "thinking", "done", "done_reason", "context", "logprobs", "error", "tool_calls":
		return true
	}
	return false
}

// readOllama reads a line of /api/chat or /api/generate, or the one object of an answer that was not streamed.
func readOllama(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	c := a.choice(0)
	a.readOllamaMessage(c, v.GetObject()) // /api/generate has its content in the line itself
	a.readOllamaEnd(c, v.GetObject())
	a.mayRecur(c)
	a.keepUnknown(v.GetObject(), data, ollamaKnows)
}

// readOllamaEnd reads what a line says about the answer as a whole: its end, error and counts.
func (a *answer) readOllamaEnd(c *choice, obj *fastjson.Object) {
	var usage usageCounts
	done := false
	obj.Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "done":
			done = v.Type() == fastjson.TypeTrue
		case "done_reason":
			a.setFinish(c, v)
		case "error":
			a.readError(v, "")
		case "prompt_eval_count":
			usage.prompt = countOf(v)
		case "eval_count":
			usage.completion = countOf(v)
		case "prompt_cache_hit_tokens": // TensorSharp
			usage.cached = countOf(v)
		}
	})
	if usage.prompt.ok || usage.completion.ok {
		a.takeUsage(usage, !done)
	}
	switch {
	case done:
		a.ended, a.finish = true, "done:true"
	case a.failure != nil && !a.ended:
		a.finish = "error"
	}
}

// readOllamaMessage reads the generated content of a line or of its message. Tool calls come whole, their arguments as
// objects.
func (a *answer) readOllamaMessage(c *choice, m *fastjson.Object) {
	m.Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "model":
			identity(&a.model, v)
		case "created_at":
			a.stampMoment(text(v))
		case "message":
			if v.Type() == fastjson.TypeObject {
				a.readOllamaMessage(c, v.GetObject())
			}
		case "content", "response":
			a.add(&c.text, KindText, text(v))
		case "thinking":
			a.add(&c.reasoning, KindReasoning, text(v))
		case "tool_calls":
			a.readToolCalls(c, v, true)
		case "logprobs":
			a.countLogprobs(v)
		}
	})
}
