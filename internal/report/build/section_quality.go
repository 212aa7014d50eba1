package build

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/report"
)

// Bounds of excerpts.
const (
	excerptRunes = 600
	sharedRunes  = 120
	mostExcerpts = 20
)

// likeness is how far the answers of two cells agree.
type likeness struct {
	subject, reference *Cell
	ratio              float64
}

// jsonValid reports whether an answer is a JSON object or value: whole, or from its first { to its last }.
func jsonValid(text string) bool {
	if json.Valid([]byte(strings.TrimSpace(text))) {
		return true
	}
	from, to := strings.Index(text, "{"), strings.LastIndex(text, "}")
	return from >= 0 && to > from && json.Valid([]byte(text[from:to+1]))
}

// similarity is the ratio of two answers and the word for it; ok is false when a side has no text.
func similarity(subject, reference string) (ratio float64, ok bool) {
	a, b := joinSpace(subject), joinSpace(reference)
	if a == "" || b == "" {
		return 0, false
	}
	return compare.Ratio(a, b), true
}

// likenesses are those of the subject against the reference of quality on one backend and degree: both answered, and it is
// no prefill scenario, whose answers are cut after a few tokens.
func (g *Grid) likenesses() []likeness {
	var out []likeness
	if len(g.References) == 0 {
		return nil
	}
	for i := range g.Cells {
		c := &g.Cells[i]
		if _, prefill := promptLength(c.Scenario); prefill || c.Engine != g.Subject || !c.ok() || !c.baseline() {
			continue
		}
		ref := g.cell(column{c.Source, g.References[0], c.Backend, c.TP}, c.Model, c.Scenario, (*Cell).baseline)
		if !ref.ok() {
			continue
		}
		if r, ok := similarity(c.Output, ref.Output); ok {
			out = append(out, likeness{c, ref, r})
		}
	}
	slices.SortStableFunc(out, func(a, b likeness) int { return cmp.Compare(a.ratio, b.ratio) })
	return out
}

// qualitySection is how far the subject answers as the reference does, lowest agreement first.
func (g *Grid) qualitySection() (report.Section, bool) {
	all := g.likenesses()
	s := report.Section{ID: "quality", Title: "Output quality"}
	if len(all) == 0 {
		return s, false
	}
	s.Lead = []string{fmt.Sprintf("Both engines decode the same weights, so greedy answers should agree. %s is held against %s.", g.Engine(g.Subject), g.Engine(g.References[0]))}
	s.Table = report.Table{Formula: "difflib ratio of the texts with white space joined, subject first: 1.00 is identical; high agreement from 0.90, moderate from 0.75, low from 0.50",
		Source: "answers of baseline cells, prefill scenarios excepted", Sample: "one answer each",
		Columns: append(placeColumns(), report.Column{Name: "similarity", Number: true, Digits: 2, Better: report.Higher}, report.Column{Name: "verdict"},
			report.Column{Name: "structure, subject"}, report.Column{Name: "structure, reference"})}
	m := &marks{}
	sum, least, most := 0.0, 1.0, 0.0
	for _, l := range all {
		sum, least, most = sum+l.ratio, min(least, l.ratio), max(most, l.ratio)
		s.Table.Add(append(g.place(l.subject, m), report.Number(l.ratio).Of(slices.Concat(half(l.subject), half(l.reference))...),
			report.Text(compare.Grade(l.ratio)).Toned(gradeTone(l.ratio)), structure(l.subject), structure(l.reference))...)
	}
	s.Notes = append([]string{fmt.Sprintf("mean %.2f, min %.2f, max %.2f over %d answers", sum/float64(len(all)), least, most, len(all))}, m.lines()...)
	for _, l := range all[:min(len(all), mostExcerpts)] {
		if l.ratio < 1 {
			s.Excerpts = append(s.Excerpts, g.excerpt(l))
		}
	}
	return s, true
}

func gradeTone(ratio float64) report.Tone {
	switch {
	case ratio >= 0.90:
		return report.Good
	case ratio < 0.50:
		return report.Bad
	}
	return report.Marked
}

// structure is whether an answer has the form that its scenario asks for.
func structure(c *Cell) report.Cell {
	yes := func(ok bool, good, bad string) report.Cell {
		if ok {
			return report.Text(good).Toned(report.Good)
		}
		return report.Text(bad).Toned(report.Bad)
	}
	switch {
	case c.Scenario == "json_mode":
		return yes(jsonValid(c.Output), "valid JSON", "no valid JSON")
	case c.Scenario == "function_call" && c.ToolCallOK != nil:
		return yes(*c.ToolCallOK, "tool called", "no tool called")
	}
	return report.Absent("not_structured")
}

// excerpt is both answers from where they part.
func (g *Grid) excerpt(l likeness) report.Excerpt {
	d, _ := compare.Diverge(compare.Answer{Text: l.reference.Output}, compare.Answer{Text: l.subject.Output})
	e := report.Excerpt{
		Title:  fmt.Sprintf("%s, %s: similarity %.2f, the first %d characters are the same", l.subject.Model, l.subject.Scenario, l.ratio, d.Offset),
		Shared: lastRunes(string([]rune(l.subject.Output)[:min(d.Offset, len([]rune(l.subject.Output)))]), sharedRunes),
	}
	for _, c := range []*Cell{l.subject, l.reference} {
		rest := []rune(c.Output)
		ref := ""
		if len(c.Exchanges) > 0 {
			ref = string(c.Exchanges[0])
		}
		e.Sides, e.Refs = append(e.Sides, g.label(c.column(), "", nil)), append(e.Refs, ref)
		e.Texts = append(e.Texts, firstRunes(string(rest[min(d.Offset, len(rest)):]), excerptRunes))
	}
	return e
}
