package build

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
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
	if tuning, ok := g.tuningPart(); ok {
		s.Parts = append(s.Parts, tuning)
	}
	return s, len(s.Table.Rows) > 0
}

// tuned is one way to draft of one configuration and model, over its scenarios.
type tuned struct {
	col        column
	model      string
	name       string
	drafters   set[string]
	qs         []quotient // on over off of each scenario
	acceptance []float64  // percent
	failed     int        // cells that the engine rejected, or that did not draft
}

// tunings gather the cells with drafts, in their order.
func (g *Grid) tunings() []tuned {
	var out []tuned
	for i := range g.Cells {
		on := &g.Cells[i]
		if !on.drafting() {
			continue
		}
		at := slices.IndexFunc(out, func(t tuned) bool { return t.col == on.column() && t.model == on.Model && t.name == on.draftName() })
		if at < 0 {
			at = len(out)
			out = append(out, tuned{col: on.column(), model: on.Model, name: on.draftName()})
		}
		t := &out[at]
		if on.Drafter != "" {
			t.drafters.add(on.Drafter)
		}
		if on.Acceptance != nil {
			t.acceptance = append(t.acceptance, *on.Acceptance*100)
		}
		if on.Status == StatusFail || on.has(flagNotSpeculating) {
			t.failed++
		}
		if q := draftQuotient(on, g.cell(on.column(), on.Model, on.Scenario, (*Cell).baseline)); q.why == "" {
			t.qs = append(t.qs, q)
		}
	}
	return out
}

// tuningPart is the tuning table: what each method and depth came to over the scenarios of a model, and which is to be used.
func (g *Grid) tuningPart() (report.Section, bool) {
	p := report.Section{ID: "tuning", Title: "Tuning table: methods and depths over all scenarios"}
	p.Table = report.Table{Formula: "on / off: geometric mean over the scenarios that have both; the one to use is the fastest from 3 % over no drafts on, else none", Source: "cells with and without drafts, one request at a time",
		Sample: "n is the number of scenarios", Spread: meanSpread,
		Columns: []report.Column{{Name: "Model", Key: true}, {Name: "Configuration", Key: true}, {Name: "Drafts", Key: true}, {Name: "drafter"}, ratioColumn("on / off"), {Name: "95 % interval"}, {Name: "n", Number: true},
			{Name: "acceptance", Unit: "%", Number: true, Digits: 1}, {Name: "failed or not drafting", Number: true}, {Name: "verdict"}}}
	m := &marks{}
	all := g.tunings()
	for i := range all {
		t := &all[i]
		mean := meanOf(t.qs)
		acceptance := report.Absent("not_reported")
		if s := stat.Summarize(t.acceptance); s.Median != nil {
			acceptance = report.Number(*s.Median).Spread(spreadOf(s)).Based(exchange.BasisReported).In("mtp")
		}
		p.Table.Add(report.Text(t.model), report.Text(g.label(t.col, t.model, m)), report.Text(t.name), textOr(strings.Join(t.drafters.order, ", "), "not_stated"), mean.cell().In("mtp"), report.Text(mean.words()),
			report.Count(mean.n), acceptance, report.Count(t.failed), tuningVerdict(t, &mean, all))
	}
	p.Notes = m.lines()
	return p, len(p.Table.Rows) > 0
}

// tuningVerdict says of a way to draft whether it is the one to use.
func tuningVerdict(t *tuned, own *mean, all []tuned) report.Cell {
	best := own.value
	for i := range all {
		if o := &all[i]; o.col == t.col && o.model == t.model {
			other := meanOf(o.qs)
			best = max(best, other.value)
		}
	}
	switch {
	case own.n == 0:
		return report.Absent("not_compared")
	case own.value < best:
		return report.Text("not the fastest")
	case own.value < leastGain:
		return report.Text("none is to be used: the gain is below 3 %")
	case own.interval == nil || own.interval.Lo <= 1:
		return report.Text("to be used, though not told from 1.00×").Toned(report.Marked)
	}
	return report.Text("to be used").Toned(report.Good)
}

// drafting reports whether the cell stands in the table of drafts.
func (c *Cell) drafting() bool {
	return c.drafts() && c.Concurrency <= 1 && c.CPUMoELayers == 0 && !c.unasked()
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
		words := "fastest, by 3 % or more over none"
		if why := g.proofs.of(draftQuotient(on, g.cell(on.column(), on.Model, on.Scenario, (*Cell).baseline))).why; why != "" {
			words += " (not told from 1.00×: " + reasonsText([]exchange.Reason{why}) + ")"
		}
		return report.Text(words)
	case draftQuotient(on, g.cell(on.column(), on.Model, on.Scenario, (*Cell).baseline)).why != "":
		return report.Absent("not_compared")
	}
	return report.Text("not the fastest")
}
