package build

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// evidenceID is the section with the exchanges of a run.
func evidenceID(r *Run) string { return "exchanges-" + slug(r.Label) }

// shownMetrics are the metrics of runs that have a part of their own, in order.
var shownMetrics = [...]struct {
	metric, title string
	better        string
	drawn         bool
}{
	{measure.TTFTMS, "Time to first token", report.Lower, true},
	{measure.AnswerTTFTMS, "Time to the first of the answer, behind the thinking", report.Lower, false},
	{measure.PrefillTPS, "Prefill", report.Higher, false},
	{measure.PrefillUncachedTPS, "Prefill of what came from no cache", report.Higher, false},
	{measure.DecodeTPS, "Decode", report.Higher, true},
	{measure.TPOTMS, "Time per output token", report.Lower, false},
	{measure.WallTPS, "Tokens over the whole request", report.Higher, false},
	{measure.TotalWallMS, "Whole request", report.Lower, false},
}

// runsSection is the figures of every run.
func (e *Evidence) runsSection() report.Section {
	s := report.Section{ID: "figures", Title: "Figures of each run", Parts: []report.Section{e.outcomesPart()}}
	for _, m := range shownMetrics {
		if p, ok := e.metricPart(m.metric, m.title, m.better, m.drawn); ok && !e.repeats(m.metric) {
			s.Parts = append(s.Parts, p)
		}
	}
	if c, ok := e.prefillChart(); ok {
		i := slices.IndexFunc(s.Parts, func(p report.Section) bool { return p.ID == measure.PrefillTPS })
		s.Parts[i].Charts = append(s.Parts[i].Charts, c) // a chart has rates, so the part is there
	}
	return s
}

// twins are metrics that say the same where nothing was thought about first, and nothing came from a cache.
var twins = map[string]string{measure.AnswerTTFTMS: measure.TTFTMS, measure.PrefillUncachedTPS: measure.PrefillTPS}

// repeats reports whether a metric only says what its twin says, in every run.
func (e *Evidence) repeats(metric string) bool {
	twin := twins[metric]
	return twin != "" && !slices.ContainsFunc(e.Runs, func(r *Run) bool {
		run := r.all.sum()
		a, b := run.Metric(metric).Summary, run.Metric(twin).Summary
		return a.N != b.N || a.N > 0 && (*a.Mean != *b.Mean || *a.Median != *b.Median)
	})
}

// outcomesPart is how many exchanges each run has, how they ended and how busy it kept its engine.
func (e *Evidence) outcomesPart() report.Section {
	p := report.Section{ID: "outcomes", Title: "What was sent and how it ended"}
	p.Table = report.Table{Formula: "in flight: median over the requests of how many ran when each was sent; tokens a second: of complete answers, over the whole run and over its steady window (at least 90 % of the peak in flight)",
		Source: "exchanges of the store; warm-ups are in no figure", Sample: "all requests of the run", Columns: []report.Column{{Name: "Run", Key: true}, {Name: "State"}, {Name: "Exchanges", Number: true}, {Name: "complete", Number: true},
			{Name: "failed", Number: true, Better: report.Lower}, {Name: "warm-ups", Number: true}, {Name: "in flight", Number: true}, {Name: "peak", Number: true}, {Name: "seconds", Number: true, Digits: 1},
			rateColumn("whole run"), rateColumn("steady")}}
	for _, r := range e.Runs {
		run, load := r.all.sum(), r.load.Load()
		complete := run.Outcomes[exchange.OutcomeComplete]
		state := report.Text(string(r.Run.State))
		if r.Run.State != exchange.RunComplete {
			state = state.Toned(report.Marked)
		}
		failed := report.Count(run.Exchanges - complete)
		if run.Exchanges > complete {
			failed = failed.Toned(report.Bad).In("failures").Titled(outcomesText(run.Outcomes))
		}
		p.Table.Add(report.Text(r.Label).In(evidenceID(r)), state, report.Count(run.Exchanges).In(evidenceID(r)), report.Count(complete), failed, report.Count(run.Warmups),
			report.Count(load.InFlight), report.Count(load.Peak), report.Number(load.WholeS), report.Optional(load.WholeTPS, "no_token_count"), report.Optional(load.SteadyTPS, "no_token_count"))
	}
	return p
}

