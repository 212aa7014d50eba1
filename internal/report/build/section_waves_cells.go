package build

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/report"
)

// waveFigures are the three rates of requests that ran together. Each has its own window, and they are never mixed.
var waveFigures = [...]figure{
	{fieldAggregate, "aggregate", "tok/s", func(c *Cell) float64 { return c.AggregateTPS }, false},
	{fieldSteady, "steady", "tok/s", func(c *Cell) float64 { return c.SteadyTPS }, false},
	{fieldBatch, "batch", "tok/s", func(c *Cell) float64 { return c.Batch }, false},
}

// parallelFigures are those of a ratio of waves: the three rates, and what one request of them saw.
var parallelFigures = [...]figure{waveFigures[0], waveFigures[1], waveFigures[2],
	{fieldDecode, "decode of one", "tok/s", func(c *Cell) float64 { return c.DecodeTPS }, false},
	{fieldTTFT, "TTFT of one", "ms", func(c *Cell) float64 { return c.TTFTMS }, true},
}

// wave reports whether the cell is of requests that ran together, without drafts and offload.
func (c *Cell) wave() bool { return c.Concurrency > 1 && !c.drafts() && c.CPUMoELayers == 0 }

// scalingSection is the same cells with more requests at a time, with all three rates of a wave.
func (g *Grid) scalingSection() (report.Section, bool) {
	s := report.Section{ID: "scaling", Title: "Requests in parallel"}
	s.Table = report.Table{
		Formula: "per request: mean decode rate of one; aggregate: tokens after the first of each, from the first token of any to the last of any; steady: tokens while all decode; batch: all tokens over the whole wall",
		Source:  "cells of more than one request at a time, and their baseline", Sample: "requests that succeeded of those sent",
		Columns: append(placeColumns(), report.Column{Name: "at a time", Number: true, Key: true}, report.Column{Name: "ok", Key: false}, rateColumn("per request"),
			rateColumn("aggregate"), rateColumn("steady"), rateColumn("batch"))}
	plots := map[string]*chart.Plot{}
	var order []string
	m := &marks{}
	for _, c := range g.waves() {
		if c.Concurrency <= 1 {
			c.SteadyTPS, c.Batch = 0, 0
		}
		ok := report.Text(fmt.Sprintf("%d/%d", c.RequestsOK, c.Concurrency))
		if c.RequestsOK < c.Concurrency {
			ok = ok.Toned(report.Marked)
		}
		row := append(g.place(c, m), report.Count(c.Concurrency), ok, shownDecode(c))
		for _, f := range waveFigures {
			row = append(row, shownWave(c, f))
		}
		s.Table.Add(row...)
		name := c.Model + ", " + c.Scenario
		if plots[name] == nil {
			plots[name] = &chart.Plot{Title: "Scaling, " + name, X: chart.Axis{Label: "requests at a time"}, Y: chart.Axis{Label: "aggregate decode", Unit: "tok/s"}}
			order = append(order, name)
		}
		addPoint(plots[name], g.label(c.column(), "", nil), chart.Point{X: float64(c.Concurrency), Y: c.AggregateTPS}, c.ok() && c.RequestsOK >= c.Concurrency && c.AggregateTPS > 0)
	}
	s.Notes = m.lines()
	for _, name := range order {
		drawLines(&s, report.Chart{ID: "chart-scaling-" + slug(name), Title: "Aggregate decode rate against requests at a time, " + name}, *plots[name])
	}
	if part, ok := g.waveRatios(); ok {
		s.Parts = append(s.Parts, part)
	}
	return s, len(s.Table.Rows) > 0
}

// shownWave is a rate of requests that ran together, in a table.
func shownWave(c *Cell, f figure) report.Cell {
	if c.ok() && c.lostMember() {
		return report.Absent(reasonWave)
	}
	value := 0.0
	if c != nil {
		value = f.of(c)
	}
	return shown(c, value, f.field)
}

// addPoint adds a point to the named series; one that is not usable is left out.
func addPoint(p *chart.Plot, series string, at chart.Point, usable bool) {
	if !usable {
		return
	}
	i := slices.IndexFunc(p.Series, func(s chart.Series) bool { return s.Name == series })
	if i < 0 {
		i = len(p.Series)
		p.Series = append(p.Series, chart.Series{Name: series})
	}
	p.Series[i].Points = append(p.Series[i].Points, at)
}

