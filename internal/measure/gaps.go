package measure

import (
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// gaps derives how the stream moved: the pauses between token events and how events, tokens and reads relate.
func (a *Analysis) gaps(s *stream) {
	gaps, why := s.eventGaps()
	for _, g := range []struct {
		name string
		q    float64
	}{{EventGapP50MS, 0.5}, {EventGapP90MS, 0.9}, {EventGapP99MS, 0.99}, {EventGapMaxMS, 1}} {
		if why != "" {
			a.set(g.name, exchange.Absent(unitMS, why))
			continue
		}
		a.set(g.name, measured(stat.Quantile(gaps, g.q), unitMS))
	}
	a.set(TokensPerEvent, s.tokensPerEvent())
	a.set(EventsPerRead, s.perRead(unitEvents, func() float64 { return float64(len(s.events)) / float64(s.reads) }))
	a.set(MergedReads, s.perRead(unitReads, func() float64 { return float64(s.merged) }))
}

// eventGaps are the gaps between neighboring token events of different reads in ms, sorted. It is a census of the
// stream, not a sample. Events of one read share a stamp, so there is no gap between them to speak of.
func (s *stream) eventGaps() (gaps []float64, why exchange.Reason) {
	if why := s.noTokens(); why != "" {
		return nil, why
	}
	if s.reads < 2 {
		return nil, ReasonTooFewReads
	}
	ns := make([]int64, 0, s.reads-1)
	for i := 1; i < len(s.events); i++ {
		if s.events[i].Read != s.events[i-1].Read {
			ns = append(ns, s.events[i].at-s.events[i-1].at)
		}
	}
	return sorted(ns, nsPerMS), ""
}

// sorted sorts times in ns, and gives them in a unit of so many. Whole numbers are sorted in half the time.
func sorted(ns []int64, unit float64) []float64 {
	slices.Sort(ns)
	out := make([]float64, len(ns))
	for i, v := range ns {
		out[i] = float64(v) / unit
	}
	return out
}

func (s *stream) tokensPerEvent() exchange.Figure {
	if why := s.noTokens(); why != "" {
		return exchange.Absent(unitTokens, why)
	}
	switch {
	case s.cut:
		return exchange.Absent(unitTokens, ReasonRecordTruncated)
	case !s.completion.Present():
		return exchange.Absent(unitTokens, s.completion.Reason)
	}
	return rate(s.completion.Value/float64(len(s.events)), unitTokens, s.completion)
}

// perRead is a figure about reads with token events.
func (s *stream) perRead(unit string, value func() float64) exchange.Figure {
	if why := s.noTokens(); why != "" {
		return exchange.Absent(unit, why)
	}
	return measured(value(), unit)
}