func outcomesText(outcomes map[exchange.Outcome]int) string {
	var words []string
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		words = append(words, fmt.Sprintf("%s %d", o, outcomes[o]))
	}
	return strings.Join(words, ", ")
}

// summaryColumns are those of a table of samples.
func summaryColumns(unit, better string) []report.Column {
	number := func(name string) report.Column {
		return report.Column{Name: name, Unit: unit, Number: true, Digits: 1}
	}
	median := number("median")
	median.Better = better
	return []report.Column{{Name: "Run", Key: true}, {Name: "Model", Key: true}, {Name: "Scenario", Key: true}, {Name: "n", Number: true}, median, {Name: "95 % interval"},
		number("min"), number("max"), number("p90"), number("p99"), {Name: "no samples"}}
}

// metricPart is one metric over all runs, models and scenarios; ok is false when nobody has it.
func (e *Evidence) metricPart(metric, title, better string, drawn bool) (report.Section, bool) {
	p := report.Section{ID: metric, Title: title}
	any := false
	bars := chart.BarPlot{Title: title}
	for _, r := range e.Runs {
		for _, g := range r.groups {
			m := g.sum().Metric(metric)
			if len(p.Table.Columns) == 0 {
				p.Table.Columns = summaryColumns(m.Unit, better)
				bars.Axis = chart.Axis{Label: metric, Unit: m.Unit}
			}
			any = any || m.Summary.N > 0
			p.Table.Add(summaryRow(r, g, m)...)
			if m.Summary.N > 0 {
				addBar(&bars, r, g, m)
			}
		}
	}
	p.Table.Formula, p.Table.Source = definitionOf(metric), "every complete exchange that has it is one sample"
	p.Table.Sample, p.Table.Spread = "n of each row; what gave no sample stands in the last column", "95 % interval of the median, least and largest sample"
	if drawn && any && len(p.Table.Rows) > 1 {
		drawBars(&p, report.Chart{ID: "chart-" + metric, Title: title + ": medians, with their 95 % interval or, of few samples, their range"}, bars)
	}
	return p, any
}

func definitionOf(metric string) string {
	for _, d := range measure.Metrics() {
		if d.Name == metric {
			return d.Text
		}
	}
	return ""
}

func summaryRow(r *Run, g *group, m measure.RunMetric) []report.Cell {
	s := m.Summary
	ids := func(c report.Cell) report.Cell { return c.In(evidenceID(r)).Of(g.ids...) }
	median := report.Optional(s.Median, "no_samples")
	if s.Median != nil {
		median = ids(median.Based(m.Basis).Spread(spreadOf(s)))
	}
	interval := report.Absent(stat.ReasonNoInterval)
	if s.Interval != nil {
		interval = report.Text(fmt.Sprintf("%.1f to %.1f", s.Interval.Lo, s.Interval.Hi))
	}
	least := func(v *float64, why exchange.Reason) report.Cell { return ids(report.Optional(v, why).Based(m.Basis)) }
	return []report.Cell{report.Text(r.Label), textOr(g.model, "not_named"), textOr(g.scenario, "no_suite"), report.Count(s.N), median, interval,
		least(s.Min, "no_samples"), least(s.Max, "no_samples"), least(s.P90, stat.ReasonSampleFloor), least(s.P99, stat.ReasonSampleFloor), excludedCell(m.Excluded)}
}

func spreadOf(s stat.Summary) report.Spread {
	if s.Interval != nil {
		return report.Spread{Lo: s.Interval.Lo, Hi: s.Interval.Hi, N: s.N, Kind: report.SpreadInterval}
	}
	return report.Spread{Lo: *s.Min, Hi: *s.Max, N: s.N, Kind: report.SpreadRange}
}

// excludedCell says what gave no sample and why, the most frequent first.
func excludedCell(excluded map[exchange.Reason]int) report.Cell {
	reasons := slices.SortedFunc(maps.Keys(excluded), func(a, b exchange.Reason) int { return cmp.Or(excluded[b]-excluded[a], cmp.Compare(a, b)) })
	var words []string
	for _, why := range reasons {
		words = append(words, fmt.Sprintf("%d %s", excluded[why], strings.ReplaceAll(string(why), "_", " ")))
	}
	return report.Text(strings.Join(words, ", "))
}

