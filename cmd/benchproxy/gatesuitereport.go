package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/replay"
)

// write writes the outputs, whole or not at all.
func (g *gating) write() error {
	doc := gateDocument(g.report)
	for _, name := range g.outputs {
		form, err := outputForm(name)
		if err != nil {
			return err
		}
		if form == "json" {
			if err := g.report.Save(name); err != nil {
				return err
			}
			continue
		}
		var to io.Writer
		if to, err = g.files.create(name); err != nil {
			return err
		}
		if form == "md" {
			err = doc.Markdown(to)
		} else {
			err = gateJUnit(g.report).JUnit(to)
		}
		if err != nil {
			return err
		}
	}
	return g.files.keep()
}

// print tells what the suite came to.
func (g *gating) print() error {
	if g.s.json {
		return json.NewEncoder(g.env.Stdout).Encode(g.report)
	}
	printDocument(g.env.Stdout, gateDocument(g.report))
	for _, name := range g.outputs {
		if !g.s.quiet {
			note(g.env.Stderr, "wrote %s", name)
		}
	}
	return nil
}

func subjectText(s *replay.GateSubject) string {
	text := strings.TrimSpace(s.Engine + " " + s.Version)
	if text == "" {
		text = "an engine that is not known"
	}
	text += ", model " + s.Model
	if s.Weights != "" {
		return text + ", weights " + s.Weights
	}
	return text + ", weights unknown"
}

func subjectOfGoldens(u *replay.GateGoldens) string {
	text := strings.TrimSpace(u.Engine + " " + u.Version)
	if text == "" {
		text = "an engine that is not known"
	}
	if u.Weights != "" {
		return text + ", weights " + u.Weights
	}
	return text + ", weights unknown"
}

// gateDocument is a gate suite as people read it.
func gateDocument(r *replay.GateReport) *report.Document {
	word := verdictWord(r.Verdict())
	if !r.Complete {
		word = "INCOMPLETE"
	}
	d := &report.Document{Title: "Gates, level " + r.Level,
		Summary: []string{fmt.Sprintf("%s: %d verdicts: %s.", word, len(r.Verdicts), statusesText(r.Statuses))},
		Facts:   []report.Fact{{Name: "run", Value: string(r.Run)}, {Name: "target", Value: subjectText(&r.Target)}}}
	fact := func(name, value string) {
		if value != "" {
			d.Facts = append(d.Facts, report.Fact{Name: name, Value: value})
		}
	}
	if r.Reference != nil {
		fact("reference", subjectText(r.Reference))
	}
	for _, u := range r.Goldens {
		text := fmt.Sprintf("%s of %s, made %s", countOf(u.Recordings, "recording"), subjectOfGoldens(&u), u.Oldest.UTC().Format("2006-01-02 15:04"))
		if !u.Newest.Equal(u.Oldest) {
			text += " to " + u.Newest.UTC().Format("2006-01-02 15:04")
		}
		fact("held against", text)
	}
	for _, note := range r.Notes {
		fact("note", note)
	}
	fact("asked", fmt.Sprintf("%d more of the target, %d of the reference, %d were on record", r.Asked.Candidate, r.Asked.Reference, r.Asked.Kept))
	fact("gates", r.Package)
	fact("time", fmt.Sprintf("%.1f s", r.Seconds))
	fact("not whole", r.Why)
	d.Sections = append(d.Sections, *familySection(r), *verdictSection(r))
	if len(r.Deferred) > 0 {
		s := report.Section{ID: "deferred", Title: "Put off", Notes: []string{"A full run on this build and these weights, with the same --output, asks these alone."}}
		s.Table.Columns = []report.Column{{Name: "family"}, {Name: "case"}, {Name: "why"}}
		for _, x := range r.Deferred {
			s.Table.Add(report.Text(x.Family), report.Text(x.Case), report.Text(x.Reason))
		}
		d.Sections = append(d.Sections, s)
	}
	return d
}

