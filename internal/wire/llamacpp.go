package wire

import "github.com/valyala/fastjson"

// llamaCppKnows are the keys of /completion that need not be kept beside the dialect. The prompt comes back with the
// last event and is left out for its size.
func llamaCppKnows(key string) bool {
	switch key {
	case "index", "content", "tokens", "stop", "id_slot", "model", "tokens_predicted", "tokens_evaluated", "prompt",
		"completion_probabilities", "probs", "stop_type", "error":
		return true
	}
	return false
}

// isLlamaCpp tells an event of /completion, or of the legacy completions that gateways speak under /completions.
func isLlamaCpp(v *fastjson.Value) bool {
	return present(v.Get("choices")) || present(v.Get("content")) && (present(v.Get("stop")) || present(v.Get("tokens_predicted")))
}

// readLlamaCpp reads an event of llama.cpp's /completion or a whole answer of it. With several prompts or choices each
// has its own events, numbered by index, and its own counts.
func readLlamaCpp(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	if v.Get("choices") != nil {
		readCompletions(a, v, data)
		return
	}
	index, _ := indexOf(v.Get("index"))
	e := llamaEvent{c: a.choice(index), usage: usageCounts{ofChoice: true}}
	v.GetObject().Visit(func(key []byte, v *fastjson.Value) { e.field(a, string(key), v) })
	if e.stop {
		e.c.ended = true
		a.finish = "stop:true"
		a.readLegacyStop(e.c, v)
	}
	if e.usage.prompt.ok || e.usage.completion.ok {
		a.takeUsage(e.usage, !e.stop)
	}
	a.keepUnknown(v.GetObject(), data, llamaCppKnows)
}

// llamaEvent is one event while it is read.
type llamaEvent struct {
	c     *choice
	usage usageCounts
	stop  bool // it is the last of its choice
}

func (e *llamaEvent) field(a *answer, key string, v *fastjson.Value) {
	switch key {
	case "content":
		a.add(&e.c.text, KindText, text(v))
	case "tokens":
		a.countTokenIDs(v)
	case "completion_probabilities", "probs": // probs is the older name
		a.countLogprobs(v)
	case "stop":
		e.stop = isTrue(v)
	case "stop_type":
		if word(v) != "none" {
			a.setFinish(e.c, v)
		}
	case "model":
		identity(&a.model, v)
	case "tokens_evaluated":
		e.usage.prompt = countOf(v)
	case "tokens_predicted":
		e.usage.completion = countOf(v)
	case "timings":
		e.usage.cached = countOf(v.Get("cache_n")) // tokens_cached is the size of the cache in the end, not this
	case "prompt_progress":
		a.readLlamaProgress(v)
	case "error":
		a.readError(v, "")
	}
}

// readLegacyStop reads the flags that older builds send in the place of stop_type.
func (a *answer) readLegacyStop(c *choice, v *fastjson.Value) {
	if c.finished {
		return
	}
	for _, f := range [...]struct{ key, reason string }{{"stopped_eos", "eos"}, {"stopped_limit", "limit"}, {"stopped_word", "word"}} {
		if isTrue(v.Get(f.key)) {
			c.finish, c.finished = f.reason, true
			return
		}
	}
}

// readLlamaProgress reads {total, cache, processed, time_ms}, which come while the prompt is read. Processed includes
// the cached tokens.
func (a *answer) readLlamaProgress(v *fastjson.Value) {
	if !present(v) {
		return
	}
	a.event.phase = PhasePrompt
	a.event.progress = &Progress{
		Tokens:   countOf(v.Get("processed")).ptr(),
		Total:    countOf(v.Get("total")).ptr(),
		Cached:   countOf(v.Get("cache")).ptr(),
		EngineMS: number(v.Get("time_ms")),
	}
}