// waves are the cells of every model, configuration and scenario that ran with several requests at a time, and their baseline,
// in that order.
func (g *Grid) waves() []*Cell {
	levels := map[place]map[int]bool{}
	var out []*Cell
	for i := range g.Cells {
		c := &g.Cells[i]
		n := c.place()
		if c.drafts() || c.CPUMoELayers != 0 || c.unasked() {
			continue
		}
		if levels[n] == nil {
			levels[n] = map[int]bool{}
		}
		levels[n][c.Concurrency] = true
		copied := *c
		if copied.Concurrency <= 1 && copied.RequestsOK == 0 && copied.ok() {
			copied.RequestsOK = 1
		}
		out = append(out, &copied)
	}
	out = slices.DeleteFunc(out, func(c *Cell) bool { return len(levels[c.place()]) == 1 && levels[c.place()][1] })
	models, columns := g.models(), map[string][]column{}
	for _, model := range models {
		columns[model] = g.ordered(g.index.compared[model].order)
	}
	slices.SortStableFunc(out, func(a, b *Cell) int {
		return cmp.Or(slices.Index(models, a.Model)-slices.Index(models, b.Model), cmp.Compare(a.Scenario, b.Scenario),
			slices.Index(columns[a.Model], a.column())-slices.Index(columns[b.Model], b.column()), a.Concurrency-b.Concurrency)
	})
	return out
}

// waveQuotient is one comparison of requests that ran together.
type waveQuotient struct {
	against
	model, scenario string
	concurrency     int
	quotient
}

// waveQuotients are the subject against every reference on one backend and degree, at as many requests at a time. A model and
// comparison without a single ratio has none.
func (g *Grid) waveQuotients() []waveQuotient {
	var out []waveQuotient
	for _, model := range g.models() {
		for _, a := range g.sides(model) {
			out = append(out, g.wavesAgainst(a, model)...)
		}
	}
	return out
}

// sides are the subject on each backend and degree against each reference, in the order of the tables.
func (g *Grid) sides(model string) []against {
	var out []against
	for _, col := range g.ordered(g.index.compared[model].order) {
		for _, ref := range g.References {
			if col.engine == g.Subject && ref != g.Subject {
				out = append(out, against{ref, col.backend, col.tp, col.source})
			}
		}
	}
	return out
}

func (g *Grid) wavesAgainst(a against, model string) []waveQuotient {
	var out []waveQuotient
	divided := false
	for _, scenario := range g.scenarios(model) {
		for _, n := range g.index.levels[model] {
			at := func(engine string) *Cell {
				return g.cell(column{a.source, engine, a.backend, a.tp}, model, scenario, func(c *Cell) bool { return c.wave() && c.Concurrency == n })
			}
			subject, reference := at(g.Subject), at(a.reference)
			if subject == nil && reference == nil {
				continue
			}
			for _, f := range parallelFigures {
				q := f.divide(subject, reference)
				divided = divided || q.why == ""
				out = append(out, waveQuotient{a, model, scenario, n, q})
			}
		}
	}
	if !divided {
		return nil
	}
	return out
}

// waveRatios is the subject against the references at several requests at a time.
func (g *Grid) waveRatios() (report.Section, bool) {
	p := report.Section{ID: "scaling_ratios", Title: "Ratios of requests in parallel"}
	p.Table = report.Table{Formula: "rates: subject / reference; TTFT: reference / subject. Above 1.00× the subject is faster",
		Source: "cells of as many requests at a time on both sides, no drafts, nothing offloaded; same backend, same tensor-parallel degree, one source; a wave that lost a request has no ratio",
		Sample: ratioSample, Spread: ratioSpread,
		Columns: slices.Concat([]report.Column{{Name: "Model", Key: true}, {Name: "Comparison", Key: true}, {Name: "Scenario", Key: true}, {Name: "at a time", Number: true, Key: true}, {Name: "Figure", Key: true},
			{Name: "subject", Number: true, Digits: 1}, {Name: "reference", Number: true, Digits: 1}, {Name: "unit"}}, ratioColumns("ratio"))}
	m := &marks{}
	for _, w := range g.waveQuotients() {
		p.Table.Add(slices.Concat([]report.Cell{report.Text(w.model), report.Text(g.waveLabel(&w, m)), report.Text(w.scenario), report.Count(w.concurrency), report.Text(w.figure.name),
			shownWave(w.quotient.sides[0], w.figure), shownWave(w.quotient.sides[1], w.figure), report.Text(w.figure.unit)}, g.proofs.cells(w.quotient))...)
	}
	p.Notes = m.lines()
	return p, len(p.Table.Rows) > 0
}

func (g *Grid) waveLabel(w *waveQuotient, m *marks) string {
	label := g.pairLabel(w.against, w.model, m)
	if w.unknown && m != nil {
		label += " " + m.sign(noteUnknownRate)
	}
	return label
}
