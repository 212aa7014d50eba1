package sim

import (
	"strconv"
	"strings"
	"time"
)

// The JSON of answers is written by appending: its key order is part of the bytes that must repeat, and a stream's
// events are made before its first byte leaves.

// open starts an answer object up to its choices.
func (p *answerPlan) open(object string) []byte {
	b := make([]byte, 0, 256)
	b = append(b, `{"id":`...)
	b = appendString(b, p.id)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, created, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, p.model)
	return append(b, `,"choices":[`...)
}

// chunkOpen starts a stream's event up to its choices.
func (p *answerPlan) chunkOpen() []byte {
	if p.chat {
		return p.open("chat.completion.chunk")
	}
	return p.open("text_completion")
}

// chunkChoice adds the one choice of a stream's event. content is the delta object in chat and the text otherwise.
func (p *answerPlan) chunkChoice(b []byte, index int, content, logprobs []byte, finish string) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	if p.chat {
		b = append(b, `,"delta":`...)
	} else {
		b = append(b, `,"text":`...)
	}
	b = append(b, content...)
	if logprobs != nil {
		b = append(append(b, `,"logprobs":`...), logprobs...)
	}
	return append(appendFinish(b, finish), '}')
}

// appendFinish adds the finish reason; "" is null.
func appendFinish(b []byte, finish string) []byte {
	b = append(b, `,"finish_reason":`...)
	if finish == "" {
		return append(b, "null"...)
	}
	return appendString(b, finish)
}

// roleEvent opens a choice of a chat stream.
func (p *answerPlan) roleEvent(index int) []byte {
	b := p.chunkChoice(p.chunkOpen(), index, []byte(`{"role":"assistant","content":""}`), nil, "")
	return p.close(b, 0, false)
}

// contentEvent carries tokens; running is the count of all tokens up to and with them.
func (p *answerPlan) contentEvent(e event, running int) []byte {
	var content []byte
	if p.chat {
		content = p.delta(e)
	} else {
		content = appendString(nil, joined(e.tokens))
	}
	b := p.chunkChoice(p.chunkOpen(), e.choice, content, p.logprobs(e.tokens), "")
	return p.close(b, running, p.Options.Usage == UsageContinuous)
}

// delta is the delta object of an event.
func (p *answerPlan) delta(e event) []byte {
	first := e.tokens[0]
	switch first.kind {
	case kindReasoning:
		b := append([]byte(`{"`), p.Thinking...)
		return append(appendString(append(b, `":`...), joined(e.tokens)), '}')
	case kindCall, kindArgs:
		b := append([]byte(`{"tool_calls":[`), p.callFragment(e)...)
		return append(b, `]}`...)
	}
	return append(appendString([]byte(`{"content":`), joined(e.tokens)), '}')
}

// callFragment is a piece of a tool call: its opening, a piece of its arguments, or all of it.
func (p *answerPlan) callFragment(e event) []byte {
	first, args := e.tokens[0], joined(e.tokens)
	b := strconv.AppendInt([]byte(`{"index":`), int64(first.call), 10)
	if first.kind == kindArgs {
		b = append(b, `,"function":{"arguments":`...)
		return append(appendString(b, args), "}}"...)
	}
	b = append(b, `,"id":`...)
	b = appendString(b, p.callID(e.choice, first.call))
	b = append(b, `,"type":"function","function":{"name":`...)
	b = appendString(b, first.text)
	b = append(b, `,"arguments":`...)
	return append(appendString(b, args[len(first.text):]), "}}"...)
}

// callID is the id of a tool call.
func (p *answerPlan) callID(index, call int) string {
	return "call_" + strconv.FormatUint(p.seed>>8, 36) + "_" + strconv.Itoa(index) + "_" + strconv.Itoa(call)
}

// finishEvent ends a choice of a stream.
func (p *answerPlan) finishEvent(index int, finish string) []byte {
	content := []byte(`{}`)
	if !p.chat {
		content = []byte(`""`)
	}
	b := p.chunkChoice(p.chunkOpen(), index, content, nil, finish)
	last := index == len(p.choices)-1
	withUsage := p.Options.Usage == UsageContinuous || p.Options.Usage == UsageFinish && last
	if p.Timings && last && !p.lastChunk() {
		return p.closeTimed(b, withUsage)
	}
	return p.close(b, p.total.Completion, withUsage)
}

