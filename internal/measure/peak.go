package measure

import "github.com/benchproxy/benchproxy/internal/exchange"

const peakWindowNS = 1_000_000_000

// peak derives the largest token count of any window of one second, the start within and the end outside of it.
//
// Tokens lie where their events do, each event with its own count where the wire gives one for all of them, else with
// an equal share of the completion: events are never counted as tokens. Some irregular streams hold fewer tokens in
// every single second than their mean (two clusters 1.5 s apart, say). The whole stream is a window of at least a
// second too, so its rate is the least the peak can be.
func (a *Analysis) peak(s *stream) {
	seconds, why := s.window()
	if why == "" && s.late {
		why = ReasonBuffered
	}
	if why == "" && seconds < 1 {
		why = ReasonShortStream
	}
	if why != "" {
		a.set(Peak1sTPS, exchange.Absent(unitTPS, why))
		return
	}
	tokens := s.spread()
	best, inWindow, from := 0.0, 0.0, 0
	for i := range s.events {
		inWindow += tokens[i]
		for s.events[i].at-s.events[from].at >= peakWindowNS {
			inWindow -= tokens[from]
			from++
		}
		best = max(best, inWindow)
	}
	mean := (s.completion.Value - 1) / seconds
	a.set(Peak1sTPS, rate(max(best, mean), unitTPS, s.completion))
}

// spread is the number of tokens of each token event. Where the wire counts them the counts are scaled to the
// completion, since tokens without an event of their own (an end-of-text token) are in the total only.
func (s *stream) spread() []float64 {
	out := make([]float64, len(s.events))
	sum, before := 0.0, int64(0)
	for i := range s.events {
		e := &s.events[i]
		switch {
		case e.Tokens >= 0:
			out[i] = float64(e.Tokens)
		case e.Running >= before:
			out[i], before = float64(e.Running-before), e.Running
		default:
			return s.evenSpread(out)
		}
		sum += out[i]
	}
	if sum <= 0 {
		return s.evenSpread(out)
	}
	for i := range out {
		out[i] *= s.completion.Value / sum
	}
	return out
}

func (s *stream) evenSpread(out []float64) []float64 {
	for i := range out {
		out[i] = s.completion.Value / float64(len(out))
	}
	return out
}
