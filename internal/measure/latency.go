package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

const nsPerMS = 1e6

// latency derives the instants of the exchange, all in ms from t0.
func (a *Analysis) latency(s *stream) {
	tl := &s.x.Timeline
	a.set(HeadersMS, s.since(tl.HeaderRead, ReasonNoResponse))
	a.set(FirstByteMS, s.since(tl.FirstRead, ReasonNoBody))
	a.set(FirstEventMS, s.firstEvent())
	a.set(TotalWallMS, s.since(tl.BodyEnd, ReasonNoResponse))
	a.set(TTFTMS, s.ttft())
	a.set(AnswerTTFTMS, s.answerTTFT())
	a.set(LastTokenMS, s.lastToken())
}

// since is a mark in ms from t0, or the reason for which it never happened.
func (s *stream) since(m exchange.Mark, never exchange.Reason) exchange.Figure {
	if !s.sent {
		return exchange.Absent(unitMS, ReasonNotSent)
	}
	ns, ok := m.NS()
	if !ok {
		return exchange.Absent(unitMS, never)
	}
	return measured(float64(ns-s.t0)/nsPerMS, unitMS)
}

func (s *stream) firstEvent() exchange.Figure {
	switch {
	case !s.sent:
		return exchange.Absent(unitMS, ReasonNotSent)
	case !s.dialect:
		return exchange.Absent(unitMS, ReasonNoDialect)
	case len(s.t.Events) == 0:
		return exchange.Absent(unitMS, ReasonNoEvent)
	}
	read := s.t.Events[0].Read
	if read < 0 || read >= len(s.x.Timeline.Reads) {
		return exchange.Absent(unitMS, ReasonRecordTruncated)
	}
	return measured(float64(s.x.Timeline.Reads[read].At-s.t0)/nsPerMS, unitMS)
}

func (s *stream) ttft() exchange.Figure {
	if why := s.noTokens(); why != "" {
		return exchange.Absent(unitMS, why)
	}
	if s.buffered {
		return exchange.Absent(unitMS, ReasonBuffered)
	}
	return measured(float64(s.first())/nsPerMS, unitMS)
}

func (s *stream) answerTTFT() exchange.Figure {
	if f := s.ttft(); !f.Present() {
		return f
	}
	for i := range s.events {
		if s.events[i].Kinds&wire.KindAnswer != 0 {
			return measured(float64(s.events[i].at)/nsPerMS, unitMS)
		}
	}
	if s.cut {
		return exchange.Absent(unitMS, ReasonRecordTruncated)
	}
	return exchange.Absent(unitMS, ReasonReasoningOnly)
}

func (s *stream) lastToken() exchange.Figure {
	if why := s.noTokens(); why != "" {
		return exchange.Absent(unitMS, why)
	}
	if s.cut {
		return exchange.Absent(unitMS, ReasonRecordTruncated)
	}
	return measured(float64(s.last())/nsPerMS, unitMS)
}
