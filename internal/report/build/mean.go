package build

import (
	"fmt"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// meanSpread is what the table of means says of their intervals.
const meanSpread = "95 % interval of the mean. From 11 scenarios on it is a bootstrap over the scenarios, and tells of scenarios like these; " +
	"below that it is a permutation of the repeats behind the ratios, and tells of these scenarios measured again. Where it is missing, why stands beside"

// mean is a geometric mean of ratios and how sure it is.
type mean struct {
	value    float64
	n        int
	interval *stat.Interval
	over     string          // what the interval is over: scenarios or repeats
	why      exchange.Reason // there is no interval
}

// meanOf is the mean of quotients that have a value.
func meanOf(qs []quotient) mean {
	values := make([]float64, len(qs))
	for i, q := range qs {
		values[i] = q.value
	}
	m := mean{over: "scenarios"}
	m.value, m.n, m.interval = stat.GeoMean(values)
	if m.n > 0 && m.interval == nil {
		m.repeats(qs)
	}
	return m
}

// repeats makes the interval by the repeats behind the quotients. It is widened to the printed mean, as that of a ratio is.
func (m *mean) repeats(qs []quotient) {
	things := make([]stat.Matched, len(qs))
	lacking := 0
	for i, q := range qs {
		if things[i] = q.takes(); len(things[i].Reference) < 2 || len(things[i].Candidate) < 2 {
			lacking++
		}
	}
	iv, ok := stat.GeoMeanInterval(things)
	switch {
	case lacking == len(qs):
		m.why = reasonOneSample
	case lacking > 0:
		m.why = reasonFigures
	case !ok:
		m.why = compare.ReasonTooFew
	default:
		iv.Lo, iv.Hi = min(iv.Lo, m.value), max(iv.Hi, m.value)
		m.interval, m.over = &iv, "repeats"
	}
}

// cell is the mean in a table, colored only where its interval leaves out 1.
func (m *mean) cell() report.Cell {
	if m.n == 0 {
		return report.Absent(reasonNoValue)
	}
	c := report.Number(m.value)
	if m.interval == nil {
		return c.Titled("no interval: " + reasonsText([]exchange.Reason{m.why}))
	}
	c = c.Spread(report.Spread{Lo: m.interval.Lo, Hi: m.interval.Hi, N: m.n, Kind: report.SpreadInterval}).Titled("over " + m.over)
	if m.interval.Lo > 1 || m.interval.Hi < 1 {
		c = c.Toned(toneOf(m.value))
	}
	return c
}

// words are the interval, or why there is none.
func (m *mean) words() string {
	switch {
	case m.n == 0:
		return "—"
	case m.interval == nil:
		return "— (" + reasonsText([]exchange.Reason{m.why}) + ")"
	}
	return fmt.Sprintf("%.2f to %.2f (%s)", m.interval.Lo, m.interval.Hi, m.over)
}
