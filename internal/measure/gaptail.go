package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// GapTail gathers the gaps between token events of many answers, so that the pauses which users see can be told of all of
// them together: a median over answers of each one's p99 says little of the worst ones. The zero value is ready for use; it
// belongs to one goroutine at a time.
type GapTail struct {
	gaps      *stat.Histogram // in ns
	exchanges int
}

// EventGaps are the gaps of an answer that a GapTail takes, in ms: those between token events of different reads of a
// complete stream. A stream that was held back and came in bursts has none, for its gaps are those of what held it.
func EventGaps(x *exchange.Exchange, a *Analysis) []float64 {
	if a.Outcome != exchange.OutcomeComplete || a.Flagged(FlagBuffered) || a.Flagged(FlagLateBurst) || a.Flagged(FlagErrorAsContent) {
		return nil
	}
	gaps, why := newStream(x, a.Transcript, a.Request).eventGaps()
	if why != "" {
		return nil
	}
	return gaps
}

// Add takes the gaps of one answer, in ms.
func (g *GapTail) Add(gaps []float64) {
	if len(gaps) == 0 {
		return
	}
	if g.gaps == nil {
		g.gaps = stat.NewHistogram()
	}
	g.exchanges++
	for _, v := range gaps {
		g.gaps.Add(v * nsPerMS)
	}
}

// Merge adds what other gathered, which stays as it was.
func (g *GapTail) Merge(other *GapTail) {
	if other.gaps == nil {
		return
	}
	if g.gaps == nil {
		g.gaps = stat.NewHistogram()
	}
	g.gaps.Merge(other.gaps)
	g.exchanges += other.exchanges
}

// Tail is what was gathered, in ms to within 0.1 %; nil without gaps. Percentiles are absent below their sample floor.
func (g *GapTail) Tail() *exchange.Tail {
	if g.gaps == nil || g.gaps.N() == 0 {
		return nil
	}
	t := &exchange.Tail{Exchanges: g.exchanges, N: g.gaps.N()}
	for _, p := range []struct {
		into **float64
		q    float64
	}{{&t.P50, 0.5}, {&t.P90, 0.9}, {&t.P99, 0.99}, {&t.P999, 0.999}, {&t.Max, 1}} {
		if v, ok := g.gaps.Quantile(p.q); ok {
			ms := v / nsPerMS
			*p.into = &ms
		}
	}
	return t
}
