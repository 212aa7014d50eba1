package wire

import "github.com/valyala/fastjson"

// usageCounts is one usage object, normalised.
type usageCounts struct {
	prompt, completion, cached, creation, reasoning count

	timed    bool // it also carries times or rates of the engine
	ofChoice bool // it counts one choice by its format, not the answer
}

// usageState is what an answer's usage objects come to. The last one wins whole: engines send running counts, and a
// sum or a mix of two objects would be nobody's figure.
type usageState struct {
	last     usageCounts
	events   int  // events that carried one
	running  bool // the last one rode on a chunk with choices
	finished int  // choices that were finished when the first one came
	opening  bool // the last one came with the event that opens an answer, so it counts the prompt alone
	content  bool // generated content was seen
	behind   bool // content came after the last one
}

// readUsage reads a usage object of the OpenAI family. An object without any count is none.
func readUsage(v *fastjson.Value) (u usageCounts, ok bool) {
	if v == nil || v.Type() != fastjson.TypeObject {
		return u, false
	}
	var hit, read, write, top count
	v.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			u.prompt = countOf(v).or(u.prompt)
		case "completion_tokens", "output_tokens":
			u.completion = countOf(v).or(u.completion)
		case "prompt_tokens_details", "input_tokens_details":
			u.cached = countOf(v.Get("cached_tokens")).or(u.cached)
			u.creation = countOf(v.Get("cache_creation_tokens")).or(u.creation)
		case "completion_tokens_details", "output_tokens_details":
			u.reasoning = countOf(v.Get("reasoning_tokens")).or(u.reasoning)
		case "reasoning_tokens": // SGLang: beside the counts, not in the details
			top = countOf(v)
		case "prompt_cache_hit_tokens":
			hit = countOf(v)
		case "cache_read_input_tokens":
			read = countOf(v)
		case "cache_creation_input_tokens":
			write = countOf(v)
		case "prompt_time", "completion_time", "queue_time", "total_time":
			u.timed = true
		}
	})
	u.cached = u.cached.or(hit).or(read)
	u.creation = u.creation.or(write)
	u.reasoning = u.reasoning.or(top)
	return u, u.prompt.ok || u.completion.ok
}

// takeUsage books the usage that the current event carried. onChunk says that the event has choices.
func (a *answer) takeUsage(u usageCounts, onChunk bool) {
	if a.usage.events == 0 {
		a.usage.finished = a.finishedChoices()
	}
	a.usage.last = u
	a.usage.events++
	a.usage.running, a.usage.opening, a.usage.behind = onChunk, false, false
	a.event.usage, a.event.hasUsage = u, true
}

// running is the running completion count of the event just read, or -1. A zero after content has come is a
// placeholder (Ollama sends usage with zeros on every chunk but the last), not a count.
func (a *answer) running() int64 {
	if a.event.kinds != 0 {
		a.usage.content, a.usage.behind = true, !a.event.hasUsage
	}
	u := a.event.usage.completion
	if !a.event.hasUsage || !u.ok || u.n == 0 && a.usage.content {
		return -1
	}
	return u.n
}

// hasContent reports whether generated content has come, be it with the event that is being read.
func (a *answer) hasContent() bool { return a.usage.content || a.event.kinds != 0 }

// snapshot is the usage as it stands, nil when none was reported.
func (s *usageState) snapshot(a *answer, t *Timings) *Usage {
	if s.events == 0 {
		return nil
	}
	return &Usage{
		Prompt:        s.last.prompt.ptr(),
		Completion:    s.last.completion.ptr(),
		Cached:        s.last.cached.ptr(),
		CacheCreation: s.last.creation.ptr(),
		Reasoning:     s.last.reasoning.ptr(),
		Events:        s.events,
		Partial:       s.opening || s.behind || s.running && !a.ended && !a.allFinished(),
		Opening:       s.opening,
		PerChoice:     s.perChoice(a, t),
	}
}

// perChoice reports whether the counts are those of one choice only. llama.cpp sends each choice its own usage: in a
// stream as many as there are choices, the first before all are finished; in a plain body one that equals the timings
// of a single slot.
func (s *usageState) perChoice(a *answer, t *Timings) bool {
	n := len(a.choices)
	if n < 2 {
		return false
	}
	if s.last.ofChoice || s.events == n && s.finished < n {
		return true
	}
	return t != nil && t.Source == "timings" && t.DecodeN != nil && s.last.completion.ok && *t.DecodeN == s.last.completion.n
}
