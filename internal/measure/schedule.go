package measure

import (
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// Bounds of an open loop that kept its schedule.
const (
	// DefaultMaxLagMS is the largest p99 of the lag, from the planned instant to the first request byte.
	DefaultMaxLagMS = 50
	// MinRateShare is the least share of the planned rate that must be reached, over at least rateSpanNS.
	MinRateShare = 0.95
	rateSpanNS   = nsPerSecond
)

// Schedule gathers how the exchanges of an open loop kept the instants that were planned for them. It belongs to one
// goroutine at a time.
type Schedule struct {
	planned         []int64 // instants of sent ones, ns of the wall clock
	sent            []int64
	lag             []float64 // all of these in ms
	whole, intended []float64 // complete answers, from sent and from planned
	ttft, waited    []float64 // first tokens, likewise
	unsent          int       // planned, but no byte went to the engine
}

// Add takes one exchange. Those without a planned instant, warm-ups and second attempts, are not part of the schedule.
func (s *Schedule) Add(x *exchange.Exchange, a *Analysis) {
	intended, ok := x.Timeline.Intended.NS()
	if !ok {
		return
	}
	at, sent := x.Timeline.SendStart.NS()
	if !sent {
		s.unsent++
		return
	}
	origin := x.Timeline.Wall.UnixNano()
	s.planned, s.sent = append(s.planned, origin+intended), append(s.sent, origin+at)
	late := float64(at-intended) / nsPerMS
	s.lag = append(s.lag, late)
	if a.Outcome != exchange.OutcomeComplete {
		return
	}
	if f := a.Figures[TotalWallMS]; f.Present() {
		s.whole, s.intended = append(s.whole, f.Value), append(s.intended, f.Value+late)
	}
	if f := a.Figures[TTFTMS]; f.Present() {
		s.ttft, s.waited = append(s.ttft, f.Value), append(s.waited, f.Value+late)
	}
}

// Result is the schedule so far. missed is the number of requests whose instant came and that were never tried; a lag
// p99 above maxLagMS makes the schedule invalid, which is then told.
func (s *Schedule) Result(missed int, maxLagMS float64) (out exchange.Schedule, invalid string) {
	out = exchange.Schedule{
		Planned: len(s.sent) + s.unsent + missed, Sent: len(s.sent),
		PlannedRate: rateOf(s.planned), AchievedRate: rateOf(s.sent),
		LagMS: spreadOf(s.lag), SentMS: spreadOf(s.whole), IntendedMS: spreadOf(s.intended),
		SentTTFT: spreadOf(s.ttft), IntendedTTFT: spreadOf(s.waited),
		BoundMS: maxLagMS, BoundRate: MinRateShare,
	}
	switch p99 := out.LagMS.P99; {
	case missed > 0:
		invalid = fmt.Sprintf("schedule_not_met: %d planned requests were not sent at all", missed)
	case p99 != nil && *p99 > maxLagMS:
		invalid = fmt.Sprintf("schedule_not_met: requests were sent late: lag p99 %.1f ms, the bound is %g ms", *p99, maxLagMS)
	case out.PlannedRate != nil && out.AchievedRate != nil && spanOf(s.planned) >= rateSpanNS && *out.AchievedRate < MinRateShare**out.PlannedRate:
		invalid = fmt.Sprintf("schedule_not_met: %.2f of %.2f requests a second were sent, the bound is %g of the plan",
			*out.AchievedRate, *out.PlannedRate, MinRateShare)
	}
	return out, invalid
}

// rateOf is how many of the instants fall in a second of their span; nil when they have none.
func rateOf(instants []int64) *float64 {
	span := spanOf(instants)
	if span <= 0 {
		return nil
	}
	r := float64(len(instants)-1) / (float64(span) / nsPerSecond)
	return &r
}

func spanOf(instants []int64) int64 {
	if len(instants) == 0 {
		return 0
	}
	return slices.Max(instants) - slices.Min(instants)
}

// spreadOf is a census, not a sample: every planned request is in it, so its percentiles need no floor.
func spreadOf(values []float64) exchange.Spread {
	if len(values) == 0 {
		return exchange.Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	p50, p99, most := stat.Quantile(sorted, 0.5), stat.Quantile(sorted, 0.99), sorted[len(sorted)-1]
	return exchange.Spread{N: len(sorted), P50: &p50, P99: &p99, Max: &most}
}
