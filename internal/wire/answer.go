package wire

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/valyala/fastjson"
)

// answer gathers what the events of a body say. A dialect reads one JSON value at a time into it.
type answer struct {
	id, model, fingerprint string

	choices []*choice       // in order of appearance
	byIndex map[int]*choice // all but the first
	usage   usageState
	extras  map[string]json.RawMessage
	omitted int    // extras left out for their number or size
	failure *Error // first error seen
	ended   bool   // the dialect's own terminal event was seen
	finish  string // [DONE], or the terminator word of the dialect's own terminal event
	where   string // where an error found now would be
	framing Framing

	anthropic anthropicCounts // of the Messages dialect
	items     *items          // of the Responses dialect, nil for others

	logprobs, tokenIDs int
	queued             int  // events that told a place in the queue
	nameless           bool // the last chunk has an empty model where others name it

	vectors, vectorDims int // of the embeddings dialect

	event eventFacts
	quiet bool // an undispatched event is read: its generated content does not count
}

// eventFacts are what the event that is being read adds.
type eventFacts struct {
	name     []byte // event name of SSE
	kinds    Kind
	ids      int  // generated token ids
	logprobs int  // log-probability entries
	counted  bool // ids or logprobs were there, be they empty
	usage    usageCounts
	hasUsage bool
	unknown  bool // it has top-level keys outside the dialect
	phase    Phase
	progress *Progress
	moment   int64  // the engine's own stamp, ns since 1970; 0 for none
	stamp    []byte // its text

	pieces int               // pieces of text that were added
	piece  piece             // the last of them
	again  func(text []byte) // what the event does, for another text; nil unless it adds one and does no more
}

// piece is text that was added to a text of a choice.
type piece struct {
	to   *strings.Builder
	kind Kind
	text []byte
}

// tokens is the number of tokens the event brought: ids are the surer count.
func (e *eventFacts) tokens() int {
	switch {
	case e.ids > 0:
		return e.ids
	case e.counted:
		return e.logprobs
	}
	return -1
}

// choice is one answer being put together.
type choice struct {
	index                    int
	text, reasoning, refusal strings.Builder
	tools                    toolList
	finish                   string
	finished                 bool
	ended                    bool // its terminal event came, with or without a reason
	seen                     seen // of a dialect that repeats what it has said

	lastText  int  // where in text the last piece begins
	atOnce    bool // that piece came in one chunk with the finish reason
	continued bool // the last tool call goes on in the next one (Gemini)
}

// choice gives the choice of an index, made when it is new.
func (a *answer) choice(index int) *choice {
	if len(a.choices) > 0 && a.choices[0].index == index {
		return a.choices[0]
	}
	if c := a.byIndex[index]; c != nil {
		return c
	}
	c := &choice{index: index}
	a.choices = append(a.choices, c)
	if len(a.choices) == 1 {
		return c
	}
	if a.byIndex == nil {
		a.byIndex = map[int]*choice{}
	}
	a.byIndex[index] = c
	return c
}

// add appends generated content to one of a choice's texts. Empty content is no content.
func (a *answer) add(to *strings.Builder, kind Kind, b []byte) {
	if len(b) == 0 || a.quiet {
		return
	}
	to.Write(b)
	a.event.kinds |= kind
	a.event.pieces++
	a.event.piece = piece{to, kind, b}
}

// mayRecur says that what the event told of the choice was one piece of text, if so. Finish reasons and tool calls have
// more to them.
func (a *answer) mayRecur(c *choice) {
	if a.event.pieces != 1 || c.finished || c.ended || len(c.tools.all) > 0 {
		return
	}
	p := a.event.piece
	a.event.again = func(b []byte) { a.add(p.to, p.kind, b) }
}

// addMedia notes generated sound or pictures, which no text holds.
func (a *answer) addMedia(v *fastjson.Value) {
	if len(text(v)) > 0 && !a.quiet {
		a.event.kinds |= KindMedia
	}
}

// typeOf is the type of an event whose value names it; where it does not, the name that SSE gave it.
func (a *answer) typeOf(v *fastjson.Value) []byte {
	if b := text(v.Get("type")); len(b) > 0 {
		return b
	}
	return a.event.name
}

// stampMoment takes the time that the engine wrote on the event.
func (a *answer) stampMoment(b []byte) { a.event.moment, a.event.stamp = moment(b), b }

// identity keeps the first non-empty name.
func identity(dst *string, v *fastjson.Value) {
	if *dst == "" {
		*dst = string(text(v))
	}
}

// setFinish keeps a finish reason; null and empty say nothing.
func (a *answer) setFinish(c *choice, v *fastjson.Value) {
	if raw := word(v); raw != "" {
		c.finish, c.finished = raw, true
	}
}

func (a *answer) countTokenIDs(v *fastjson.Value) {
	if v == nil || v.Type() != fastjson.TypeArray || a.quiet {
		return
	}
	n := len(v.GetArray())
	a.tokenIDs += n
	a.event.ids += n
	a.event.counted = true
}

func (a *answer) countLogprobs(v *fastjson.Value) {
	if v == nil || v.Type() != fastjson.TypeArray || a.quiet {
		return
	}
	n := len(v.GetArray())
	a.logprobs += n
	a.event.logprobs += n
	a.event.counted = true
}

// finishedChoices is the number of choices that have a finish reason.
func (a *answer) finishedChoices() int {
	n := 0
	for _, c := range a.choices {
		if c.finished || c.ended {
			n++
		}
	}
	return n
}

// allFinished reports whether there is a choice and every one has a finish reason.
func (a *answer) allFinished() bool {
	return len(a.choices) > 0 && a.finishedChoices() == len(a.choices)
}

// fill writes what is known now into a transcript. Texts are shared, not copied: a builder never changes what it has
// already given out.
func (a *answer) fill(t *Transcript) {
	t.ID, t.Model, t.Fingerprint = a.id, a.model, a.fingerprint
	t.LogprobEntries, t.TokenIDs = a.logprobs, a.tokenIDs
	t.QueueEvents = a.queued
	t.Vectors, t.VectorDims = a.vectors, a.vectorDims
	t.Extras = a.extras
	t.ExtrasOmitted = a.omitted
	t.Timings = timingsOf(a.extras)
	if a.failure != nil {
		e := *a.failure
		t.Error = &e
	}
	for _, c := range a.choices {
		t.Choices = append(t.Choices, c.snapshot())
	}
	slices.SortFunc(t.Choices, func(x, y Choice) int { return x.Index - y.Index })
	t.Usage = a.usage.snapshot(a, t.Timings)
	t.FinishReason = t.Choice0().FinishReason
	t.FinishNorm = a.norm(t)
	t.DialectEnd = (a.ended || a.allFinished()) && t.FinishNorm != normError
}

// norm is the normalized finish reason of choice 0; an error anywhere wins.
func (a *answer) norm(t *Transcript) string {
	if t.Error != nil {
		return normError
	}
	if t.FinishReason == nil {
		return ""
	}
	return normalizeFinish(*t.FinishReason, a.choice(0).tools.stopped())
}

func (c *choice) snapshot() Choice {
	out := Choice{Index: c.index, Text: c.text.String(), Reasoning: c.reasoning.String(), Refusal: c.refusal.String()}
	if c.finished {
		raw := c.finish
		out.FinishReason = &raw
	}
	for _, t := range c.tools.all {
		out.ToolCalls = append(out.ToolCalls, t.snapshot())
	}
	slices.SortStableFunc(out.ToolCalls, func(x, y ToolCall) int { return x.Index - y.Index })
	return out
}
