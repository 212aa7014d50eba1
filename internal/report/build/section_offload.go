package build

import (
	"cmp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/report"
)

const noteThreads = "this engine's executor for the model takes its thread count from the environment of the server: points that differ in threads alone differ in their label alone"

// offloadSection is the offload of experts to the CPU: every point against none.
func (g *Grid) offloadSection() (report.Section, bool) {
	s := report.Section{ID: "moe_offload", Title: "Offload of experts to the CPU",
		Lead: []string{"This axis is about fitting a model, not about speed: ratios below 1.00× are what the saved memory costs."}}
	s.Table = report.Table{Formula: "point / nothing offloaded, of one configuration", Source: "cells with offload, one request at a time, no drafts", Sample: ratioSample, Spread: ratioSpread,
		Columns: slices.Concat(placeColumns(), []report.Column{{Name: "Point", Key: true}, rateColumn("decode")}, ratioColumns("decode ratio"), []report.Column{rateColumn("prefill")}, ratioColumns("prefill ratio"))}
	m := &marks{}
	for i := range g.Cells {
		c := &g.Cells[i]
		if !c.offload() {
			continue
		}
		base := g.cell(c.column(), c.Model, c.Scenario, (*Cell).baseline)
		s.Table.Add(slices.Concat(g.place(c, m), []report.Cell{report.Text(c.offloadPoint(m)), shownDecode(c)}, g.proofs.cells(figures[0].divide(c, base)),
			[]report.Cell{shown(c, c.PrefillTPS, fieldPrefill)}, g.proofs.cells(figures[1].divide(c, base)))...)
	}
	s.Notes = m.lines()
	if best, ok := g.fastestOffload(); ok {
		s.Parts = append(s.Parts, best)
	}
	return s, len(s.Table.Rows) > 0
}

// offload reports whether the cell stands in the table of offload.
func (c *Cell) offload() bool {
	return c.CPUMoELayers != 0 && !c.drafts() && c.Concurrency <= 1 && !c.unasked()
}

// offloadPoint names layers and threads of the cell, with its mark.
func (c *Cell) offloadPoint(m *marks) string {
	point := offloadName(c.CPUMoELayers, c.CPUMoEThreads)
	if c.CPUMoEThreads > 0 && c.Engine == defaultSubject && strings.HasPrefix(strings.ToLower(c.Model), "glm") {
		point += " " + m.sign(noteThreads)
	}
	return point
}

// fastestOffload is the fastest of the points of each configuration and scenario, and how far the next one is behind: which
// point to use where a model does not fit.
func (g *Grid) fastestOffload() (report.Section, bool) {
	p := report.Section{ID: "moe_offload_fastest", Title: "Fastest point of each scenario"}
	p.Table = report.Table{Formula: "ratio: fastest point / the next one", Source: "cells with offload that ran, at least two of a configuration and scenario", Sample: ratioSample, Spread: ratioSpread,
		Columns: slices.Concat(placeColumns(), []report.Column{{Name: "Figure", Key: true}, {Name: "points", Number: true}, {Name: "fastest"}, rateColumn("rate"), {Name: "next"}}, ratioColumns("ratio"))}
	m := &marks{}
	var places set[place]
	for i := range g.Cells {
		if g.Cells[i].offload() {
			places.add(g.Cells[i].place())
		}
	}
	for _, at := range places.order {
		for _, f := range figures[:2] {
			ran := slices.DeleteFunc(slices.Clone(g.index.at[at]), func(c *Cell) bool { return !c.offload() || !c.ok() || f.of(c) <= 0 })
			if len(ran) < 2 {
				continue
			}
			slices.SortStableFunc(ran, func(a, b *Cell) int { return cmp.Compare(f.of(b), f.of(a)) })
			p.Table.Add(slices.Concat(g.place(ran[0], m), []report.Cell{report.Text(f.name), report.Count(len(ran)), report.Text(ran[0].offloadPoint(m)), shown(ran[0], f.of(ran[0]), f.field),
				report.Text(ran[1].offloadPoint(m))}, g.proofs.cells(f.divide(ran[0], ran[1])))...)
		}
	}
	p.Notes = m.lines()
	return p, len(p.Table.Rows) > 0
}
