package build

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/report"
)

// modelSection is everything about one model at one request at a time: decode, prefill and TTFT in every configuration,
// and the ratios.
func (g *Grid) modelSection(model string) report.Section {
	s := report.Section{ID: "model-" + slug(model), Title: model}
	for _, f := range figures {
		s.Parts = append(s.Parts, g.figureSection(f, model))
	}
	if c, ok := g.prefillChart(model); ok {
		s.Parts[1].Charts = append(s.Parts[1].Charts, c)
	}
	if ratios := g.ratiosOf(model); len(ratios.Parts) > 0 {
		s.Parts = append(s.Parts, ratios)
	}
	return s
}

// figureFormulas say what result files hold under each name.
var figureFormulas = map[string]string{
	fieldDecode:  "(completion tokens - 1) / (last token - first token), or the engine's own rate where the cell says so",
	fieldPrefill: "prompt tokens / TTFT",
	fieldTTFT:    "first content of any kind - send",
}

func (g *Grid) figureSection(f figure, model string) report.Section {
	title := strings.ToUpper(f.name[:1]) + f.name[1:]
	s := report.Section{ID: f.name + "-" + slug(model), Title: title + " (" + f.unit + ")"}
	s.Table = report.Table{Formula: figureFormulas[f.field], Source: "result files; baseline cells: one request at a time, no drafts, nothing offloaded",
		Sample: "n and spread stand in the title of each number where the file has them", Columns: []report.Column{{Name: "Scenario", Key: true}}}
	m := &marks{}
	better := report.Higher
	if f.lower {
		better = report.Lower
	}
	columns := g.columns(model)
	for _, col := range columns {
		s.Table.Columns = append(s.Table.Columns, report.Column{Name: g.label(col, model, m), Number: true, Digits: 1, Better: better})
	}
	bars := chart.BarPlot{Title: title + " of " + model, Axis: chart.Axis{Label: f.name, Unit: f.unit}}
	for _, scenario := range g.scenarios(model) {
		row := []report.Cell{report.Text(scenario)}
		group := chart.BarGroup{Label: scenario}
		for _, col := range columns {
			c := g.cell(col, model, scenario, (*Cell).baseline)
			value := 0.0
			if c != nil {
				value = f.of(c)
			}
			cell := shown(c, value, f.field)
			row = append(row, cell)
			if c != nil && !c.unasked() {
				group.Bars = append(group.Bars, barOf(cell, g.label(col, "", nil), slices.Index(g.engines(), col.engine)))
			}
		}
		s.Table.Add(row...)
		if len(group.Bars) > 0 {
			bars.Groups = append(bars.Groups, group)
		}
	}
	s.Notes = m.lines()
	if f.field != fieldPrefill && len(columns) > 1 {
		drawBars(&s, report.Chart{ID: "chart-" + s.ID, Title: title + " of each configuration by scenario; whiskers are the spread where the files have one"}, bars)
	}
	return s
}

// barOf is a number of a table as a bar.
func barOf(c report.Cell, label string, series int) chart.Bar {
	b := chart.Bar{Label: label, Series: series, Value: math.NaN(), Why: c.Show(report.Column{})}
	if v, ok := c.Value(); ok {
		b.Value = v
		if s, ok := c.Spreads(); ok {
			b.Lo, b.Hi = s.Lo, s.Hi
		}
	}
	return b
}

// prefillChart is the prefill rate against the length of the prompt, for scenarios of known lengths.
func (g *Grid) prefillChart(model string) (report.Chart, bool) {
	p := chart.Plot{Title: "Prefill against prompt length, " + model, X: chart.Axis{Label: "prompt", Unit: "tokens", Log: true}, Y: chart.Axis{Label: "prefill", Unit: "tok/s"}}
	for _, col := range g.columns(model) {
		s := chart.Series{Name: g.label(col, "", nil)}
		for _, scenario := range g.scenarios(model) {
			c := g.cell(col, model, scenario, (*Cell).baseline)
			if _, known := promptLength(scenario); known && c.ok() && c.PrefillTPS > 0 && c.PromptTokens > 0 {
				point := chart.Point{X: float64(c.PromptTokens), Y: c.PrefillTPS}
				if sp, ok := c.Spreads[fieldPrefill]; ok {
					point.Lo, point.Hi = sp.Lo, sp.Hi
				}
				s.Points = append(s.Points, point)
			}
		}
		if len(s.Points) > 1 {
			sortPoints(s.Points)
			p.Series = append(p.Series, s)
		}
	}
	if len(p.Series) == 0 {
		return report.Chart{}, false
	}
	return report.Chart{ID: "chart-prefill-" + slug(model), Title: "Prefill rate against the length of the prompt as each engine counts it", SVG: chart.Lines(p)}, true
}

// promptLength is the number of tokens in the name of a scenario such as prefill_8k.
func promptLength(scenario string) (tokens int, ok bool) {
	name, found := strings.CutPrefix(scenario, "prefill_")
	if !found {
		return 0, false
	}
	scale := 1
	if n, k := strings.CutSuffix(name, "k"); k {
		name, scale = n, 1024
	}
	n, err := strconv.Atoi(name)
	return n * scale, err == nil && n > 0
}

