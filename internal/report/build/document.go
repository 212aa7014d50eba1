package build

import (
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
)

// Document is the report of the evidence: the bottom line, the ratios, where the subject is faster and slower, the figures,
// the checks, and the exchanges that all of it rests on.
func Document(e *Evidence) *report.Document {
	if e.Engine == nil {
		e.Engine = func(id string) string { return id }
	}
	d := &report.Document{Title: e.Title, Facts: e.facts()}
	add := func(s report.Section, there bool) {
		if there {
			d.Sections = append(d.Sections, s)
		}
	}
	if e.Grid != nil {
		head := e.Grid.headline()
		add(head, len(head.Table.Rows) > 0)
	}
	add(e.standingsSection())
	add(e.ratiosSection())
	add(e.targetsSection())
	if len(e.Runs) > 0 {
		add(e.runsSection(), true)
	}
	e.gridSections(add)
	add(e.draftsSection())
	add(e.wavesSection())
	add(e.scheduleSection())
	add(e.gapsSection())
	add(e.gatesSection())
	add(e.failuresSection())
	add(e.clockSection())
	add(e.instrumentSection())
	add(e.definitionsSection())
	add(e.limitsSection(), true)
	add(e.notesSection())
	add(e.setupSection(), true)
	add(e.methodSection(), true)
	add(e.timelineSection())
	add(e.reproduceSection(), true)
	add(e.timelinesSection())
	add(e.evidenceSection())
	if e.Against != nil {
		add(changes(d, e.Against, e.AgainstName), true)
	}
	e.markDevices(d.Sections)
	d.Summary = e.bottomLine()
	return d
}

func (e *Evidence) gridSections(add func(report.Section, bool)) {
	g := e.Grid
	if g == nil {
		return
	}
	for _, model := range g.models() {
		add(g.modelSection(model), true)
	}
	add(g.qualitySection())
	add(g.draftSection())
	add(g.parallelSection())
	add(g.offloadSection())
	add(g.scalingSection())
	add(g.workflowSection())
	add(g.clockSection())
	add(g.sourcesSection())
	add(g.skippedSection())
}

func (e *Evidence) facts() []report.Fact {
	var out []report.Fact
	fact := func(name, value string) {
		if value != "" {
			out = append(out, report.Fact{Name: name, Value: value})
		}
	}
	for _, r := range e.Runs {
		words := []string{fmt.Sprintf("%d exchanges", r.all.sum().Exchanges)}
		if d := r.deployments(); len(d) > 0 && d[0].Engine != "" {
			words = append(words, strings.TrimSpace(e.Engine(d[0].Engine)+" "+d[0].Version))
		} else if r.Run.Identity.Engine != "" {
			words = append(words, strings.TrimSpace(e.Engine(r.Run.Identity.Engine)+" "+r.Run.Identity.Version))
		}
		fact(r.Label, strings.Join(append(words, r.Run.Started.UTC().Format("2006-01-02 15:04 UTC")), ", "))
	}
	for i := range e.Comparisons {
		if c := &e.Comparisons[i]; c.File != "" {
			fact("comparison", c.name())
		}
	}
	if g := e.Grid; g != nil {
		fact("cells", fmt.Sprintf("%d of %s", len(g.Cells), strings.Join(g.sources(), ", ")))
	}
	fact("made", strings.TrimSpace(e.Made.UTC().Format("2006-01-02 15:04 UTC")+" by benchproxy "+e.Harness))
	fact("rules", fmt.Sprintf("wire %d, measure %d", measure.Rules().Wire, measure.Rules().Measure))
	return out
}

// headMetrics are those that the bottom line tells of a comparison.
var headMetrics = [...]string{measure.DecodeTPS, measure.PrefillTPS, measure.TTFTMS}