// mostBars bounds the rows of a chart.
const mostBars = 40

func addBar(p *chart.BarPlot, r *Run, g *group, m measure.RunMetric) {
	n := 0
	for _, have := range p.Groups {
		n += len(have.Bars)
	}
	if n >= mostBars {
		return
	}
	heading := strings.TrimPrefix(g.scenario+", "+g.model, ", ")
	i := slices.IndexFunc(p.Groups, func(b chart.BarGroup) bool { return b.Label == heading })
	if i < 0 {
		i = len(p.Groups)
		p.Groups = append(p.Groups, chart.BarGroup{Label: heading})
	}
	s := spreadOf(m.Summary)
	p.Groups[i].Bars = append(p.Groups[i].Bars, chart.Bar{Label: r.Label, Series: len(p.Groups[i].Bars), Value: *m.Summary.Median, Lo: s.Lo, Hi: s.Hi})
}

// prefillChart is the prefill rate against the length of the prompt, where a run has prompts of lengths that differ.
func (e *Evidence) prefillChart() (report.Chart, bool) {
	p := chart.Plot{Title: "Prefill against prompt length", X: chart.Axis{Label: "prompt", Unit: "tokens", Log: true}, Y: chart.Axis{Label: "prefill", Unit: "tok/s"}}
	for _, r := range e.Runs {
		if points := byLength(r.all.points); len(points) > 1 {
			p.Series = append(p.Series, chart.Series{Name: r.Label, Points: points})
		}
	}
	return report.Chart{ID: "chart-prefill", Title: "Prefill rate against the length of the prompt: medians of prompts of about one length, with the least and the largest", SVG: chart.Lines(p)}, len(p.Series) > 0
}

// byLength are the medians of the prefill rate over prompts of about one length: four classes to each doubling. Points are
// few and far apart, so that one class is one length of a workload.
func byLength(points []point) []chart.Point {
	classes := map[int][]point{}
	for _, p := range points {
		if p.prefill > 0 {
			class := int(math.Round(4 * math.Log2(p.prompt)))
			classes[class] = append(classes[class], p)
		}
	}
	var out []chart.Point
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		var lengths, rates []float64
		for _, p := range classes[class] {
			lengths, rates = append(lengths, p.prompt), append(rates, p.prefill)
		}
		l, r := stat.Summarize(lengths), stat.Summarize(rates)
		out = append(out, chart.Point{X: *l.Median, Y: *r.Median, Lo: *r.Min, Hi: *r.Max})
	}
	return out
}

// failuresSection is every exchange that did not end complete, in every run.
func (e *Evidence) failuresSection() (report.Section, bool) {
	s := report.Section{ID: "failures", Title: "What failed"}
	s.Table.Source = "exchanges of the store that did not end complete"
	s.Table.Columns = []report.Column{{Name: "Run"}, {Name: "#", Number: true}, {Name: "Exchange"}, {Name: "Outcome"}, {Name: "Status", Number: true}, {Name: "Whose"}, {Name: "Why"}}
	for _, r := range e.Runs {
		run := r.all.sum()
		failed := run.Exchanges - run.Outcomes[exchange.OutcomeComplete]
		s.Table.Omitted += max(0, failed-len(r.failures))
		for i := range r.failures {
			row := &r.failures[i]
			side, why := report.Absent("not_known"), report.Absent("not_known")
			if row.Cause != nil {
				side, why = report.Text(string(row.Cause.Side)), report.Text(strings.TrimSuffix(row.Cause.Code+": "+row.Cause.Text, ": "))
			}
			status := report.Absent("no_response")
			if row.Status != 0 {
				status = report.Count(row.Status)
			}
			s.Table.Add(report.Text(r.Label), report.Count(row.Seq), report.Text(string(row.ID)).Of(row.ID), report.Text(string(row.Outcome)).Toned(report.Bad), status, side, why)
		}
	}
	return s, len(s.Table.Rows) > 0
}

