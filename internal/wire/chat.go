package wire

import "github.com/valyala/fastjson"

// chatKnows are the top-level keys that the chat and completions dialects speak; all others are extras.
func chatKnows(key string) bool {
	switch key {
	case "id", "object", "created", "model", "choices", "usage", "system_fingerprint", "error":
		return true
	}
	return false
}

// readChat reads a chunk or a whole body of /v1/chat/completions.
func readChat(a *answer, v *fastjson.Value, data []byte) { a.readOpenAI(v, data, readChatChoice) }

// envelope is everything around the choices of an OpenAI chunk.
type envelope struct {
	choices  []*fastjson.Value
	failure  *fastjson.Value
	usage    usageCounts
	hasUsage bool
	nameless bool // the model is there and empty
}

// readOpenAI reads what chat and legacy completions have in common; readChoice reads one choice.
func (a *answer) readOpenAI(v *fastjson.Value, data []byte, readChoice func(*answer, *choice, *fastjson.Value)) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	e := a.readEnvelope(v.GetObject())
	a.nameless = e.nameless && a.model != ""
	for i, c := range e.choices {
		if c.Type() != fastjson.TypeObject {
			continue
		}
		index, ok := indexOf(c.Get("index"))
		if !ok {
			index = i
		}
		readChoice(a, a.choice(index), c)
	}
	if len(e.choices) != 1 {
		a.event.again = nil
	}
	if a.event.unknown {
		a.readExtensions(v.GetObject(), &e)
	}
	if e.hasUsage {
		a.takeUsage(e.usage, len(e.choices) > 0)
	}
	if timed := e.usage.timed; a.event.unknown || timed {
		a.keepExtras(data, func(key string) bool { return !chatKnows(key) || timed && key == "usage" })
	}
	if len(e.choices) > 0 {
		a.readError(e.failure, whereEmbedded)
	} else {
		a.readError(e.failure, "")
	}
}

func (a *answer) readEnvelope(obj *fastjson.Object) (e envelope) {
	obj.Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "id":
			identity(&a.id, v)
		case "model":
			identity(&a.model, v)
			e.nameless = v.Type() == fastjson.TypeString && len(text(v)) == 0
		case "system_fingerprint":
			identity(&a.fingerprint, v)
		case "object", "created":
		case "choices":
			e.choices = v.GetArray()
		case "usage":
			e.takeUsage(v)
		case "error":
			e.failure = v
		default:
			a.event.unknown = a.event.unknown || present(v)
		}
	})
	return e
}

// takeUsage keeps the first usage object that has a count.
func (e *envelope) takeUsage(v *fastjson.Value) {
	if !e.hasUsage {
		e.usage, e.hasUsage = readUsage(v)
	}
}

// readExtensions reads the top-level fields outside the OpenAI format that carry more than times: Groq's usage,
// TensorFold's error, llama.cpp's token ids, and signs of life before the first token.
func (a *answer) readExtensions(obj *fastjson.Object, e *envelope) {
	obj.Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "x_groq":
			e.takeUsage(v.Get("usage"))
			a.readError(v.Get("error"), whereEmbedded)
		case "tensorfold_error":
			a.readError(v, whereEmbedded)
		case "prompt_progress":
			a.readLlamaProgress(v)
		case "queue_position":
			a.readQueue(v)
		case "tokens":
			a.countTokenIDs(v)
		case "__verbose":
			a.countTokenIDs(v.Get("tokens"))
		}
	})
}

// readQueue notes an event that tells a place in the engine's queue.
func (a *answer) readQueue(v *fastjson.Value) {
	if present(v) && !a.quiet {
		a.queued++
		a.event.phase = PhaseQueue
	}
}

// readChatChoice reads one element of choices: a delta of a stream or the message of a whole answer.
func readChatChoice(a *answer, c *choice, v *fastjson.Value) {
	var delta, message *fastjson.Value
	textBefore, open := c.text.Len(), !c.finished
	v.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "delta":
			delta = v
		case "message":
			message = v
		case "finish_reason":
			a.setFinish(c, v)
		case "logprobs":
			a.countLogprobs(v.Get("content"))
			a.countLogprobs(v.Get("refusal"))
		case "token_ids":
			a.countTokenIDs(v)
		case "error": // OpenRouter
			a.readError(v, whereEmbedded)
		}
	})
	streamed := delta != nil && delta.Type() == fastjson.TypeObject
	if delta == nil || delta.Type() != fastjson.TypeObject {
		delta = message // some gateways send both; they say the same
	}
	if delta != nil && delta.Type() == fastjson.TypeObject {
		a.readMessage(c, delta.GetObject())
	}
	if c.text.Len() > textBefore {
		c.lastText, c.atOnce = textBefore, streamed && open && c.finished
	}
	a.mayRecur(c)
	if add := a.event.again; add != nil && c.text.Len() > textBefore {
		a.event.again = func(b []byte) {
			c.lastText = c.text.Len()
			add(b)
		}
	}
}

// readMessage reads the generated content of a delta or a message.
func (a *answer) readMessage(c *choice, m *fastjson.Object) {
	var thought [3][]byte // by spelling: the same text can come under several, and counts once
	m.Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "content":
			a.readContent(c, v)
		case "reasoning_content":
			thought[0] = text(v)
		case "reasoning":
			thought[1] = text(v)
		case "thinking":
			thought[2] = text(v)
		case "refusal":
			a.add(&c.refusal, KindRefusal, text(v))
		case "audio": // sound, and what it says
			a.addMedia(v.Get("data"))
			a.add(&c.text, KindText, text(v.Get("transcript")))
		case "images": // OpenRouter
			for _, image := range v.GetArray() {
				a.addMedia(image.Get("image_url", "url"))
			}
		case "tool_calls":
			a.readToolCalls(c, v, false)
		case "function_call":
			if v.Type() == fastjson.TypeObject {
				f := fragment{hasIndex: true}
				f.function(v)
				a.addFragment(c, f)
			}
		}
	})
	for _, b := range thought {
		if len(b) > 0 {
			a.add(&c.reasoning, KindReasoning, b)
			return
		}
	}
}

// readContent reads a text, or Mistral's list of parts.
func (a *answer) readContent(c *choice, v *fastjson.Value) {
	if v.Type() != fastjson.TypeArray {
		a.add(&c.text, KindText, text(v))
		return
	}
	for _, part := range v.GetArray() {
		switch string(text(part.Get("type"))) {
		case "text", "output_text":
			a.add(&c.text, KindText, text(part.Get("text")))
		case "refusal":
			a.add(&c.refusal, KindRefusal, text(part.Get("refusal")))
		case "thinking", "reasoning":
			a.readThinking(c, part)
		}
	}
}

// readThinking reads a thinking part, whose content is a text or again a list of text parts.
func (a *answer) readThinking(c *choice, part *fastjson.Value) {
	for _, key := range [...]string{"thinking", "reasoning", "text"} {
		v := part.Get(key)
		if !present(v) {
			continue
		}
		a.add(&c.reasoning, KindReasoning, text(v))
		for _, p := range v.GetArray() {
			a.add(&c.reasoning, KindReasoning, text(p.Get("text")))
		}
		return
	}
}
