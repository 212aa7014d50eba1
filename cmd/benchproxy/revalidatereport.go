package main

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/replay"
)

// listed bounds the rows of a list that people read. The JSON document has them all.
const listed = 100

// statusOrder are the words of verdicts in the order in which counts show them.
var statusOrder = []exchange.VerdictStatus{
	exchange.VerdictOK, exchange.VerdictFail, exchange.VerdictNotRun, exchange.VerdictIncomparable, exchange.VerdictUnsupported,
	exchange.VerdictPartial, exchange.VerdictSkipped,
}

// statusesText is how often each word was said, the words that were not left out.
func statusesText(n map[exchange.VerdictStatus]int) string {
	var parts []string
	for _, s := range statusOrder {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", s, n[s]))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// printDocument shows a report on a terminal.
func printDocument(w io.Writer, d *report.Document) {
	fmt.Fprintln(w, printable(d.Title))
	for _, s := range d.Summary {
		fmt.Fprintln(w, printable(s))
	}
	for _, f := range d.Facts {
		fmt.Fprintf(w, "  %-9s %s\n", f.Name, printable(f.Value))
	}
	for i := range d.Sections {
		printSection(w, &d.Sections[i], false)
	}
}

func rulesText(r exchange.Rules) string { return fmt.Sprintf("wire %d, measure %d", r.Wire, r.Measure) }

// revalidationDocument is a revalidation as people read it.
func revalidationDocument(r *replay.Revalidated) *report.Document {
	name := r.Source.Name
	if name == "" {
		name = string(r.Source.Run)
	}
	d := &report.Document{
		Title:   "Revalidation of run " + name,
		Summary: []string{fmt.Sprintf("%s of %d judged exchanges: %s.", verdictWord(r.Verdict()), r.Judged, statusesText(r.Statuses)), "No request was sent, and the recording was not changed."},
		Facts:   []report.Fact{{Name: "run", Value: string(r.Source.Run)}, {Name: "recorded", Value: fmt.Sprintf("%d exchanges by benchproxy %s", r.Recorded, r.Source.Harness)}},
	}
	fact := func(name, value string) {
		if value != "" {
			d.Facts = append(d.Facts, report.Fact{Name: name, Value: value})
		}
	}
	var then []string
	for _, rules := range r.Source.Rules {
		then = append(then, rulesText(rules))
	}
	fact("rules", strings.Join(then, "; "))
	fact("judged", "by benchproxy "+r.Harness+" under rules "+rulesText(r.Rules))
	fact("weights", strings.Join(r.Source.Weights, ", "))
	if r.Source.File != "" {
		fact("file", r.Source.File+" "+r.Source.Digest)
	}
	for _, o := range r.Outside {
		fact("external", externalText(o))
	}
	if lenient := statusesText(r.Lenient); lenient != statusesText(r.Statuses) {
		fact("lenient", lenient)
	}
	if r.Remained > 0 {
		fact("remained", fmt.Sprintf("%d failures of the past that the rules of today would let pass", r.Remained))
	}
	fact("not whole", r.Why)
	for _, s := range []*report.Section{caseSection(r), gateSection(r), failureSection(r), waveSection(r), changeSection(r), movedSection(r), metricSection(r)} {
		if len(s.Table.Rows) > 0 {
			d.Sections = append(d.Sections, *s)
		}
	}
	return d
}

func externalText(o replay.OutsideTold) string {
	var files []string
	for _, f := range o.Files {
		files = append(files, f.ID+" "+f.Digest)
	}
	text := fmt.Sprintf("%s: %d verdicts, of %s", o.Gate, o.Verdicts, strings.Join(files, ", "))
	if o.Unknown > 0 {
		text += fmt.Sprintf("; %d lines about exchanges that it was not given", o.Unknown)
	}
	if o.Why != "" {
		text += "; none counts: " + o.Why
	}
	return text
}

// verdictWord is the bottom line of a judgment.
func verdictWord(err error) string {
	if err == nil {
		return "PASS"
	}
	return "NOT PASSED"
}

func gateSection(r *replay.Revalidated) *report.Section {
	s := &report.Section{ID: "gates", Title: "Verdicts by gate"}
	s.Table.Columns = []report.Column{{Name: "gate"}, {Name: "version", Number: true}, {Name: "ok", Number: true}, {Name: "fail", Number: true},
		{Name: "skipped", Number: true}, {Name: "unjudged", Number: true}}
	for _, g := range r.Gates {
		all := 0
		for _, n := range g.Statuses {
			all += n
		}
		pass, fail, skip := g.Statuses[exchange.VerdictOK], g.Statuses[exchange.VerdictFail], g.Statuses[exchange.VerdictSkipped]
		s.Table.Add(report.Text(g.Gate), report.Count(g.Version), report.Count(pass), report.Count(fail), report.Count(skip), report.Count(all-pass-fail-skip))
	}
	return s
}

// caseSection are the cases of a suite by scenario, and those that did not pass.
func caseSection(r *replay.Revalidated) *report.Section {
	s := &report.Section{ID: "cases", Title: "Cases of the suite"}
	s.Table.Columns = []report.Column{{Name: "case"}, {Name: "policy"}, {Name: "was"}, {Name: "is"}, {Name: "why"}}
	passed := 0
	for _, c := range r.Cases {
		switch {
		case c.Status == exchange.VerdictOK:
			passed++
		case len(s.Table.Rows) == listed:
			s.Table.Omitted++
		default:
			s.Table.Add(report.Text(c.Case), report.Text(c.Policy), report.Text(string(c.Original)), report.Text(string(c.Status)), report.Text(c.Reason))
		}
	}
	if len(r.Cases) > 0 && len(s.Table.Rows) == 0 {
		s.Table.Add(report.Text("all"), report.Text(""), report.Text(""), report.Text(string(exchange.VerdictOK)), report.Text(""))
	}
	s.Notes = []string{fmt.Sprintf("%d of %d cases passed, by the checks that the run keeps.", passed, len(r.Cases))}
	return s
}

func failureSection(r *replay.Revalidated) *report.Section {
	s := &report.Section{ID: "failures", Title: "What did not pass"}
	s.Table.Columns = []report.Column{{Name: "#", Number: true}, {Name: "exchange"}, {Name: "status"}, {Name: "why"}}
	for _, l := range r.Lines {
		switch {
		case l.Status == exchange.VerdictOK || l.Status == exchange.VerdictSkipped:
		case len(s.Table.Rows) == listed:
			s.Table.Omitted++
		default:
			s.Table.Add(report.Count(l.Seq), report.Text(string(l.ID)), report.Text(string(l.Status)), report.Text(l.Reason))
		}
	}
	return s
}

func waveSection(r *replay.Revalidated) *report.Section {
	s := &report.Section{ID: "waves", Title: "Requests that ran together"}
	s.Table.Columns = []report.Column{{Name: "wave"}, {Name: "streams", Number: true}, {Name: "passed", Number: true}}
	names := []string{measure.AggregateDecodeTPS, measure.SteadyTPS, measure.BatchTPS}
	for _, n := range names {
		s.Table.Columns = append(s.Table.Columns, report.Column{Name: n, Unit: "tok/s", Number: true, Digits: 1})
	}
	s.Table.Columns = append(s.Table.Columns, report.Column{Name: "not comparable for"})
	for _, w := range r.Waves {
		if len(s.Table.Rows) == listed {
			s.Table.Omitted++
			continue
		}
		cells := []report.Cell{report.Text(w.Wave), report.Count(w.Streams), report.Count(w.Passed)}
		for _, n := range names {
			cells = append(cells, report.Figure(w.Figures[n]))
		}
		s.Table.Add(append(cells, report.Text(w.Why))...)
	}
	return s
}

func changeSection(r *replay.Revalidated) *report.Section {
	s := &report.Section{ID: "changed_verdicts", Title: "Verdicts that changed"}
	s.Table.Columns = []report.Column{{Name: "#", Number: true}, {Name: "exchange"}, {Name: "gate"}, {Name: "was"}, {Name: "is"}}
	word := func(w string, version int) report.Cell {
		return report.Text(fmt.Sprintf("%s (version %d)", w, version))
	}
	for _, ch := range r.Changes {
		if len(s.Table.Rows) == listed {
			break
		}
		s.Table.Add(report.Count(ch.Seq), report.Text(string(ch.ID)), report.Text(ch.Gate), word(ch.Was, ch.WasVersion), word(ch.Now, ch.NowVersion))
	}
	s.Table.Omitted = r.ChangesTotal - len(s.Table.Rows)
	return s
}

func movedSection(r *replay.Revalidated) *report.Section {
	s := &report.Section{ID: "changed_metrics", Title: "Metrics that the rules of today derive otherwise"}
	s.Table.Columns = []report.Column{{Name: "metric"}, {Name: "exchanges", Number: true}, {Name: "for example"}, {Name: "was", Number: true, Digits: 3}, {Name: "is", Number: true, Digits: 3}}
	for _, m := range r.Moved {
		s.Table.Add(report.Text(m.Metric), report.Count(m.Exchanges), report.Text(string(m.Example)), report.Figure(m.Was), report.Figure(m.Now))
	}
	return s
}

func metricSection(r *replay.Revalidated) *report.Section {
	s := &report.Section{ID: "metrics", Title: "Medians of the exchanges that passed"}
	s.Table.Columns = []report.Column{{Name: "metric"}, {Name: "n", Number: true}, {Name: "as stored", Number: true, Digits: 1}, {Name: "by today's rules", Number: true, Digits: 1}, {Name: "unit"}}
	for _, name := range replayMetrics {
		m := r.Now.Metric(name)
		if m.Summary.N == 0 {
			continue
		}
		was := report.Absent("not_stored")
		if r.Then != nil {
			was = medianCell(r.Then.Metric(name))
		}
		s.Table.Add(report.Text(name), report.Count(m.Summary.N), was, medianCell(m), report.Text(m.Unit))
	}
	return s
}

func medianCell(m measure.RunMetric) report.Cell {
	if m.Summary.Median == nil {
		return report.Absent("no_samples")
	}
	return report.Figure(exchange.Figure{Value: *m.Summary.Median, Basis: m.Basis})
}

// revalidationSuite is a revalidation as CI systems read it: a case of a suite, or an exchange of no case, is one of theirs.
func revalidationSuite(r *replay.Revalidated) *report.Suite {
	s := &report.Suite{
		Name: "benchproxy revalidation of run " + string(r.Source.Run),
		Properties: []report.Fact{{Name: "run", Value: r.Source.Name}, {Name: "recorded_by", Value: r.Source.Harness}, {Name: "judged_by", Value: r.Harness},
			{Name: "complete", Value: strconv.FormatBool(r.Complete)}},
		Verdict: r.Verdict(),
	}
	s.Cases = func(yield func(report.TestCase) bool) {
		for _, c := range r.Cases {
			name := strings.TrimSpace(c.Case + " " + c.Policy)
			if !yield(report.TestCase{Class: c.Scenario, Name: name, State: report.StateOf(c.Status), Status: c.Status, Message: c.Reason}) {
				return
			}
		}
		for _, l := range r.Lines {
			name := fmt.Sprintf("%d %s", l.Seq, l.ID)
			if l.Case == "" && !yield(report.TestCase{Class: "exchange", Name: name, State: report.StateOf(l.Status), Status: l.Status, Message: l.Reason}) {
				return
			}
		}
	}
	for c := range s.Cases {
		s.Counts.Add(c.State)
	}
	return s
}

// capturedDocument is the revalidation of a captured report as people read it.
func capturedDocument(r *replay.Captured) *report.Document {
	d := &report.Document{
		Title:   "Revalidation of the captured report " + r.Source,
		Summary: append([]string{fmt.Sprintf("%s of %d cases: ok %d, fail %d.", verdictWord(r.Verdict()), r.Recorded, r.Passed, r.Failed)}, r.Limits...),
		Facts:   []report.Fact{{Name: "source", Value: r.Source + " sha256:" + r.SourceSum}, {Name: "judged", Value: "by benchproxy " + r.Harness}},
	}
	for _, id := range slices.Sorted(maps.Keys(r.HarnessSum)) {
		d.Facts = append(d.Facts, report.Fact{Name: "rule", Value: id + " sha256:" + r.HarnessSum[id]})
	}
	failures := report.Section{ID: "failures", Title: "What did not pass"}
	failures.Table.Columns = []report.Column{{Name: "case"}, {Name: "was"}, {Name: "is"}, {Name: "why"}}
	for _, c := range r.Cases {
		switch {
		case c.Status == exchange.VerdictOK:
		case len(failures.Table.Rows) == listed:
			failures.Table.Omitted++
		default:
			failures.Table.Add(report.Text(c.Tag), report.Text(c.Original), report.Text(string(c.Status)), report.Text(c.Detail))
		}
	}
	if len(failures.Table.Rows) > 0 {
		d.Sections = append(d.Sections, failures)
	}
	sums := report.Section{ID: "comparable", Title: "Medians of the waves of which every case passed"}
	number := func(name, unit string) report.Column {
		return report.Column{Name: name, Unit: unit, Number: true, Digits: 1}
	}
	sums.Table.Columns = []report.Column{{Name: "scenario"}, {Name: "waves", Number: true}, number("aggregate", "tok/s"), number("decode", "tok/s"),
		number("prefill", "tok/s"), number("TTFT", "ms"), number("wall", "ms")}
	for _, name := range slices.Sorted(maps.Keys(r.Summary)) {
		s := r.Summary[name]
		cells := []report.Cell{report.Text(name), report.Count(s.Waves)}
		for _, v := range []*float64{s.Aggregate, s.DecodeTPS, s.PrefillTPS, s.TTFT, s.WallMS} {
			if v == nil {
				cells = append(cells, report.Absent("no_samples"))
			} else {
				cells = append(cells, report.Number(*v))
			}
		}
		sums.Table.Add(cells...)
	}
	d.Sections = append(d.Sections, sums)
	return d
}

// capturedSuite is the same as CI systems read it.
func capturedSuite(r *replay.Captured) *report.Suite {
	return &report.Suite{
		Name: "benchproxy revalidation of " + r.Source, Properties: []report.Fact{{Name: "source_sha256", Value: r.SourceSum}, {Name: "judged_by", Value: r.Harness}},
		Counts: report.Counts{Tests: r.Recorded, Failures: r.Failed},
		Cases: iter.Seq[report.TestCase](func(yield func(report.TestCase) bool) {
			for _, c := range r.Cases {
				if !yield(report.TestCase{Class: c.Scenario, Name: c.Tag, State: report.StateOf(c.Status), Status: c.Status, Message: c.Detail}) {
					return
				}
			}
		}),
	}
}
