package wire

import (
	"strings"

	"github.com/valyala/fastjson"
)

// anthropicKnows are the top-level keys of an event or a whole message that need not be kept beside the dialect.
func anthropicKnows(key string) bool {
	switch key {
	case "type", "message", "index", "content_block", "delta", "usage", "error", "request_id", // events
		"id", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "container", "context_management":
		return true
	}
	return false
}

// readAnthropic reads an event of /v1/messages, or the one message of an answer that was not streamed.
func readAnthropic(a *answer, v *fastjson.Value, data []byte) {
	if v.Type() != fastjson.TypeObject {
		return
	}
	c := a.choice(0)
	switch string(a.typeOf(v)) {
	case "message_start":
		a.readAnthropicMessage(c, v.Get("message"))
		if a.event.hasUsage && !c.finished {
			a.usage.opening, a.anthropic.opening = true, a.anthropic.output.ok
		}
	case "message", "":
		a.readAnthropicMessage(c, v)
	case "content_block_start":
		a.readBlock(c, v.Get("index"), v.Get("content_block"))
	case "content_block_delta":
		a.readBlockDelta(c, v.Get("index"), v.Get("delta"))
		a.mayRecur(c)
	case "content_block_stop":
		a.endBlock(c, v.Get("index"))
	case "message_delta":
		a.setFinish(c, v.Get("delta", "stop_reason"))
		a.takeAnthropicUsage(v.Get("usage"), c.finished)
	case "message_stop":
		a.ended, a.finish = true, "message_stop"
	}
	a.readError(v.Get("error"), "")
	a.keepUnknown(v.GetObject(), data, anthropicKnows)
}

// readAnthropicMessage reads a whole message, or the one that opens a stream, whose content is still empty.
func (a *answer) readAnthropicMessage(c *choice, m *fastjson.Value) {
	if m == nil || m.Type() != fastjson.TypeObject {
		return
	}
	identity(&a.id, m.Get("id"))
	identity(&a.model, m.Get("model"))
	blocks := m.Get("content")
	for i, b := range blocks.GetArray() {
		a.readContentBlock(c, i, true, b)
	}
	a.add(&c.text, KindText, text(blocks)) // some gateways send the text alone
	a.setFinish(c, m.Get("stop_reason"))
	a.takeAnthropicUsage(m.Get("usage"), c.finished)
}

func (a *answer) readBlock(c *choice, index, block *fastjson.Value) {
	i, ok := indexOf(index)
	a.readContentBlock(c, i, ok, block)
}

// readContentBlock reads a content block: whole, or as a stream opens it. What a tool on the engine's side answered
// (web_search_tool_result and its like) was not generated, and what was redacted cannot be read.
func (a *answer) readContentBlock(c *choice, index int, hasIndex bool, b *fastjson.Value) {
	switch kind := text(b.Get("type")); string(kind) {
	case "text":
		a.add(&c.text, KindText, text(b.Get("text")))
	case "thinking":
		a.add(&c.reasoning, KindReasoning, text(b.Get("thinking")))
	default:
		if !strings.HasSuffix(string(kind), "tool_use") {
			return
		}
		f := fragment{index: index, hasIndex: hasIndex, id: text(b.Get("id")), kind: kind, name: text(b.Get("name"))}
		f.byEngine = string(kind) != "tool_use"
		// A stream opens a call with an empty object. One that is not empty may be the whole input, or what the deltas replace.
		f.provisional = true
		if input := b.Get("input"); !isEmptyObject(input) || a.where == whereBody {
			f.args = input
		}
		if hasIndex && !a.quiet {
			c.tools.begin(f)
		}
		a.addFragment(c, f)
	}
}

func isEmptyObject(v *fastjson.Value) bool {
	return v != nil && v.Type() == fastjson.TypeObject && v.GetObject().Len() == 0
}

// endBlock ends a content block. The input of a call that no delta filled is the empty object it was opened with.
func (a *answer) endBlock(c *choice, index *fastjson.Value) {
	i, ok := indexOf(index)
	t := c.tools.byIndex[i]
	if !ok || a.quiet || t == nil {
		return
	}
	t.closed = true
	if t.provisional && t.args.Len() == 0 {
		t.args.WriteString("{}")
	}
}

// readBlockDelta reads what a delta adds. Signatures and citations are no content.
func (a *answer) readBlockDelta(c *choice, index, d *fastjson.Value) {
	a.add(&c.text, KindText, text(d.Get("text")))
	a.add(&c.reasoning, KindReasoning, text(d.Get("thinking")))
	if args := d.Get("partial_json"); len(text(args)) > 0 {
		f := fragment{args: args}
		f.index, f.hasIndex = indexOf(index)
		a.addFragment(c, f)
	}
}

// anthropicCounts are the counts of a message as sent. They are cumulative, and each event brings only some of them.
type anthropicCounts struct {
	input, read, written, output, thinking count

	opening bool // output is still what the opening event said, in the place of a count
}

// takeAnthropicUsage books a usage object. Its input leaves out what was read from a cache and what was written to one:
// the prompt is all three. final says that no later usage is to come.
//
// A count that grows does not fall back to 0: some gateways fill in what they do not know. So a 0 of the input, and one of
// the output of an answer that has content, stands only where nothing was told before. An answer without content did
// generate nothing, and its 0 takes the place of what the opening event said.
func (a *answer) takeAnthropicUsage(v *fastjson.Value, final bool) {
	if v == nil || v.Type() != fastjson.TypeObject {
		return
	}
	s := &a.anthropic
	seen := false
	empty := !a.hasContent()
	for _, f := range [...]struct {
		dst   *count
		v     *fastjson.Value
		zeros bool // a 0 counts
	}{
		{&s.input, v.Get("input_tokens"), false},
		{&s.read, v.Get("cache_read_input_tokens"), false},
		{&s.written, v.Get("cache_creation_input_tokens"), false},
		{&s.output, v.Get("output_tokens"), empty},
		{&s.thinking, v.Get("output_tokens_details", "thinking_tokens"), empty},
	} {
		n := countOf(f.v)
		seen = seen || n.ok
		if n.n > 0 || n.ok && (f.zeros || !f.dst.ok) {
			*f.dst = n
			s.opening = s.opening && f.dst != &s.output
		}
	}
	if !seen {
		return
	}
	u := usageCounts{completion: s.output, cached: s.read, creation: s.written, reasoning: s.thinking}
	if s.input.ok {
		u.prompt = s.input.plus(s.read).plus(s.written)
	}
	a.takeUsage(u, !final)
	a.usage.opening = s.opening
}
