package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// phases derives what the wire shows of the time before the first token. Our clock can tell when an event named a phase;
// what the engine says of its own times stays in figures of its own.
func (a *Analysis) phases(s *stream) {
	a.Phases, a.Curve = s.spans(), s.curve()
	a.set(QueueMS, s.queueMS(a.Phases))
	a.set(LoadMS, s.silent(unitMS))
	a.set(EngineQueueMS, s.silent(unitMS))
	if t := s.t.Timings; t != nil {
		a.setEngineTime(LoadMS, t.LoadMS)
		a.setEngineTime(EngineQueueMS, t.QueueMS)
	}
	a.set(ThinkMS, think(a.Figures[TTFTMS], a.Figures[AnswerTTFTMS]))
}

// setEngineTime publishes a time of the engine. Unlike a rate it may be 0: there was no wait.
func (a *Analysis) setEngineTime(name string, ms *float64) {
	if ms != nil && *ms >= 0 {
		a.set(name, reported(*ms, unitMS))
	}
}

// queueMS is when the engine last named a place in its queue. The event behind it is no end of the wait: the engines
// that tell look once a second, and what they send next may be the first token.
func (s *stream) queueMS(spans []exchange.PhaseSpan) exchange.Figure {
	if !s.sent {
		return exchange.Absent(unitMS, ReasonNotSent)
	}
	for _, span := range spans {
		if span.Phase == phaseNames[wire.PhaseQueue] {
			return measured(span.LastMS, unitMS)
		}
	}
	return s.silent(unitMS)
}

// think is the time from the first token to the first one of the answer.
func think(ttft, answer exchange.Figure) exchange.Figure {
	switch {
	case !ttft.Present():
		return exchange.Absent(unitMS, ttft.Reason)
	case !answer.Present():
		return exchange.Absent(unitMS, answer.Reason)
	}
	return measured(answer.Value-ttft.Value, unitMS)
}

var phaseNames = [...]string{wire.PhaseQueue: "queue", wire.PhaseLoad: "load", wire.PhasePrompt: "prompt"}

// spans are the phases in the order in which they were first named.
func (s *stream) spans() (out []exchange.PhaseSpan) {
	var place [len(phaseNames)]int // in out, plus one
	for i := range s.t.Events {
		phase := s.t.Events[i].Phase
		if phase == wire.PhaseNone {
			continue
		}
		ms, ok := s.eventMS(i)
		if !ok {
			continue
		}
		if place[phase] == 0 {
			out = append(out, exchange.PhaseSpan{Phase: phaseNames[phase], FirstMS: ms})
			place[phase] = len(out)
		}
		span := &out[place[phase]-1]
		span.LastMS = ms
		span.Events++
	}
	return out
}

// curve is the prefill curve: how many tokens of the prompt were read at the stamps of the events that tell. A share is
// turned into tokens where the answer says how many the prompt has.
func (s *stream) curve() (out []exchange.PrefillPoint) {
	for i := range s.t.Progress {
		p := &s.t.Progress[i]
		ms, ok := s.eventMS(p.Event)
		if !ok {
			break
		}
		point := exchange.PrefillPoint{Cached: p.Cached, MS: ms, EngineMS: p.EngineMS}
		switch {
		case p.Tokens != nil:
			point.Tokens = float64(*p.Tokens)
		case p.Share != nil && s.prompt.Present():
			point.Tokens, point.Estimated = *p.Share*s.prompt.Value, true
		default:
			continue
		}
		out = append(out, point)
	}
	return out
}

// eventMS is the stamp of an event in ms from t0; ok is false when the record has none.
func (s *stream) eventMS(event int) (ms float64, ok bool) {
	reads := s.x.Timeline.Reads
	if !s.sent || event >= len(s.t.Events) {
		return 0, false
	}
	read := s.t.Events[event].Read
	if read < 0 || read >= len(reads) {
		return 0, false
	}
	return float64(reads[read].At-s.t0) / nsPerMS, true
}