// timelinesSection draws exchanges one by one.
func (e *Evidence) timelinesSection() (report.Section, bool) {
	s := report.Section{ID: "timelines", Title: "Exchanges, event by event",
		Lead: []string{"Where the time of single exchanges went, by our clock: waiting, thinking and answering, a stroke for each event with generated content. What engines say of queue and load is theirs."}}
	for _, r := range e.Runs {
		p := report.Section{ID: "timelines-" + slug(r.Label), Title: r.Label}
		p.Table.Source, p.Table.Formula, p.Table.Sample = "stamps of each exchange", "as in the table of methods", "one exchange a row"
		p.Table.Columns = []report.Column{{Name: "Exchange"}, {Name: "which"}, {Name: "prompt", Unit: "tokens", Number: true}, {Name: "answer", Unit: "tokens", Number: true}, {Name: "TTFT", Unit: "ms", Number: true, Digits: 1}, {Name: "whole", Unit: "ms", Number: true, Digits: 1}}
		falls := slices.Clone(r.falls)
		slices.SortStableFunc(falls, func(a, b fall) int { return cmp.Compare(a.row.Seq, b.row.Seq) })
		for i := range falls {
			f := &falls[i]
			fs := f.row.Metrics
			p.Charts = append(p.Charts, report.Chart{ID: fmt.Sprintf("timeline-%s-%d", slug(r.Label), i), Title: f.words(), SVG: f.chart.SVG()})
			p.Table.Add(report.Text(string(f.row.ID)).Of(f.row.ID), report.Text(f.why), report.Figure(fs[measure.PromptTokens]), report.Figure(fs[measure.CompletionTokens]), report.Figure(fs[measure.TTFTMS]), report.Figure(fs[measure.TotalWallMS]))
		}
		if len(falls) > 0 {
			s.Parts = append(s.Parts, p)
		}
	}
	return s, len(s.Parts) > 0
}

// evidenceSection lists the exchanges of each run, which the numbers lead to.
func (e *Evidence) evidenceSection() (report.Section, bool) {
	s := report.Section{ID: "evidence", Title: "Exchanges behind the numbers", Lead: []string{"`benchproxy store show ID` prints one of them whole, `--raw request` and `--raw response` its bytes."}}
	for _, r := range e.Runs {
		p := report.Section{ID: evidenceID(r), Title: r.Label, Folded: true}
		p.Table.Omitted = r.unlisted
		p.Table.Source, p.Table.Formula, p.Table.Sample = "the store", "as in the table of methods", "one exchange a row"
		p.Table.Columns = []report.Column{{Name: "#", Number: true}, {Name: "Exchange"}, {Name: "Model"}, {Name: "prompt", Number: true}, {Name: "cached", Number: true}, {Name: "answer", Number: true}, {Name: "TTFT", Unit: "ms", Number: true, Digits: 1},
			{Name: "prefill", Unit: "tok/s", Number: true, Digits: 1}, {Name: "decode", Unit: "tok/s", Number: true, Digits: 1}, {Name: "whole", Unit: "ms", Number: true, Digits: 1}, {Name: "Outcome"}, {Name: "Flags"}}
		for i := range r.listed {
			p.Table.Add(listedRow(&r.listed[i])...)
		}
		s.Parts = append(s.Parts, p)
	}
	return s, len(s.Parts) > 0
}

func listedRow(row *exchange.Summary) []report.Cell {
	fs := row.Metrics
	outcome := report.Text(string(row.Outcome))
	if row.Outcome != exchange.OutcomeComplete {
		outcome = outcome.Toned(report.Bad)
	}
	flags := slices.Clone(row.Flags)
	if row.Item != nil && row.Item.Warmup {
		flags = append(flags, "warm-up")
	}
	return []report.Cell{report.Count(row.Seq), report.Text(string(row.ID)).Anchored(string(row.ID)).Titled(row.Key), textOr(row.Model, "not_named"), report.Figure(fs[measure.PromptTokens]), report.Figure(fs[measure.CachedTokens]),
		report.Figure(fs[measure.CompletionTokens]), report.Figure(fs[measure.TTFTMS]), report.Figure(fs[measure.PrefillTPS]), report.Figure(fs[measure.DecodeTPS]), report.Figure(fs[measure.TotalWallMS]),
		outcome, report.Text(strings.Join(flags, ", "))}
}
