package build

import (
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
)

// configurationsPart is what the result files say of where their cells ran.
func (g *Grid) configurationsPart() report.Section {
	p := report.Section{ID: "configurations", Title: "Configurations of the matrix"}
	p.Table = report.Table{Source: "result files: what the running engines said when the cells were measured",
		Formula: "model memory: growth of the server's memory from its start to its readiness, of the GPU where that is known", Sample: "the largest of the cells", Columns: []report.Column{{Name: "Source", Key: true}, {Name: "Configuration", Key: true}, {Name: "Engine's build"}, {Name: "Weights"},
			{Name: "Cells", Number: true}, {Name: "ok", Number: true}, {Name: "fail", Number: true}, {Name: "skipped", Number: true}, {Name: "Asked for"}, {Name: "Ran on"},
			{Name: "Model memory", Unit: "GiB", Number: true, Digits: 2}, {Name: "Measured by"}}}
	m := &marks{}
	all := g.configurations()
	lacking := slices.ContainsFunc(all, func(c *configuration) bool { return c.counts[StatusUnsupported] > 0 })
	if lacking {
		p.Table.Columns = append(p.Table.Columns, report.Column{Name: "unsupported", Number: true})
	}
	for _, c := range all {
		row := c.cells(g, m)
		if lacking {
			row = append(row, report.Count(c.counts[StatusUnsupported]))
		}
		p.Table.Add(row...)
	}
	p.Notes = m.lines()
	return p
}

// configuration is what the cells of one column say of their engine.
type configuration struct {
	column
	counts                                         map[string]int
	builds, weights, asked, ran, harnesses, starts set[string]
	memory                                         int64
	ids                                            []exchange.ID // the first ones
}

func (g *Grid) configurations() []*configuration {
	var order []*configuration
	at := map[column]*configuration{}
	for i := range g.Cells {
		c := &g.Cells[i]
		conf := at[c.column()]
		if conf == nil {
			conf = &configuration{column: c.column(), counts: map[string]int{}}
			at[c.column()] = conf
			order = append(order, conf)
		}
		conf.counts[c.Status]++
		conf.memory = max(conf.memory, c.ModelMemory)
		conf.ids = append(conf.ids, c.Exchanges[:min(len(c.Exchanges), max(0, firstIDs-len(conf.ids)))]...)
		for _, fact := range []struct {
			into *set[string]
			name string
		}{{&conf.builds, c.Version}, {&conf.weights, c.Weights}, {&conf.asked, c.RequestedDevice}, {&conf.ran, c.ObservedDevice}, {&conf.harnesses, c.Harness}, {&conf.starts, c.Command}} {
			if fact.name != "" {
				fact.into.add(fact.name)
			}
		}
	}
	return order
}

func (c *configuration) cells(g *Grid, m *marks) []report.Cell {
	size := report.Absent("not_known")
	if c.memory > 0 {
		size = report.Number(float64(c.memory) / (1 << 30)).Of(c.ids...)
	}
	builds := told(c.builds)
	if len(c.builds.order) > 1 {
		builds = builds.Toned(report.Marked) // one column, several builds
	}
	all := 0
	for _, n := range c.counts {
		all += n
	}
	return []report.Cell{report.Text(c.source), report.Text(g.label(c.column, "", m)), builds, told(c.weights), report.Count(all), report.Count(c.counts[StatusOK]), report.Count(c.counts[StatusFail]),
		report.Count(c.counts[StatusSkipped]), told(c.asked), told(c.ran), size, told(c.harnesses)}
}

// told are distinct values in a table.
func told(s set[string]) report.Cell { return textOr(strings.Join(s.order, ", "), "not_on_record") }

// reproduce adds the rows by which the cells can be made again: how each engine was started, what was sent, and the runs of the
// store with the exchanges and the command line of the matrix.
func (g *Grid) reproduce(t *report.Table) {
	for _, c := range g.configurations() {
		for _, start := range c.starts.order {
			t.Add(report.Text("engine of "+joined(c.source, g.label(c.column, "", nil))), report.Text(start))
		}
	}
	for _, source := range g.sources() {
		var plans, runs set[string]
		for i := range g.Cells {
			if c := &g.Cells[i]; c.Source == source {
				plans.add(c.Plan)
				runs.add(c.RunID)
			}
		}
		addSome(t, "plan of "+source, "", plans)
		addSome(t, "exchanges and command of "+source, "benchproxy store show ", runs)
	}
}

// addSome adds a row for each of the first values that are not empty.
func addSome(t *report.Table, what, before string, values set[string]) {
	all := slices.DeleteFunc(slices.Clone(values.order), func(v string) bool { return v == "" })
	for _, v := range all[:min(len(all), mostExcerpts)] {
		t.Add(report.Text(what), report.Text(before+v))
	}
	t.Omitted += max(0, len(all)-mostExcerpts)
}
