package build

import (
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// figure is one of the three that every table and ratio has.
type figure struct {
	field, name, unit string
	of                func(*Cell) float64
	lower             bool // less is better: the ratio is reference / subject
}

var figures = [...]figure{
	{fieldDecode, "decode", "tok/s", func(c *Cell) float64 { return c.DecodeTPS }, false},
	{fieldPrefill, "prefill", "tok/s", func(c *Cell) float64 { return c.PrefillTPS }, false},
	{fieldTTFT, "TTFT", "ms", func(c *Cell) float64 { return c.TTFTMS }, true},
}

// Why two cells have no ratio.
const (
	reasonNoRecord  exchange.Reason = "no_record"
	reasonNotOK     exchange.Reason = "not_ok"
	reasonPartial   exchange.Reason = "partial"
	reasonNoValue   exchange.Reason = "not_measured"
	reasonSources   exchange.Reason = "other_decode_source"
	reasonFallback  exchange.Reason = "cpu_fallback" // one side ran on the CPU though a GPU was asked for
	noteUnknownRate                 = "the formula behind both decode rates is not on record: they are divided as unknown against unknown"
)

// quotient is one engine over another, or why there is none.
type quotient struct {
	figure  figure
	value   float64
	why     exchange.Reason
	unknown bool // the formulas behind both are not on record
	sides   [2]*Cell
}

// divide is the subject over the reference: above 1 the subject is better, also in a time.
func (f figure) divide(subject, reference *Cell) quotient {
	q := quotient{figure: f, sides: [2]*Cell{subject, reference}}
	for _, c := range q.sides {
		switch {
		case c == nil:
			q.why = reasonNoRecord
		case c.Status != StatusOK:
			q.why = reasonNotOK
		case c.partial():
			q.why = reasonPartial
		case f.of(c) <= 0:
			q.why = reasonNoValue
		}
		if q.why != "" {
			return q
		}
	}
	if subject.fallback() != reference.fallback() {
		q.why = reasonFallback
		return q
	}
	if f.field == fieldDecode {
		if subject.DecodeSource != reference.DecodeSource {
			q.why = reasonSources
			return q
		}
		q.unknown = subject.DecodeSource == ""
	}
	if q.value = f.of(subject) / f.of(reference); f.lower {
		q.value = 1 / q.value
	}
	return q
}

// toneOf tells a ratio that shows two digits better or worse than 1.
func toneOf(ratio float64) report.Tone {
	switch {
	case ratio >= 1.005:
		return report.Good
	case ratio < 0.995:
		return report.Bad
	}
	return ""
}

// against is the subject held against one reference on one backend and degree.
type against struct {
	reference string
	backend   string
	tp        int
	source    string
}

// comparisons are the pairs of columns of a model that have at least one ratio.
func (g *Grid) comparisons(model string) []against {
	var out []against
	columns := g.columns(model)
	for _, col := range columns {
		for _, ref := range g.References {
			if col.engine != g.Subject || ref == g.Subject {
				continue
			}
			a := against{ref, col.backend, col.tp, col.source}
			if slices.ContainsFunc(g.scenarios(model), func(s string) bool {
				return slices.ContainsFunc(figures[:], func(f figure) bool { return g.quotient(a, f, model, s).why == "" })
			}) {
				out = append(out, a)
			}
		}
	}
	return out
}

func (g *Grid) quotient(a against, f figure, model, scenario string) quotient {
	side := func(engine string) *Cell {
		return g.cell(column{a.source, engine, a.backend, a.tp}, model, scenario, (*Cell).baseline)
	}
	return f.divide(side(g.Subject), side(a.reference))
}

// pairLabel names a comparison: TensorSharp / llama.cpp · GGML CUDA, with the marks of what a reader must know of both sides;
// m is nil for no marks.
func (g *Grid) pairLabel(a against, model string, m *marks) string {
	label := g.Engine(g.Subject)
	if m != nil {
		for _, note := range g.notesOf(column{a.source, g.Subject, a.backend, a.tp}, model) {
			label += " " + m.sign(note)
		}
	}
	return label + " / " + g.label(column{a.source, a.reference, a.backend, a.tp}, model, m)
}

// markedPair is the label with a mark where a ratio of the figure divides what is not known to be of one formula.
func (g *Grid) markedPair(a against, model string, f figure, m *marks) string {
	label := g.pairLabel(a, model, m)
	if slices.ContainsFunc(g.scenarios(model), func(s string) bool { return g.quotient(a, f, model, s).unknown }) {
		label += " " + m.sign(noteUnknownRate)
	}
	return label
}

// Footnotes of ratios.
const (
	ratioFormula = "decode, prefill: subject / reference; TTFT: reference / subject. Above 1.00× the subject is faster"
	ratioSource  = "baseline cells only: one request at a time, no drafts, nothing offloaded; same backend, same tensor-parallel degree, one source"
)

// headline is the section of geometric means, a row for each model and comparison of the first source.
func (g *Grid) headline() report.Section {
	s := report.Section{ID: "performance_ratio", Title: "Performance ratio"}
	s.Table = report.Table{
		Formula: "geometric mean over the scenarios that have a ratio, each figure over its own; " + ratioFormula, Source: ratioSource,
		Sample: "n is the number of scenarios behind each mean", Spread: "95 % bootstrap interval of the mean, from 11 scenarios on",
		Columns: []report.Column{{Name: "Model", Key: true}, {Name: "Comparison", Key: true}, ratioColumn("decode"), ratioColumn("prefill"), ratioColumn("TTFT"), {Name: "n"}, {Name: "95 % interval"}},
	}
	s.Lead = []string{"A mean whose interval leaves out 1.00× is colored; without an interval it is told, not proven."}
	m := &marks{}
	for _, model := range g.models() {
		for _, a := range g.comparisons(model) {
			if a.source == g.sources()[0] {
				s.Table.Rows = append(s.Table.Rows, g.means(model, a, m))
			}
		}
	}
	s.Notes = m.lines()
	return s
}

func ratioColumn(name string) report.Column {
	return report.Column{Name: name, Number: true, Digits: 2, Suffix: "×", Better: report.Higher}
}

func (g *Grid) means(model string, a against, m *marks) []report.Cell {
	row := []report.Cell{report.Text(model), report.Text(g.markedPair(a, model, figures[0], m))}
	counts, intervals := "", ""
	for i, f := range figures {
		var values []float64
		for _, scenario := range g.scenarios(model) {
			q := g.quotient(a, f, model, scenario)
			if q.why == "" {
				values = append(values, q.value)
			}
		}
		mean, n, interval := stat.GeoMean(values)
		cell := report.Absent(reasonNoValue)
		if n > 0 {
			cell = report.Number(mean).In(ratioSection(model))
		}
		text := "—"
		if interval != nil {
			text = fmt.Sprintf("%.2f to %.2f", interval.Lo, interval.Hi)
			cell = cell.Spread(report.Spread{Lo: interval.Lo, Hi: interval.Hi, N: n, Kind: report.SpreadInterval})
			if interval.Lo > 1 || interval.Hi < 1 {
				cell = cell.Toned(toneOf(mean))
			}
		}
		if i > 0 {
			counts, intervals = counts+", ", intervals+"; "
		}
		counts, intervals = counts+fmt.Sprint(n), intervals+text
		row = append(row, cell)
	}
	return append(row, report.Text(counts), report.Text(intervals))
}

// ratioSection is the id of the section with the ratios of a model.
func ratioSection(model string) string { return "ratios-" + slug(model) }
