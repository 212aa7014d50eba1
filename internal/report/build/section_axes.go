package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
)

func sortPoints(ps []chart.Point) {
	slices.SortStableFunc(ps, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
}

// place names a row of a table, with the marks of what a reader must know of its configuration.
func (g *Grid) place(c *Cell, m *marks) []report.Cell {
	return []report.Cell{report.Text(c.Model), report.Text(g.label(c.column(), c.Model, m)), report.Text(c.Scenario)}
}

func placeColumns() []report.Column {
	return []report.Column{{Name: "Model", Key: true}, {Name: "Configuration", Key: true}, {Name: "Scenario", Key: true}}
}

func rateColumn(name string) report.Column {
	return report.Column{Name: name, Unit: "tok/s", Number: true, Digits: 1, Better: report.Higher}
}

func shownDecode(c *Cell) report.Cell {
	if c == nil {
		return shown(nil, 0, fieldDecode)
	}
	return shown(c, c.DecodeTPS, fieldDecode)
}

// parallelSection is tensor parallelism: every degree of a configuration, and the highest over the lowest.
func (g *Grid) parallelSection() (report.Section, bool) {
	s := report.Section{ID: "tensor_parallel", Title: "Tensor parallelism"}
	var degrees []int
	for i := range g.Cells {
		if c := &g.Cells[i]; c.baseline() && !slices.Contains(degrees, c.TP) {
			degrees = append(degrees, c.TP)
		}
	}
	slices.Sort(degrees)
	if len(degrees) < 2 {
		return s, false
	}
	s.Table = report.Table{Formula: "scaling: highest degree that ran / lowest", Source: "baseline cells of each degree", Sample: ratioSample, Spread: ratioSpread,
		Columns: append(placeColumns(), report.Column{Name: "Figure", Key: true})}
	for _, d := range degrees {
		s.Table.Columns = append(s.Table.Columns, rateColumn(fmt.Sprintf("tp%d", d)))
	}
	s.Table.Columns = append(s.Table.Columns, ratioColumns("scaling")...)
	m := &marks{}
	seen := map[string]bool{}
	for i := range g.Cells {
		c := &g.Cells[i]
		name := strings.Join([]string{c.Source, c.Engine, c.Backend, c.Model, c.Scenario}, "\x00")
		if seen[name] || !c.baseline() {
			continue
		}
		seen[name] = true
		g.degreeRows(&s.Table, c, degrees, m)
	}
	s.Notes = m.lines()
	return s, len(s.Table.Rows) > 0
}

// degreeRows adds decode and prefill of the cell's configuration at every degree, where more than one ran.
func (g *Grid) degreeRows(t *report.Table, c *Cell, degrees []int, m *marks) {
	at := make([]*Cell, len(degrees))
	ran := 0
	for i, d := range degrees {
		col := c.column()
		col.tp = d
		if at[i] = g.cell(col, c.Model, c.Scenario, (*Cell).baseline); at[i].ok() {
			ran++
		}
	}
	if ran < 2 {
		return
	}
	first := column{c.Source, c.Engine, c.Backend, 1}
	for _, f := range figures[:2] {
		row := []report.Cell{report.Text(c.Model), report.Text(g.label(first, c.Model, m)), report.Text(c.Scenario), report.Text(f.name)}
		var lowest, highest *Cell
		for _, p := range at {
			value := 0.0
			if p != nil {
				value = f.of(p)
			}
			row = append(row, shown(p, value, f.field))
			if p.ok() && value > 0 {
				if highest = p; lowest == nil {
					lowest = p
				}
			}
		}
		scaling := []report.Cell{report.Absent(reasonNoValue), report.Absent(reasonNoValue)}
		if lowest != highest {
			scaling = g.proofs.cells(f.divide(highest, lowest))
		}
		t.Add(append(row, scaling...)...)
	}
}

// workflowSection is what became of scenarios whose answers are checked: tool calls and conversations.
func (g *Grid) workflowSection() (report.Section, bool) {
	s := report.Section{ID: "workflows", Title: "Tool calls and workflows"}
	s.Table.Source = "every cell whose answers were checked"
	m := &marks{}
	s.Table.Columns = append(placeColumns(), report.Column{Name: "Point", Key: true}, report.Column{Name: "turns"}, report.Column{Name: "correct"}, report.Column{Name: "why not"})
	for i := range g.Cells {
		c := &g.Cells[i]
		if c.Status != StatusOK || c.ToolCallOK == nil && c.TurnsExpected < 2 {
			continue
		}
		verdict := report.Absent("not_checked")
		if c.ToolCallOK != nil {
			verdict = report.Text("no").Toned(report.Bad)
			if *c.ToolCallOK {
				verdict = report.Text("yes").Toned(report.Good)
			}
		}
		turns := report.Absent("not_a_conversation")
		if c.TurnsExpected > 0 {
			turns = report.Text(fmt.Sprintf("%d/%d", c.Turns, c.TurnsExpected))
			if c.partial() {
				turns = turns.Toned(report.Marked)
			}
		}
		s.Table.Add(append(g.place(c, m), report.Text(c.point()), turns, verdict.Of(c.Exchanges...), report.Text(c.Detail))...)
	}
	s.Notes = m.lines()
	return s, len(s.Table.Rows) > 0
}

// clockSection is our rates beside those that the engines state, for cells that have both.
func (g *Grid) clockSection() (report.Section, bool) {
	s := report.Section{ID: "engine_clock_cells", Title: "Wire against engine, by cell"}
	s.Table = clockTable(placeColumns())
	m := &marks{}
	for i := range g.Cells {
		c := &g.Cells[i]
		if !c.ok() || !c.baseline() || c.EngineDecode <= 0 && c.EnginePrefillTPS <= 0 {
			continue
		}
		s.Table.Add(append(g.place(c, m), clockCells(c.DecodeTPS, c.EngineDecode, c.PrefillTPS, c.EnginePrefillTPS, c.Exchanges)...)...)
	}
	s.Notes = m.lines()
	return s, len(s.Table.Rows) > 0
}

// clockTable is the form of a comparison of the two clocks.
func clockTable(key []report.Column) report.Table {
	part := func(name string) report.Column { return report.Column{Name: name, Unit: "%", Number: true, Digits: 1} }
	return report.Table{Formula: "difference: ours / engine - 1; above 5 % it is marked", Sample: "medians of the cell", Source: "our clock on the wire, and what the engine says of itself",
		Columns: append(key, rateColumn("decode, ours"), rateColumn("decode, engine"), part("decode difference"), rateColumn("prefill, ours"), rateColumn("prefill, engine"), part("prefill difference"))}
}

const clocksPart = 5.0 // percent

func clockCells(decode, engineDecode, prefill, enginePrefill float64, ids []exchange.ID) []report.Cell {
	var out []report.Cell
	for _, pair := range [][2]float64{{decode, engineDecode}, {prefill, enginePrefill}} {
		ours, theirs, part := report.Absent(reasonNoValue), report.Absent("not_reported"), report.Absent("not_comparable")
		if pair[0] > 0 {
			ours = report.Number(pair[0]).Of(ids...)
		}
		if pair[1] > 0 {
			theirs = report.Number(pair[1]).Based(exchange.BasisReported).Of(ids...)
		}
		if pair[0] > 0 && pair[1] > 0 {
			percent := (pair[0]/pair[1] - 1) * 100
			if part = report.Number(percent).Of(ids...); percent > clocksPart || percent < -clocksPart {
				part = part.Toned(report.Marked)
			}
		}
		out = append(out, ours, theirs, part)
	}
	return out
}
