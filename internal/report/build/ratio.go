package build

import (
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
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
	reasonFallback  exchange.Reason = "cpu_fallback"       // one side ran on the CPU though a GPU was asked for
	reasonWave      exchange.Reason = "wave_member_failed" // the others had the engine more to themselves
	reasonFigures   exchange.Reason = "not_every_scenario" // some ratios of a mean have no repeats
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
	if q.why = f.forbids(subject, reference); q.why != "" {
		return q
	}
	q.unknown = f.field == fieldDecode && subject.DecodeSource == ""
	if q.value = f.of(subject) / f.of(reference); f.lower {
		q.value = 1 / q.value
	}
	return q
}

// forbids is why two cells with a value each are not divided.
func (f figure) forbids(subject, reference *Cell) exchange.Reason {
	counts := f.field != fieldTTFT && f.field != fieldPrefill // it counts generated tokens
	switch {
	case subject.fallback() != reference.fallback():
		return reasonFallback
	case subject.lostMember() || reference.lostMember():
		return reasonWave
	case counts && subject.Estimated != reference.Estimated:
		return compare.ReasonEstimated
	case f.field == fieldDecode && (subject.has(measure.FlagShortAnswer) || reference.has(measure.FlagShortAnswer)):
		return compare.ReasonShort
	case f.field == fieldDecode && subject.DecodeSource != reference.DecodeSource:
		return reasonSources
	}
	return ""
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
	return slices.DeleteFunc(g.sides(model), func(a against) bool {
		return !slices.ContainsFunc(g.scenarios(model), func(s string) bool {
			return slices.ContainsFunc(figures[:], func(f figure) bool { return g.quotient(a, f, model, s).why == "" })
		})
	})
}

func (g *Grid) quotient(a against, f figure, model, scenario string) quotient {
	side := func(engine string) *Cell {
		return g.cell(column{a.source, engine, a.backend, a.tp}, model, scenario, (*Cell).baseline)
	}
	return f.divide(side(g.Subject), side(a.reference))
}

// lostMember reports whether requests that were to run together did not all succeed.
func (c *Cell) lostMember() bool { return c.Concurrency > 1 && c.RequestsOK < c.Concurrency }

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
		Sample: "n is the number of scenarios behind each mean", Spread: meanSpread,
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
	var counts, intervals []string
	for _, f := range figures {
		var qs []quotient
		for _, scenario := range g.scenarios(model) {
			if q := g.quotient(a, f, model, scenario); q.why == "" {
				qs = append(qs, q)
			}
		}
		mean := meanOf(qs)
		row = append(row, mean.cell().In(ratioSection(model)))
		counts, intervals = append(counts, strconv.Itoa(mean.n)), append(intervals, f.name+" "+mean.words())
	}
	return append(row, report.Text(strings.Join(counts, ", ")), report.Text(strings.Join(intervals, "; ")))
}

// ratioSection is the id of the section with the ratios of a model.
func ratioSection(model string) string { return "ratios-" + slug(model) }