// usageEvent is the chunk without choices.
func (p *answerPlan) usageEvent() []byte {
	if p.Timings {
		return p.closeTimed(p.chunkOpen(), true)
	}
	return p.close(p.chunkOpen(), p.total.Completion, true)
}

// close ends an answer object, with the usage as it stands at completion tokens.
func (p *answerPlan) close(b []byte, completion int, withUsage bool) []byte {
	b = append(b, ']')
	if withUsage {
		b = p.appendUsage(b, completion)
	}
	return append(b, '}')
}

// closeTimed ends an answer object with the engine's own timings.
func (p *answerPlan) closeTimed(b []byte, withUsage bool) []byte {
	b = p.close(b, p.total.Completion, withUsage)
	return append(p.appendTimings(b[:len(b)-1]), '}')
}

func (p *answerPlan) appendUsage(b []byte, completion int) []byte {
	number := func(key string, n int) {
		b = append(b, key...)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	number(`,"usage":{"prompt_tokens":`, p.total.Prompt)
	number(`,"completion_tokens":`, completion)
	number(`,"total_tokens":`, p.total.Prompt+completion)
	number(`,"prompt_tokens_details":{"cached_tokens":`, p.total.Cached)
	number(`},"completion_tokens_details":{"reasoning_tokens":`, min(p.total.Reasoning, completion))
	return append(b, "}}"...)
}

// appendTimings adds the planned times.
func (p *answerPlan) appendTimings(b []byte) []byte {
	return append(append(b, `,"timings":`...), p.timings()...)
}

// timings are the planned times under the names of llama.cpp.
func (p *answerPlan) timings() []byte {
	b := []byte("{")
	uncached := p.total.Prompt - p.total.Cached
	decode := p.last - p.prefill
	number := func(key string, v float64) {
		b = append(b, key...)
		b = strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	number(`"cache_n":`, float64(p.total.Cached))
	number(`,"prompt_n":`, float64(uncached))
	number(`,"prompt_ms":`, milliseconds(p.prefill))
	number(`,"prompt_per_second":`, rate(uncached, p.prefill))
	number(`,"predicted_n":`, float64(p.total.Completion))
	number(`,"predicted_ms":`, milliseconds(decode))
	number(`,"predicted_per_second":`, rate(p.total.Completion, decode))
	return append(b, '}')
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// rate is n a second; 0 for no time.
func rate(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// wholeAnswer is the body of a plain answer.
func (p *answerPlan) wholeAnswer() []byte {
	object := "text_completion"
	if p.chat {
		object = "chat.completion"
	}
	b := p.open(object)
	for i, c := range p.choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		if p.chat {
			b = p.appendMessage(append(b, `,"message":`...), i, c)
		} else {
			b = appendString(append(b, `,"text":`...), joined(c.tokens))
		}
		if lp := p.logprobs(c.tokens); lp != nil {
			b = append(append(b, `,"logprobs":`...), lp...)
		}
		b = append(appendFinish(b, c.finish), '}')
	}
	withUsage := p.Options.Usage != UsageNone
	if p.Timings {
		return p.closeTimed(b, withUsage)
	}
	return p.close(b, p.total.Completion, withUsage)
}

// appendMessage adds the message object of a choice.
func (p *answerPlan) appendMessage(b []byte, index int, c choice) []byte {
	var thinking, text strings.Builder
	var calls [][]token
	for _, t := range c.tokens {
		switch t.kind {
		case kindReasoning:
			thinking.WriteString(t.text)
		case kindText:
			text.WriteString(t.text)
		case kindCall:
			calls = append(calls, []token{t})
		case kindArgs:
			calls[len(calls)-1] = append(calls[len(calls)-1], t)
		}
	}
	b = append(b, `{"role":"assistant","content":`...)
	if text.Len() == 0 && calls != nil {
		b = append(b, "null"...)
	} else {
		b = appendString(b, text.String())
	}
	if thinking.Len() > 0 {
		b = append(append(append(b, `,"`...), p.Thinking...), `":`...)
		b = appendString(b, thinking.String())
	}
	for i, call := range calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, p.callFragment(event{choice: index, tokens: call, whole: true})...)
	}
	if calls != nil {
		b = append(b, ']')
	}
	return append(b, '}')
}

// joined is the text of tokens.
func joined(tokens []token) string {
	if len(tokens) == 1 {
		return tokens[0].text
	}
	var s strings.Builder
	for _, t := range tokens {
		s.WriteString(t.text)
	}
	return s.String()
}
