package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/benchproxy/benchproxy/internal/stat"
)

// tracingRow is what tracing changes of one figure, beside a proxy that records the same and traces nothing.
type tracingRow struct {
	Scenario string             `json:"scenario"`
	Figure   string             `json:"figure"` // p50_us, p99_us, cpu_us
	More     map[string]*change `json:"more"`   // by target: traced, unsampled
}

// change is the median over rounds of how much more a figure was in the same round.
type change struct {
	Value float64        `json:"value"`
	Share float64        `json:"share"` // of the other's median
	Range *stat.Interval `json:"range"` // null below minRounds rounds
}

// changeOf compares by rounds: what happened to the machine in a round happened to both. It is nil where the two have not
// the same rounds.
func changeOf(own, other series) *change {
	if len(own) == 0 || len(own) != len(other) {
		return nil
	}
	more := make(series, len(own))
	for i := range own {
		more[i] = own[i] - other[i]
	}
	var c change
	c.Value, _ = more.median()
	if base, _ := other.median(); base > 0 {
		c.Share = c.Value / base
	}
	if len(more) < minRounds {
		return &c
	}
	drawn := resampleMedian(more)
	tail := (1 - confidence) / 2
	c.Range = &stat.Interval{Lo: at(drawn, tail), Hi: at(drawn, 1-tail), Confidence: confidence}
	return &c
}

// resampleMedian gives the medians of rounds drawn with replacement, ascending. The draws are the same in every run and do
// not depend on the order of the rounds.
func resampleMedian(s series) []float64 {
	sorted := slices.Sorted(slices.Values(s))
	random := rand.New(rand.NewPCG(1, 2))
	out, drawn := make([]float64, draws), make([]float64, len(sorted))
	for i := range out {
		for k := range drawn {
			drawn[k] = sorted[random.IntN(len(sorted))]
		}
		slices.Sort(drawn)
		out[i] = stat.Quantile(drawn, 0.5)
	}
	slices.Sort(out)
	return out
}

// tracingFigures are what is compared: times where they are not those of a queue, and processor time everywhere.
var tracingFigures = []struct {
	name, what string
	timed      bool
	of         func(*targetRow) series
}{
	{"p50_us", "p50", true, func(t *targetRow) series { return t.P50 }},
	{"p99_us", "p99", true, func(t *targetRow) series { return t.P99 }},
	{"cpu_us", "CPU", false, func(t *targetRow) series { return t.CPU }},
}

// compareTracing enters what tracing changes.
func (r *report) compareTracing() {
	for _, s := range r.Scenarios {
		base := s.Targets[records]
		for _, f := range tracingFigures {
			row := tracingRow{Scenario: s.Name, Figure: f.name, More: map[string]*change{}}
			for _, name := range []string{traced, unsampled} {
				if own := s.Targets[name]; own != nil && base != nil && !(f.timed && s.Queue) {
					row.More[name] = changeOf(f.of(own), f.of(base))
				}
			}
			if len(row.More) > 0 {
				r.Tracing = append(r.Tracing, row)
			}
		}
	}
}

// tracingSheet is what tracing changes, in us and as a share.
func (r *report) tracingSheet() sheet {
	t := sheet{title: "tracing: us more than record in the same round, median [range]", head: []string{traced, unsampled}}
	for _, x := range r.Tracing {
		i := slices.IndexFunc(r.Scenarios, func(s *scenarioRow) bool { return s.Name == x.Scenario })
		s := r.Scenarios[i]
		what := fmt.Sprintf("%s %s (%s)", s.Name, tracingWhat(x.Figure), s.What)
		if x.Figure == "cpu_us" {
			what = fmt.Sprintf("%s: CPU us each %s", s.Name, s.Per)
		}
		t.row(what, x.More[traced].String(), x.More[unsampled].String())
	}
	return t
}

func tracingWhat(figure string) string {
	for _, f := range tracingFigures {
		if f.name == figure {
			return f.what
		}
	}
	return figure
}

// String is the change in us with its range, and as a share.
func (c *change) String() string {
	if c == nil {
		return "-"
	}
	text := fmt.Sprintf("%+.1f", c.Value)
	if c.Range != nil {
		text += fmt.Sprintf(" [%+.1f..%+.1f]", c.Range.Lo, c.Range.Hi)
	}
	return text + fmt.Sprintf(", %+.1f %%", 100*c.Share)
}
