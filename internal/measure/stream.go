package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// stream is an exchange in the terms of the metrics: instants from t0 and token events with their stamps.
type stream struct {
	x    *exchange.Exchange
	t    *wire.Transcript
	echo bool // the answer repeats the prompt

	prompts int64 // prompts of a request with a list of them

	t0       int64 // ns since the origin; 0 when the request was not sent
	sent     bool
	dialect  bool // the exchange speaks a dialect we read
	streamed bool // the answer came event by event
	cut      bool // the record ends before the answer does

	events []tokenEvent
	merged int // reads that brought more than one token event
	reads  int // reads that brought a token event

	prompt, completion, cached, reasoning exchange.Figure

	buffered bool // see burst.go
	late     bool // began in time, but most of it came at once: see burst.go
	hidden   bool // reasoning tokens were reported, but no event has reasoning
}

// tokenEvent is an event with generated content.
type tokenEvent struct {
	*wire.Event
	at int64 // ns since t0
}

// size is the length of the event in bytes.
func (e *tokenEvent) size() int64 { return e.End - e.Start }

func newStream(x *exchange.Exchange, t *wire.Transcript, request wire.RequestFacts) *stream {
	s := &stream{x: x, t: t, echo: request.Echo, dialect: hasDialect(x, t)}
	s.t0, s.sent = x.Timeline.SendStart.NS()
	s.streamed = streamed(t)
	s.cut = !x.Response.Body.Whole()
	s.prompts = request.Prompts
	s.collect()
	s.count()
	s.hidden = s.reasoning.Present() && s.reasoning.Value > 0 && len(s.events) > 0 && !s.has(wire.KindReasoning)
	if s.streamed && s.sent && len(s.events) > 1 {
		b := newShape(s)
		s.buffered = b.isBuffered()
		s.late = !s.buffered && b.endsInBurst()
	}
	return s
}

// collect gathers the token events and counts the reads that brought them. An event whose read is not in the record
// has no stamp and ends the usable part.
func (s *stream) collect() {
	s.events = make([]tokenEvent, 0, len(s.t.Events))
	last, inRead := -1, 0
	for i := range s.t.Events {
		e := &s.t.Events[i]
		if e.Kinds == 0 {
			continue
		}
		if e.Read < 0 || e.Read >= len(s.x.Timeline.Reads) {
			s.cut = true
			break
		}
		at := s.x.Timeline.Reads[e.Read].At - s.t0
		s.events = append(s.events, tokenEvent{e, at})
		if e.Read != last {
			last, inRead = e.Read, 0
			s.reads++
		}
		if inRead++; inRead == 2 {
			s.merged++
		}
	}
}

// has reports whether any token event adds content of one of the kinds.
func (s *stream) has(kinds wire.Kind) bool {
	for i := range s.events {
		if s.events[i].Kinds&kinds != 0 {
			return true
		}
	}
	return false
}

// noTokens is why there is no usable token event, or "" when there is one.
func (s *stream) noTokens() exchange.Reason {
	switch {
	case !s.sent:
		return ReasonNotSent
	case s.x.Response.Status == 0:
		return ReasonNoResponse
	case !s.dialect:
		return ReasonNoDialect
	case !s.streamed:
		return ReasonNotStreamed
	case s.echo:
		return ReasonEcho
	case len(s.events) == 0 && s.cut:
		return ReasonRecordTruncated
	case len(s.events) == 0:
		return ReasonNoTokenEvent
	}
	return ""
}

// first and last are the instants of the first and the last token event, ns since t0; noTokens must be "".
func (s *stream) first() int64 { return s.events[0].at }
func (s *stream) last() int64  { return s.events[len(s.events)-1].at }
