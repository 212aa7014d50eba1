package wire

import (
	"strings"

	"github.com/valyala/fastjson"
)

// sglangKnows are the keys of /generate that need not be kept beside the dialect. meta_info is kept: the engine's own
// times stand there.
func sglangKnows(key string) bool {
	switch key {
	case "text", "output_ids", "index", "error":
		return true
	}
	return false
}

// isSGLang tells an event of SGLang's /generate from the formats that other servers speak under that path.
func isSGLang(v *fastjson.Value) bool { return present(v.Get("meta_info")) }

// repetition is whether the events of a choice repeat what the ones before them said.
type repetition uint8

const (
	undecided   repetition = iota
	cumulative             // an event has the whole text so far: SGLang's default
	incremental            // an event has what is new
)

// seen is what a choice has said before the event that is being read.
type seen struct {
	mode          repetition
	ids, logprobs int
	completion    count // running token count
}

// readSGLang reads an event of /generate, or one element of a whole answer. A request with several prompts numbers them
// by index.
func readSGLang(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	index, _ := indexOf(v.Get("index"))
	if a.framing == FramingJSONArray && !present(v.Get("index")) {
		index = len(a.choices) // the elements of a whole answer are numbered by their place
	}
	c, meta := a.choice(index), v.Get("meta_info")
	a.readSGLangMeta(c, meta)
	a.readSGLangContent(c, v, meta)
	if e := v.Get("error"); e != nil {
		a.readError(e, "")
	}
	a.keepExtras(data, func(key string) bool { return !sglangKnows(key) })
}

// readSGLangMeta reads what an event says about the answer as a whole.
func (a *answer) readSGLangMeta(c *choice, meta *fastjson.Value) {
	if !present(meta) {
		return
	}
	identity(&a.id, meta.Get("id"))
	usage := usageCounts{
		prompt: countOf(meta.Get("prompt_tokens")), completion: countOf(meta.Get("completion_tokens")),
		cached: countOf(meta.Get("cached_tokens")), reasoning: countOf(meta.Get("reasoning_tokens")), ofChoice: true,
	}
	reason := meta.Get("finish_reason")
	if present(reason) && reason.Type() == fastjson.TypeObject {
		a.setFinish(c, reason.Get("type"))
		if message := word(reason.Get("message")); c.finish == "abort" && message != "" {
			a.fail(Error{Message: message, Type: c.finish, Code: word(reason.Get("status_code"))}, whereEmbedded)
		}
	} else {
		a.setFinish(c, reason)
	}
	if usage.prompt.ok || usage.completion.ok {
		a.takeUsage(usage, !c.finished)
	}
}

// readSGLangContent adds what is new in an event.
func (a *answer) readSGLangContent(c *choice, v, meta *fastjson.Value) {
	if a.quiet {
		return
	}
	b, ids := text(v.Get("text")), v.Get("output_ids")
	logprobs := len(meta.GetArray("output_token_logprobs"))
	total := countOf(meta.Get("completion_tokens"))
	c.seen.decide(c.text.String(), string(b), len(ids.GetArray()), total)
	fresh := len(ids.GetArray())
	if c.seen.mode == cumulative {
		a.replaceText(c, string(b))
		fresh, logprobs = max(0, fresh-c.seen.ids), max(0, logprobs-c.seen.logprobs)
	} else {
		a.add(&c.text, KindText, b)
	}
	if present(ids) {
		a.tokenIDs += fresh
		a.event.ids += fresh
		a.event.counted = true
	}
	a.logprobs += logprobs
	a.event.logprobs += logprobs
	a.event.counted = a.event.counted || logprobs > 0
	if fresh > 0 && v.Get("text") == nil { // a server without a tokenizer: the ids are the answer
		a.event.kinds |= KindText
	}
	c.seen.ids += fresh
	c.seen.logprobs += logprobs
	c.seen.completion = total.or(c.seen.completion)
}

// decide settles the mode at the first event that can tell: by the number of ids against the number of tokens, else by
// whether the text begins with all that was said before.
func (s *seen) decide(before, text string, ids int, total count) {
	first := before == "" && s.ids == 0
	switch {
	case s.mode != undecided || first:
	case ids > 0 && total.ok && int64(ids) == total.n:
		s.mode = cumulative
	case ids > 0 && total.ok && s.completion.ok && int64(ids) == total.n-s.completion.n:
		s.mode = incremental
	case strings.HasPrefix(text, before) || text != "" && strings.HasPrefix(before, text):
		s.mode = cumulative // a stop word that is taken away makes it shorter
	default:
		s.mode = incremental
	}
}

// replaceText takes the whole text so far. What is the same as before is not new content; an engine may rewrite the
// end of what it said, or take it away.
func (a *answer) replaceText(c *choice, whole string) {
	before := c.text.String()
	if rest, ok := strings.CutPrefix(whole, before); ok {
		a.add(&c.text, KindText, []byte(rest))
		return
	}
	c.text.Reset()
	c.text.WriteString(whole)
	if len(whole) > len(before) {
		a.event.kinds |= KindText
	}
}
