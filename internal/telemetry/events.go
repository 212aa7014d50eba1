package telemetry

import (
	"math"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// timeline makes the events of a client span. There are about eight, whatever the length of the stream: a span keeps 128
// events and drops the rest without a word, and token times belong to the record.
type timeline struct {
	x      *exchange.Exchange
	t0     int64 // ns since the origin
	sent   bool
	events []sdktrace.Event
	room   attributes // of those of events, handed out bit by bit
}

// eventRoom is how many attributes most events have.
const eventRoom = 3

// eventsOf are the events of an exchange, in the order of time but for the last ones; why is the type of its error.
func eventsOf(x *exchange.Exchange, a *measure.Analysis, why string) []sdktrace.Event {
	tl := timeline{x: x, events: make([]sdktrace.Event, 0, 10), room: make(attributes, 10*eventRoom)}
	tl.t0, tl.sent = x.Timeline.SendStart.NS()
	tl.mark(eventSent, x.Timeline.SendDone)
	tl.mark(eventHeaders, x.Timeline.HeaderRead)
	tl.mark(eventFirstByte, x.Timeline.FirstRead)
	tl.tokens(a)
	tl.finish(a)
	if e := tl.mark(eventEnd, x.Timeline.BodyEnd); e != nil {
		attrsIn(e).str(attrEnd, endOf(a))
		if r := a.Transcript.FinishReason; r != nil {
			attrsIn(e).str(attrFinishReason, *r)
		}
	}
	if why != "" {
		e := tl.at(eventException, lastMark(&x.Timeline))
		attrsIn(e).str(exceptionType, why)
		if a.Cause != nil {
			attrsIn(e).str(exceptionMessage, causeText(a))
		}
	}
	return tl.events
}

// attrsIn are the attributes of an event, to be added to.
func attrsIn(e *sdktrace.Event) *attributes { return (*attributes)(&e.Attributes) }

// mark adds an event at a mark, nil when that never happened.
func (tl *timeline) mark(name string, m exchange.Mark) *sdktrace.Event {
	ns, ok := m.NS()
	if !ok {
		return nil
	}
	return tl.at(name, ns)
}

// at adds an event so many ns after the origin.
func (tl *timeline) at(name string, ns int64) *sdktrace.Event {
	e := sdktrace.Event{Name: name, Time: instant(tl.x, ns)}
	if len(tl.room) > 0 {
		e.Attributes, tl.room = tl.room[:0:eventRoom], tl.room[eventRoom:]
	}
	if tl.sent {
		attrsIn(&e).float(attrElapsed, float64(ns-tl.t0)/1e9)
	}
	tl.events = append(tl.events, e)
	return &tl.events[len(tl.events)-1]
}

// figure adds an event at a figure in ms from t0, nil when it is absent.
func (tl *timeline) figure(name string, f exchange.Figure) *sdktrace.Event {
	if !f.Present() || !tl.sent {
		return nil
	}
	return tl.at(name, tl.t0+int64(math.Round(f.Value*1e6)))
}

// tokens adds the first and the last token, and the first of the answer where reasoning came before it.
func (tl *timeline) tokens(a *measure.Analysis) {
	first, answer := firstOf(a.Transcript, ^wire.Kind(0)), firstOf(a.Transcript, wire.KindAnswer)
	if e := tl.figure(eventFirstToken, a.Figures[measure.TTFTMS]); e != nil && first >= 0 {
		tellToken(e, a.Transcript, first)
	}
	if answer > first {
		if e := tl.figure(eventFirstAnswer, a.Figures[measure.AnswerTTFTMS]); e != nil {
			tellToken(e, a.Transcript, answer)
		}
	}
	if e := tl.figure(eventLastToken, a.Figures[measure.LastTokenMS]); e != nil {
		if n := a.Figures[measure.TokenEvents]; n.Present() {
			attrsIn(e).int(ourChunks, int64(n.Value))
		}
	}
}

// finish adds the last event of a stream that told why it ends.
func (tl *timeline) finish(a *measure.Analysis) {
	t := a.Transcript
	if t.FinishReason == nil || len(t.Events) == 0 {
		return
	}
	read := t.Events[len(t.Events)-1].Read
	if read < 0 || read >= len(tl.x.Timeline.Reads) {
		return
	}
	attrsIn(tl.at(eventFinish, tl.x.Timeline.Reads[read].At)).str(attrFinishReason, *t.FinishReason)
}

// firstOf is the index of the first event that adds content of one of the kinds, -1 for none.
func firstOf(t *wire.Transcript, kinds wire.Kind) int {
	for i := range t.Events {
		if t.Events[i].Kinds&kinds != 0 {
			return i
		}
	}
	return -1
}

// tellToken says what the event of a stream with that index brought.
func tellToken(e *sdktrace.Event, t *wire.Transcript, index int) {
	attrsIn(e).int(attrChunk, int64(index))
	for _, k := range []struct {
		kind wire.Kind
		word string
	}{{wire.KindText, "content"}, {wire.KindReasoning, "reasoning"}, {wire.KindTool, "tool_call"}, {wire.KindRefusal, "refusal"}, {wire.KindMedia, "media"}} {
		if t.Events[index].Kinds&k.kind != 0 {
			attrsIn(e).str(attrKind, k.word)
			return
		}
	}
}

// endOf says in one word how the stream came to its end.
func endOf(a *measure.Analysis) string {
	switch {
	case a.Outcome == exchange.OutcomeClientAbort:
		return "abort"
	case a.Outcome != exchange.OutcomeComplete:
		return "error"
	case a.Transcript.DialectEnd:
		return "marker"
	}
	return "eof"
}
