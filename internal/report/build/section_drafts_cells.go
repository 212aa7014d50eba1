package build

import (
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
)

// Flags of result files that say what became of drafting.
const (
	flagNotSpeculating = "not_speculating"
	flagNotCounted     = "drafts_not_counted"
)

// reasonNotSpeculating is why a cell that was to draft has no ratio to one without drafts: it drafted nothing.
const reasonNotSpeculating exchange.Reason = "not_speculating"

// leastGain is how much faster than no drafts a method is to be before it counts as the fastest.
const leastGain = 1.03

const noteNotCounted = "the engine counts no drafts: whether it drafted is not on record"

// draftSection is speculative decoding on against off, each method of each configuration.
func (g *Grid) draftSection() (report.Section, bool) {
	s := report.Section{ID: "mtp", Title: "Speculative decoding by cell",
		Lead: []string{"A ratio below 1.00× means that drafting cost more than it saved. Rates with drafts depend on the text. " +
			"A method is the fastest of its scenario only from 3 % over no drafts on; one that the engine rejected is listed as failed."}}
	s.Table = report.Table{Formula: "on / off of one configuration", Source: "cells with and without drafts, one request at a time", Sample: ratioSample, Spread: ratioSpread,
		Columns: slices.Concat(placeColumns(), []report.Column{{Name: "Drafts", Key: true}, {Name: "drafter"}, rateColumn("off"), rateColumn("on")}, ratioColumns("on / off"),
			[]report.Column{{Name: "acceptance", Unit: "%", Number: true, Digits: 1}, {Name: "verdict"}})}
	m := &marks{}
	fastest := g.fastestDrafts()
	for i := range g.Cells {
		on := &g.Cells[i]
		if !on.drafting() {
			continue
		}
		method := on.draftName()
		if on.has(flagNotCounted) {
			method += " " + m.sign(noteNotCounted)
		}
		drafter := report.Absent("not_stated")
		if on.Drafter != "" {
			drafter = report.Text(on.Drafter)
		}
		off := g.cell(on.column(), on.Model, on.Scenario, (*Cell).baseline)
		s.Table.Add(slices.Concat(g.place(on, m), []report.Cell{report.Text(method), drafter, shownDecode(off), shownDecode(on)}, g.proofs.cells(draftQuotient(on, off)),
			[]report.Cell{on.acceptance(), g.draftVerdict(on, fastest)})...)
	}
	s.Notes = m.lines()
	return s, len(s.Table.Rows) > 0
}

// drafting reports whether the cell stands in the table of drafts.
func (c *Cell) drafting() bool {
	return c.drafts() && c.Concurrency <= 1 && c.CPUMoELayers == 0 && c.Status != StatusSkipped
}

// draftName is how the cell drafts.
func (c *Cell) draftName() string {
	method := c.Method
	if method == "" {
		method = "MTP"
	}
	if c.Depth > 0 {
		method += fmt.Sprintf(", depth %d", c.Depth)
	}
	return method
}

func (c *Cell) acceptance() report.Cell {
	switch {
	case c.Acceptance != nil:
		return report.Number(*c.Acceptance * 100).Of(c.Exchanges...)
	case c.has(flagNotSpeculating):
		return report.Absent(reasonNotSpeculating)
	}
	return report.Absent("not_reported")
}

// draftQuotient is on over off by the decode rate. An engine that was to draft and did not has none.
func draftQuotient(on, off *Cell) quotient {
	q := figures[0].divide(on, off)
	if q.why == "" && on.has(flagNotSpeculating) {
		q.why = reasonNotSpeculating
	}
	return q
}

// fastestDrafts are, of each place, the cell of the highest ratio to no drafts; there is none where that is below leastGain.
func (g *Grid) fastestDrafts() map[place]*Cell {
	best, out := map[place]float64{}, map[place]*Cell{}
	for i := range g.Cells {
		on := &g.Cells[i]
		if !on.drafting() {
			continue
		}
		at := on.place()
		q := draftQuotient(on, g.cell(on.column(), on.Model, on.Scenario, (*Cell).baseline))
		if q.why == "" && q.value >= max(leastGain, best[at]) {
			best[at], out[at] = q.value, on
		}
	}
	return out
}

func (g *Grid) draftVerdict(on *Cell, fastest map[place]*Cell) report.Cell {
	switch {
	case on.Status == StatusFail:
		return report.Text("failed").Toned(report.Bad).Titled(on.Detail)
	case on.has(flagNotSpeculating):
		return report.Text("not speculating").Toned(report.Marked)
	case fastest[on.place()] == on:
		return report.Text("fastest, by 3 % or more over none")
	case draftQuotient(on, g.cell(on.column(), on.Model, on.Scenario, (*Cell).baseline)).why != "":
		return report.Absent("not_compared")
	}
	return report.Text("not the fastest")
}
