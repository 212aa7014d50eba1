package build

import (
	"maps"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// ownSet is the name of our definitions beside those of other tools.
const ownSet = "benchproxy"

// definitionsSection is the same timelines by the definitions of several tools: one table, a row for each figure and tool, and
// a footnote for each difference.
func (e *Evidence) definitionsSection() (report.Section, bool) {
	s := report.Section{ID: "definitions", Title: "The same timelines by the definitions of other tools",
		Lead: []string{"No request was sent again: these are other formulas over the same bytes and stamps. A tool's own program may differ where it loses events; what it would fail on is no sample."}}
	s.Table = report.Table{Formula: "in each row", Source: "what each tool takes for a success: most take a stream that ends early for one, so their n may be larger than ours", Sample: "n is the number of answers behind each median", Spread: "least and largest sample, in the title",
		Columns: []report.Column{{Name: "Figure", Key: true}, {Name: "Tool", Key: true}, {Name: "Formula"}, {Name: "Unit"}}}
	for _, r := range e.Runs {
		s.Table.Columns = append(s.Table.Columns, report.Column{Name: r.Label, Number: true, Digits: 1}, report.Column{Name: "n, " + r.Label, Number: true})
	}
	if len(e.Runs) == 0 || len(e.Runs[0].sets) == 0 {
		return s, false
	}
	m := &marks{}
	for _, figure := range e.definedFigures() {
		e.figureRows(&s.Table, figure, m)
	}
	e.throughputRows(&s.Table, m)
	s.Notes = m.lines()
	return s, true
}

// definedFigures are ours first, then those that only other tools have.
func (e *Evidence) definedFigures() []string {
	var out []string
	for _, r := range measure.OwnRules() {
		out = append(out, r.Figure)
	}
	for _, s := range e.Runs[0].sets {
		for _, rule := range s.set.Rules {
			if !slices.Contains(out, rule.Figure) {
				out = append(out, rule.Figure)
			}
		}
	}
	return out
}

// noteSample is why a number of the same formula can be another one.
const noteSample = "its n is another than ours: it takes other answers for a success, or leaves out others"

func (e *Evidence) figureRows(t *report.Table, figure string, m *marks) {
	own := slices.IndexFunc(measure.OwnRules(), func(r measure.SetRule) bool { return r.Figure == figure })
	var ours []int // samples of each run
	if own >= 0 {
		row := []report.Cell{report.Text(figure), report.Text(ownSet), report.Text(measure.OwnRules()[own].Formula), report.Text(unitOf(figure))}
		for _, r := range e.Runs {
			c, n := r.own(figure)
			row, ours = append(row, c, report.Count(n)), append(ours, n)
		}
		t.Add(row...)
	}
	for i, s := range e.Runs[0].sets {
		at := slices.IndexFunc(s.set.Rules, func(r measure.SetRule) bool { return r.Figure == figure })
		if at < 0 {
			continue
		}
		rule := s.set.Rules[at]
		tool := s.set.Name
		if rule.Differs != "" {
			tool += " " + m.sign(rule.Differs)
		}
		var cells []report.Cell
		other := false
		for k, r := range e.Runs {
			c, n := r.sets[i].figures[figure].cell(r)
			cells = append(cells, c, report.Count(n))
			other = other || own >= 0 && ours[k] != n
		}
		if other {
			tool += " " + m.sign(noteSample)
		}
		t.Add(append([]report.Cell{report.Text(figure), report.Text(tool), report.Text(rule.Formula), report.Text(unitOf(figure))}, cells...)...)
	}
}

// unitOf is the unit of a figure, also of one that only other tools have.
func unitOf(figure string) string {
	for _, d := range measure.Metrics() {
		if d.Name == figure {
			return d.Unit
		}
	}
	return map[string]string{measure.SetITLMS: "ms", measure.SetNTPOTMS: "ms", measure.SetEffectiveTPS: "tok/s", measure.SetDecodeStream: "tok/s"}[figure]
}

// own is the median of a figure by our definition, and its samples.
func (r *Run) own(figure string) (c report.Cell, n int) {
	m := r.all.sum().Metric(figure)
	if m.Summary.N == 0 && figure == measure.CompletionTokens {
		m.Summary = stat.Summarize(r.all.completion)
	}
	if m.Summary.Median == nil {
		return report.Absent(mostFrequent(m.Excluded)), 0
	}
	return report.Number(*m.Summary.Median).Based(m.Basis).Spread(rangeOf(m.Summary)).In(evidenceID(r)).Of(r.all.ids...), m.Summary.N
}

func rangeOf(s stat.Summary) report.Spread {
	return report.Spread{Lo: *s.Min, Hi: *s.Max, N: s.N, Kind: report.SpreadRange}
}

// cell is the median of the samples, and how many they are; s is nil in a run without exchanges.
func (s *samples) cell(r *Run) (c report.Cell, n int) {
	if s == nil {
		return report.Absent(stat.ReasonNoSamples), 0
	}
	sum := stat.Summarize(s.values)
	if sum.Median == nil {
		return report.Absent(mostFrequent(s.missing)), 0
	}
	c = report.Number(*sum.Median).Spread(rangeOf(sum)).In(evidenceID(r)).Of(s.ids...)
	if s.estimated {
		c = c.Based(exchange.BasisEstimated)
	}
	return c, sum.N
}

func mostFrequent(n map[exchange.Reason]int) exchange.Reason {
	best := stat.ReasonNoSamples
	for _, why := range slices.Sorted(maps.Keys(n)) {
		if n[why] > n[best] {
			best = why
		}
	}
	return best
}

// throughputRows are rates of whole runs, which tools take over other windows.
func (e *Evidence) throughputRows(t *report.Table, m *marks) {
	for _, w := range []struct {
		tool, formula, differs string
		of                     func(*Run) *float64
	}{
		{"vllm, aiperf, sglang", "tokens of complete answers / (last end - first send)", "ramp and drain of the load are in it", func(r *Run) *float64 { return r.load.Load().WholeTPS }},
		{"aiperf (effective), " + ownSet, "tokens in the longest window with at least 90 % of the peak in flight / its length", "", func(r *Run) *float64 { return r.load.Load().SteadyTPS }},
	} {
		tool := w.tool
		if w.differs != "" {
			tool += " " + m.sign(w.differs)
		}
		row := []report.Cell{report.Text("throughput"), report.Text(tool), report.Text(w.formula), report.Text("tok/s")}
		for _, r := range e.Runs {
			n := r.load.Load().Complete
			row = append(row, report.Optional(w.of(r), "no_token_count").In(evidenceID(r)), report.Count(n))
		}
		t.Add(row...)
	}
}