// bottomLine is the report in a few sentences, losses in the same words as wins.
func (e *Evidence) bottomLine() []string {
	var out []string
	for i := range e.Comparisons {
		out = append(out, e.Comparisons[i].sentence())
	}
	if e.Grid != nil {
		out = append(out, e.Grid.sentences()...)
	}
	if faster, slower, open := e.standings(nil); len(e.Comparisons) > 0 || len(faster)+len(slower)+len(open) > 0 {
		told := ""
		if len(open) > 0 {
			below := 0
			for i := range open {
				if open[i].ratio < 1 {
					below++
				}
			}
			told = fmt.Sprintf(", %d below and %d above 1.00× are not told from it (one measurement, too few repeats, or noise)", below, len(open)-below)
		}
		out = append(out, fmt.Sprintf("Slower in %d and faster in %d of the compared numbers%s; listed below, the largest first.", len(slower), len(faster), told))
	}
	if len(out) == 0 {
		for _, r := range e.Runs {
			out = append(out, r.sentence())
		}
	}
	for i := range e.Gates {
		out = append(out, e.Gates[i].sentence())
	}
	if missed := e.missedTargets(); len(missed) > 0 {
		out = append(out, "Targets missed: "+strings.Join(missed, "; ")+".")
	}
	if failed := e.failedText(); failed != "" {
		out = append(out, failed)
	}
	if len(out) == 0 {
		out = []string{"There is no evidence with a number in it."}
	}
	return out
}

func (c *Compared) sentence() string {
	if c.Report == nil {
		return fmt.Sprintf("%s: no ratio, %s.", c.name(), c.Failed)
	}
	var words []string
	for _, name := range headMetrics {
		m, _ := c.Report.Metric(name)
		switch {
		case m.Ratio == nil:
			words = append(words, fmt.Sprintf("%s — (%s)", name, reasonsText(m.Reasons)))
		case m.Verdict == compare.Indistinguishable:
			words = append(words, fmt.Sprintf("%s %.2f× (not told from %s, n %d)", name, *m.Ratio, reasonsText(m.Reasons), m.N))
		default:
			words = append(words, fmt.Sprintf("%s %.2f× %s (%.2f to %.2f, n %d)", name, *m.Ratio, m.Verdict, m.Interval.Lo, m.Interval.Hi, m.N))
		}
	}
	return c.name() + ": " + strings.Join(words, ", ") + "."
}

// sentences are the headline ratios of the first source.
func (g *Grid) sentences() []string {
	var out []string
	head := g.headline().Table
	for _, row := range head.Rows[:min(len(head.Rows), mostSentences)] {
		var words []string
		for i, c := range head.Columns[2:5] {
			words = append(words, c.Name+" "+row[i+2].Show(c))
		}
		out = append(out, fmt.Sprintf("%s, %s: %s (geometric means over %s scenarios).", row[0].Show(report.Column{}), unmarked(row[1].Show(report.Column{})), strings.Join(words, ", "), row[5].Show(report.Column{})))
	}
	if more := len(head.Rows) - mostSentences; more > 0 {
		out = append(out, fmt.Sprintf("%d more comparisons stand in the table.", more))
	}
	return out
}

// mostSentences bounds the headline ratios of the bottom line.
const mostSentences = 6

func (r *Run) sentence() string {
	run := r.all.sum()
	words := []string{fmt.Sprintf("%d of %d exchanges complete", run.Outcomes[exchange.OutcomeComplete], run.Exchanges)}
	for _, m := range []struct{ metric, name, unit string }{{measure.TTFTMS, "TTFT", "ms"}, {measure.DecodeTPS, "decode", "tok/s"}} {
		s := run.Metric(m.metric).Summary
		if s.Median == nil {
			words = append(words, m.name+" —")
			continue
		}
		words = append(words, fmt.Sprintf("%s %.1f %s (median, n %d)", m.name, *s.Median, m.unit, s.N))
	}
	return r.Label + ": " + strings.Join(words, ", ") + "."
}

func (g *Gates) sentence() string {
	ok := 0
	for _, c := range g.Cases {
		if c.Status == exchange.VerdictOK {
			ok++
		}
	}
	return fmt.Sprintf("Gates of %s: %d of %d judgments passed.", strings.TrimSpace(g.Source+" "+g.Level), ok, len(g.Cases))
}

func (e *Evidence) missedTargets() (out []string) {
	for _, r := range e.Runs {
		for i := range e.Targets {
			if median, missed, known := e.Targets[i].missed(r); known && missed {
				out = append(out, fmt.Sprintf("%s of %s is %.1f", e.Targets[i].Text, r.Label, median))
			}
		}
	}
	return out
}

func (e *Evidence) failedText() string {
	var words []string
	for _, r := range e.Runs {
		run := r.all.sum()
		if n := run.Exchanges - run.Outcomes[exchange.OutcomeComplete]; n > 0 {
			words = append(words, fmt.Sprintf("%d of %d in %s", n, run.Exchanges, r.Label))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return "Exchanges that did not end complete: " + strings.Join(words, "; ") + "."
}
