package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/benchproxy/benchproxy/internal/stat"
)

// ratio is one figure of ours over the same of another's: medians over rounds.
type ratio struct {
	Value *float64       `json:"value"` // null when the other's median is not above 0, or one of the two is missing
	Range *stat.Interval `json:"range"` // null below minRounds rounds, or when it has no end
}

const (
	// minRounds is what an interval takes: of fewer rounds there are too few ways to draw again.
	minRounds = 6
	draws     = 4000
	// confidence of the ranges.
	confidence = 0.95
)

// ratioOf divides the medians. Its range is a bootstrap over rounds: what happened to the machine in a round happened to
// both, so rounds are drawn again as pairs.
func ratioOf(own, other series) ratio {
	a, ok := own.median()
	b, also := other.median()
	if !ok || !also || b <= 0 {
		return ratio{}
	}
	v := a / b
	r := ratio{Value: &v}
	if len(own) != len(other) || len(own) < minRounds { // a round without one of the two is no pair
		return r
	}
	drawn := resample(own, other)
	tail := (1 - confidence) / 2
	lo, hi := at(drawn, tail), at(drawn, 1-tail)
	if !math.IsInf(hi, 1) {
		r.Range = &stat.Interval{Lo: lo, Hi: hi, Confidence: confidence}
	}
	return r
}

// resample gives the ratios of medians of rounds drawn with replacement, ascending. Where the other's median is not above
// 0 the ratio has no bound. The draws are the same in every run and do not depend on the order of the rounds, so that a
// table follows from its data.
func resample(own, other series) []float64 {
	pairs := make([][2]float64, len(own))
	for i := range pairs {
		pairs[i] = [2]float64{own[i], other[i]}
	}
	slices.SortFunc(pairs, func(a, b [2]float64) int { return slices.Compare(a[:], b[:]) })
	random := rand.New(rand.NewPCG(1, 2))
	out := make([]float64, draws)
	a, b := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i := range out {
		for k := range pairs {
			p := pairs[random.IntN(len(pairs))]
			a[k], b[k] = p[0], p[1]
		}
		slices.Sort(a)
		slices.Sort(b)
		out[i] = math.Inf(1)
		if m := stat.Quantile(b, 0.5); m > 0 {
			out[i] = stat.Quantile(a, 0.5) / m
		}
	}
	slices.Sort(out)
	return out
}

// at is the order statistic at q; nothing is interpolated, because values may be without bound.
func at(sorted []float64, q float64) float64 {
	return sorted[int(math.Round(q*float64(len(sorted)-1)))]
}

// ratioRow is one figure of benchproxy beside all that it is compared with.
type ratioRow struct {
	Own      string           `json:"own"` // proxy or record
	Scenario string           `json:"scenario"`
	Figure   string           `json:"figure"` // added_p50_us, cpu_us or per_second
	Direct   *float64         `json:"direct_spread"`
	Noisy    bool             `json:"noisy"` // direct's spread is over the bound
	Against  map[string]ratio `json:"against"`
}

// figure is what is compared in a scenario.
type figure struct {
	name   string
	what   string
	of     func(*targetRow) series
	direct func(*targetRow) series // of direct, whose spread says how noisy it is
}

// figures are what is compared in every scenario.
var figures = []figure{
	{"added_p50_us", "added p50", func(t *targetRow) series { return t.AddedP50 }, func(t *targetRow) series { return t.P50 }},
	{"cpu_us", "CPU", func(t *targetRow) series { return t.CPU }, func(t *targetRow) series { return t.CPU }},
	{"per_second", "rate", func(t *targetRow) series { return t.Rate }, func(t *targetRow) series { return t.Rate }},
}

// tells is true when the figure says something in the scenario: a paced one has the rate of its pace, and a queue's time
// is its length.
func (f figure) tells(s *scenarioRow) bool {
	switch f.name {
	case "added_p50_us":
		return !s.Queue
	case "per_second":
		return s.Queue
	}
	return true
}

// compareAll enters the ratios of everything that was played.
func (r *report) compareAll() {
	for _, own := range []string{records, proxied} {
		for _, s := range r.Scenarios {
			for _, f := range figures {
				if row := s.compare(own, f, r.Noise); row != nil {
					r.Ratios = append(r.Ratios, *row)
				}
			}
		}
	}
}

// compare makes the row of one figure, nil when there is nothing to compare.
func (s *scenarioRow) compare(own string, f figure, bound float64) *ratioRow {
	ours, base := s.Targets[own], s.Targets[direct]
	if ours == nil || base == nil || !f.tells(s) {
		return nil
	}
	row := &ratioRow{Own: own, Scenario: s.Name, Figure: f.name, Against: map[string]ratio{}}
	share, ok := f.direct(base).spread()
	if ok {
		row.Direct = &share
	}
	row.Noisy = !ok || share > bound
	for name, other := range s.Targets {
		if name != direct && name != own {
			row.Against[name] = ratioOf(f.of(ours), f.of(other))
		}
	}
	return row
}