// ratiosOf are the ratio tables of a model, one for each figure, with a column for each comparison that has a ratio.
func (g *Grid) ratiosOf(model string) report.Section {
	s := report.Section{ID: ratioSection(model), Title: "Ratios"}
	pairs := g.comparisons(model)
	if len(pairs) == 0 {
		return s
	}
	for _, f := range figures {
		part := report.Section{ID: "ratio-" + f.name + "-" + slug(model), Title: "Ratio of " + f.name}
		part.Table = report.Table{Formula: ratioFormula, Source: ratioSource, Sample: ratioSample, Spread: ratioSpread,
			Columns: []report.Column{{Name: "Scenario", Key: true}}}
		m := &marks{}
		for _, a := range pairs {
			part.Table.Columns = append(part.Table.Columns, ratioColumns(g.markedPair(a, model, f, m))...)
		}
		for _, scenario := range g.scenarios(model) {
			row := []report.Cell{report.Text(scenario)}
			for _, a := range pairs {
				row = append(row, g.proofs.cells(g.quotient(a, f, model, scenario))...)
			}
			part.Table.Add(row...)
		}
		part.Notes = m.lines()
		s.Parts = append(s.Parts, part)
	}
	return s
}

// sourcesSection sets cells of one name from other sources beside those of the first: what another machine or an older
// release made of the same. These ratios are in no headline.
func (g *Grid) sourcesSection() (report.Section, bool) {
	s := report.Section{ID: "sources", Title: "Other sources beside the first",
		Lead: []string{"The same cells from other places. Machine, build and time are not the same, so the ratios are told and stand in no headline."}}
	s.Table = report.Table{Formula: "first source / other source", Source: "result files of each source", Sample: "one cell each",
		Columns: []report.Column{{Name: "Source", Key: true}, {Name: "Model", Key: true}, {Name: "Configuration", Key: true}, {Name: "Scenario", Key: true}}}
	for _, f := range figures {
		s.Table.Columns = append(s.Table.Columns, report.Column{Name: f.name, Number: true, Digits: 2, Suffix: "×"})
	}
	sources, m := g.sources(), &marks{}
	for i := range g.Cells {
		c := &g.Cells[i]
		if c.Source == sources[0] || !c.baseline() {
			continue
		}
		col := c.column()
		col.source = sources[0]
		first := g.cell(col, c.Model, c.Scenario, (*Cell).baseline)
		if first == nil {
			continue
		}
		row := []report.Cell{report.Text(c.Source), report.Text(c.Model), report.Text(g.label(col, c.Model, m)), report.Text(c.Scenario)}
		for _, f := range figures {
			f.lower = false
			q := f.divide(first, c)
			if q.why != "" {
				row = append(row, report.Absent(q.why))
			} else {
				row = append(row, report.Number(q.value).Of(slices.Concat(half(first), half(c))...))
			}
		}
		s.Table.Add(row...)
	}
	s.Notes = m.lines()
	return s, len(s.Table.Rows) > 0
}

// skippedSection are the cells that have no numbers, and why.
func (g *Grid) skippedSection() (report.Section, bool) {
	s := report.Section{ID: "skipped", Title: "What was skipped or failed, and why"}
	s.Table.Columns = []report.Column{{Name: "Model", Key: true}, {Name: "Configuration", Key: true}, {Name: "Scenario", Key: true}, {Name: "Point", Key: true}, {Name: "Status"}, {Name: "Why"}}
	m := &marks{}
	for i := range g.Cells {
		c := &g.Cells[i]
		if c.Status == StatusOK && !c.partial() {
			continue
		}
		status := report.Text(c.Status)
		switch {
		case c.partial():
			status = report.Text(fmt.Sprintf("partial %d/%d", c.Turns, c.TurnsExpected)).Toned(report.Marked)
		case c.Status == StatusFail:
			status = status.Toned(report.Bad)
		}
		s.Table.Add(report.Text(c.Model), report.Text(g.label(c.column(), c.Model, m)), report.Text(c.Scenario), report.Text(c.point()), status, report.Text(c.Detail))
	}
	s.Notes = m.lines()
	return s, len(s.Table.Rows) > 0
}

// point is where a cell stands on the axes that are not the configuration: what result files have in their suffix.
func (c *Cell) point() string {
	var words []string
	if c.MTP {
		words = append(words, "mtp")
	}
	if c.Method != "" {
		words = append(words, c.Method)
	}
	if c.CPUMoELayers != 0 {
		words = append(words, offloadName(c.CPUMoELayers, c.CPUMoEThreads))
	}
	if c.Concurrency > 1 {
		words = append(words, fmt.Sprintf("c%d", c.Concurrency))
	}
	if len(words) == 0 {
		return "baseline"
	}
	return strings.Join(words, " ")
}

func offloadName(layers, threads int) string {
	name := "ncmoe" + strconv.Itoa(layers)
	if layers < 0 {
		name = "ncmoe all"
	}
	if threads > 0 {
		name += fmt.Sprintf(" t%d", threads)
	}
	return name
}
