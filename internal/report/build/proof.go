package build

import (
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// reasonOneSample is why a ratio of cells that say nothing of repeats has no interval.
const reasonOneSample exchange.Reason = "one_sample"

// proof is what the repeats of both cells say of their ratio.
type proof struct {
	interval *stat.Interval  // nil where there are too few repeats for one
	n        [2]int          // samples of the subject and of the reference
	why      exchange.Reason // it is not told from 1; "" where it is
}

// proofKey names a ratio of a grid.
type proofKey struct {
	field string
	sides [2]*Cell
}

// proofs keeps those that were made: a ratio stands in more than one table, and relabeling its samples takes time.
type proofs map[proofKey]proof

// of is the proof of a quotient that has a value.
func (ps proofs) of(q quotient) proof {
	key := proofKey{q.figure.field, q.sides}
	if p, ok := ps[key]; ok {
		return p
	}
	p := q.prove()
	ps[key] = p
	return p
}

// prove relabels the repeats of both cells. The interval is widened to the printed ratio, which is that of the two medians: of
// an even number of repeats these are means of the middle two, and those of their logarithms lie a little beside them.
func (q quotient) prove() proof {
	p := proof{}
	for i, side := range q.sides {
		p.n[i] = max(len(side.samples(q.figure.field)), side.counted(q.figure.field))
	}
	takes := q.takes()
	c := stat.Compare([]stat.Matched{takes})
	switch {
	case len(takes.Reference) == 0 || len(takes.Candidate) == 0:
		p.why = reasonOneSample
		return p
	case !c.Tellable:
		p.why = compare.ReasonTooFew
		return p
	}
	p.interval = &stat.Interval{Lo: min(c.Interval.Lo, q.value), Hi: max(c.Interval.Hi, q.value), Confidence: c.Interval.Confidence}
	if c.P > 1-stat.Confidence || p.interval.Lo <= 1 && 1 <= p.interval.Hi {
		p.why = compare.ReasonNoise
	}
	return p
}

// takes are the repeats of both cells, those of times turned as the quotient is.
func (q quotient) takes() stat.Matched {
	t := stat.Matched{Candidate: q.sides[0].samples(q.figure.field), Reference: q.sides[1].samples(q.figure.field)}
	if q.figure.lower {
		t.Candidate, t.Reference = t.Reference, t.Candidate
	}
	return t
}

// samples are the values of a field over the repeats of a cell; none where its file does not hold them.
func (c *Cell) samples(field string) []float64 { return c.Spreads[field].Samples }

// counted is how many measurements stand behind a field: one where the file does not say.
func (c *Cell) counted(field string) int { return max(c.Spreads[field].N, 1) }

// words are the interval and the samples of both sides.
func (p proof) words() string {
	if p.interval == nil {
		return fmt.Sprintf("— (n %d, %d)", p.n[0], p.n[1])
	}
	return fmt.Sprintf("%.2f to %.2f (n %d, %d)", p.interval.Lo, p.interval.Hi, p.n[0], p.n[1])
}

// cell is the quotient in a table, colored only where it is told from 1.
func (ps proofs) cell(q quotient) report.Cell {
	if q.why != "" {
		return report.Absent(q.why)
	}
	p := ps.of(q)
	c := report.Number(q.value).Of(slices.Concat(half(q.sides[0]), half(q.sides[1]))...)
	if p.interval != nil {
		c = c.Spread(report.Spread{Lo: p.interval.Lo, Hi: p.interval.Hi, N: p.n[0] + p.n[1], Kind: report.SpreadInterval})
	}
	if p.why == "" {
		return c.Toned(toneOf(q.value)).Titled(fmt.Sprintf("n %d against %d", p.n[0], p.n[1]))
	}
	return c.Titled(fmt.Sprintf("n %d against %d; not told from 1.00×: %s", p.n[0], p.n[1], reasonsText([]exchange.Reason{p.why})))
}

// half are exchanges of one side of a ratio: half of what a cell names, so that the other side has its place too.
func half(c *Cell) []exchange.ID { return c.Exchanges[:min(len(c.Exchanges), 4)] }

// cells are the quotient and its interval, as ratioColumns heads them.
func (ps proofs) cells(q quotient) []report.Cell {
	if q.why != "" {
		return []report.Cell{report.Absent(q.why), report.Absent(q.why)}
	}
	p := ps.of(q)
	interval := report.Text(p.words())
	if p.interval == nil {
		interval = report.AbsentAs(p.words(), p.why)
	}
	return []report.Cell{ps.cell(q), interval}
}

// ratioColumns are the heads of a ratio and its interval.
func ratioColumns(name string) []report.Column {
	return []report.Column{ratioColumn(name), {Name: "95 % interval (n)"}}
}

// What tables of ratios of cells say of sample and spread.
const (
	ratioSample = "repeats of both cells, n of the subject first; a file that holds no samples counts as one measurement, and its ratio has no interval"
	ratioSpread = "95 % interval of the ratio by permutation of the repeats, from 4 against 4 on; colored only where it leaves out 1.00×"
)