// familySection counts the verdicts of each family.
func familySection(r *replay.GateReport) *report.Section {
	s := &report.Section{ID: "families", Title: "By family"}
	s.Table.Columns = []report.Column{{Name: "family"}, {Name: "ok", Number: true}, {Name: "fail", Number: true}, {Name: "unjudged", Number: true},
		{Name: "unsupported", Number: true}, {Name: "skipped", Number: true}, {Name: "of before", Number: true}, {Name: "compared", Unit: "tokens", Number: true}, {Name: "largest gap", Unit: "nats", Number: true, Digits: 3}}
	var families []string
	for _, e := range r.Verdicts {
		if !slices.Contains(families, e.Family) {
			families = append(families, e.Family)
		}
	}
	for _, f := range families {
		n, reused, gap := map[exchange.VerdictStatus]int{}, 0, report.Absent("no_divergence")
		all, compared, largest := 0, 0, 0.0
		for _, e := range r.Verdicts {
			if e.Family != f {
				continue
			}
			all++
			compared += e.Compared
			if n[e.Status]++; e.Reused {
				reused++
			}
			if e.Gap != nil && *e.Gap >= largest {
				largest = *e.Gap
				gap = report.Number(largest)
			}
		}
		ok, fail, skipped, unsupported := n[exchange.VerdictOK], n[exchange.VerdictFail], n[exchange.VerdictSkipped], n[exchange.VerdictUnsupported]
		s.Table.Add(report.Text(f), report.Count(ok), report.Count(fail), report.Count(all-ok-fail-skipped-unsupported), report.Count(unsupported),
			report.Count(skipped), report.Count(reused), report.Count(compared), gap)
	}
	return s
}

// verdictSection lists the verdicts that did not pass, and every divergence from the reference.
func verdictSection(r *replay.GateReport) *report.Section {
	s := &report.Section{ID: "verdicts", Title: "Divergences, and what did not pass"}
	s.Table.Columns = []report.Column{{Name: "case"}, {Name: "gate"}, {Name: "status"}, {Name: "token", Number: true}, {Name: "gap", Unit: "nats", Number: true, Digits: 3},
		{Name: "has"}, {Name: "reference"}, {Name: "rule"}, {Name: "s", Number: true, Digits: 1}, {Name: "why"}}
	for _, e := range r.Verdicts {
		switch {
		case e.Status == exchange.VerdictOK && e.Position == nil:
			continue
		case len(s.Table.Rows) == listed:
			s.Table.Omitted++
			continue
		}
		place, gap := report.Absent("no_divergence"), report.Absent("not_listed")
		if e.Position != nil {
			place = report.Count(*e.Position)
		}
		if e.Gap != nil {
			gap = report.Number(*e.Gap)
		}
		name := e.Case
		if name == "" {
			name = e.Family
		}
		s.Table.Add(report.Text(name), report.Text(e.Gate), report.Text(string(e.Status)), place, gap, tokenCell(e.Token), tokenCell(e.Golden),
			report.Text(e.Rule), report.Number(e.Seconds), report.Text(e.Reason))
	}
	if len(s.Table.Rows) == 0 {
		s.Notes = []string{"There is none: every answer is that of the reference, token by token."}
	}
	return s
}

func tokenCell(token *string) report.Cell {
	if token == nil {
		return report.Absent("no_divergence")
	}
	return report.Text(strconv.Quote(*token))
}

// gateJUnit is a gate suite as CI systems read it. What an engine does not have is skipped.
func gateJUnit(r *replay.GateReport) *report.Suite {
	var counts report.Counts
	for i := range r.Verdicts {
		counts.Add(report.StateOf(r.Verdicts[i].Status))
	}
	return &report.Suite{
		Name: "benchproxy gates, level " + r.Level, Counts: counts, Verdict: r.Verdict(),
		Properties: []report.Fact{{Name: "run", Value: string(r.Run)}, {Name: "target", Value: subjectText(&r.Target)}, {Name: "package", Value: r.Package},
			{Name: "complete", Value: strconv.FormatBool(r.Complete)}},
		Cases: func(yield func(report.TestCase) bool) {
			for i := range r.Verdicts {
				e := &r.Verdicts[i]
				if !yield(report.TestCase{Class: e.Family, Name: strings.TrimSpace(e.Case + " " + e.Gate), State: report.StateOf(e.Status), Status: e.Status, Message: e.Reason, Detail: string(e.Detail)}) {
					return
				}
			}
		},
	}
}
