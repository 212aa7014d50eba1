package compare

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// Verdict says what a ratio is worth.
type Verdict string

const (
	Better            Verdict = "better"
	Worse             Verdict = "worse"
	Indistinguishable Verdict = "indistinguishable" // from no difference; Reasons say from what it was not told
	Incomparable      Verdict = "incomparable"      // there is no ratio that means something; Reasons say why
)

// Metric is one metric of the comparison. Reference, candidate, ratio, interval and P are null when the verdict is
// incomparable; interval and P also when there are too few takes.
type Metric struct {
	Name      string                  `json:"name"`
	Unit      string                  `json:"unit"`
	Better    string                  `json:"better"` // higher or lower
	N         int                     `json:"n"`      // ratios: one a pair, or one for each of its circumstances
	Takes     [2]int                  `json:"takes"`  // exchanges behind them, reference and candidate
	Reference *float64                `json:"reference"`
	Candidate *float64                `json:"candidate"`
	Ratio     *float64                `json:"ratio"`    // median of candidate / reference over the pairs
	Interval  *stat.Interval          `json:"interval"` // of the ratio
	P         *float64                `json:"p"`
	Verdict   Verdict                 `json:"verdict"`
	Reasons   []exchange.Reason       `json:"reasons,omitempty"`   // for the verdict; also what to know beside one that holds
	Excluded  map[exchange.Reason]int `json:"excluded,omitempty"`  // why how many pairs gave no ratio
	LeftOut   map[exchange.Reason]int `json:"left_out,omitempty"`  // why how many takes of the other pairs are in no ratio
	Exchanges []exchange.ID           `json:"exchanges,omitempty"` // the first ones behind the ratio, of both sides
}

// behind bounds the exchanges of one side that a number names.
const behind = 4

// measureMetric compares one metric over pairs.
func (c *comparison) measureMetric(m metric, pairs []*pair) Metric {
	out := Metric{Name: m.name, Unit: unitOf(m.name), Better: "lower", Excluded: map[exchange.Reason]int{}, LeftOut: map[exchange.Reason]int{}}
	if m.moreBetter {
		out.Better = "higher"
	}
	var things []stat.Matched
	for _, p := range pairs {
		samples, left, why := c.judge.samples(p, m)
		if why != "" {
			out.Excluded[why]++
			continue
		}
		things = append(things, samples...)
		for why, n := range left {
			out.LeftOut[why] += n
		}
		if a, b := p.both(); len(out.Exchanges) < 2*behind {
			out.Exchanges = append(out.Exchanges, a.Row.ID, b.Row.ID)
		}
	}
	c.weigh(&out, m, things)
	if out.Ratio == nil {
		out.Exchanges = nil
	} else if c.otherPrompts && m.traits&ofCache != 0 {
		out.Reasons = append(out.Reasons, ReasonPrompts)
	}
	return out
}

// weigh fills in what the matched takes of a metric come to.
func (c *comparison) weigh(out *Metric, m metric, things []stat.Matched) {
	if out.Reasons = c.refused; len(out.Reasons) > 0 {
		out.Verdict = Incomparable
		return
	}
	r := stat.Compare(things)
	if r.N == 0 {
		out.Verdict, out.Reasons = Incomparable, mostOf(out.Excluded)
		return
	}
	out.N, out.Takes = r.N, r.Takes
	out.Reference, out.Candidate, out.Ratio = &r.Reference, &r.Candidate, &r.Ratio
	if r.Tellable {
		out.Interval, out.P = &r.Interval, &r.P
	}
	out.Verdict, out.Reasons = c.verdict(m, out.Unit, r)
}

// verdict weighs a ratio. A difference counts when the permutation test tells it from chance, the interval leaves out 1,
// and it is larger than the margin and than what the measuring machine can tell.
func (c *comparison) verdict(m metric, unit string, r stat.Comparison) (Verdict, []exchange.Reason) {
	switch {
	case !r.Tellable:
		return Indistinguishable, []exchange.Reason{ReasonTooFew}
	case r.P > 1-stat.Confidence, r.Interval.Lo <= 1 && 1 <= r.Interval.Hi:
		return Indistinguishable, []exchange.Reason{ReasonNoise}
	case math.Abs(r.Ratio-1) < c.options.Margin:
		return Indistinguishable, []exchange.Reason{ReasonMargin}
	case unit == "ms" && math.Abs(r.Candidate-r.Reference) < c.noiseMS:
		return Indistinguishable, []exchange.Reason{ReasonInstrument}
	case (r.Ratio > 1) == m.moreBetter:
		return Better, nil
	}
	return Worse, nil
}

// mostOf are the reasons of the excluded pairs, the most frequent first.
func mostOf(excluded map[exchange.Reason]int) []exchange.Reason {
	if len(excluded) == 0 {
		return []exchange.Reason{ReasonNoPairs}
	}
	return slices.SortedFunc(maps.Keys(excluded), func(a, b exchange.Reason) int {
		return cmp.Or(excluded[b]-excluded[a], cmp.Compare(a, b))
	})
}

// unitOf is the unit of a metric as internal/measure defines it.
func unitOf(name string) string {
	for _, d := range measure.Metrics() {
		if d.Name == name {
			return d.Unit
		}
	}
	return ""
}

// noiseOf is the larger noise floor of two runs in ms: that of the fewest streams a selftest tried that are at least as
// many as the run had; 0 when no selftest is known.
func noiseOf(runs [2]*Side, peaks [2]int) float64 {
	largest := 0.0
	for i, s := range runs {
		if s.Run.Instrument == nil {
			continue
		}
		var floor *float64
		for _, f := range s.Run.Instrument.Floors(exchange.LoadIdle) {
			floor = f.US
			if f.Streams >= peaks[i] {
				break
			}
		}
		if floor != nil {
			largest = max(largest, *floor/1e3)
		}
	}
	return largest
}
