package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/audit"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
)

// auditOrder is the order in which answers are shown: what is to be mended first.
var auditOrder = []audit.Status{audit.Failure, audit.Warning, audit.OK, audit.NotApplicable}

// auditDocument is an audit as people read it.
func auditDocument(r *audit.Report) *report.Document {
	d := &report.Document{
		Title:   "Audit",
		Summary: []string{fmt.Sprintf("%s: %s, %s.", r.Word(), countOf(r.Failures, "failure"), countOf(r.Warnings, "warning"))},
		Facts:   []report.Fact{{Name: "audited", Value: "by benchproxy " + r.Harness}},
	}
	checks := report.Section{ID: "checks", Title: "What was asked"}
	checks.Table.Columns = []report.Column{{Name: "answer"}, {Name: "check"}, {Name: "of"}, {Name: "what was found"}}
	sorted := slices.Clone(r.Checks)
	slices.SortStableFunc(sorted, func(a, b audit.Check) int {
		return cmp.Compare(slices.Index(auditOrder, a.Status), slices.Index(auditOrder, b.Status))
	})
	for _, c := range sorted {
		checks.Table.Add(report.Text(string(c.Status)), report.Text(c.Name), report.Text(c.Object), report.Text(c.Detail))
	}
	claims := report.Section{ID: "claims", Title: "Numbers, medians over requests of one shape", Notes: []string{"The JSON form names the exchanges of each."}}
	claims.Table.Columns = []report.Column{{Name: "run"}, {Name: "role"}, {Name: "requests"}, {Name: "metric"}, {Name: "value", Number: true, Digits: 2}, {Name: "unit"},
		{Name: "n", Number: true}, {Name: "ceiling", Number: true, Digits: 2}, {Name: "share", Unit: "%", Number: true, Digits: 0}}
	for i := range r.Claims {
		claims.Table.Add(claimCells(&r.Claims[i])...)
	}
	for _, s := range []report.Section{checks, claims} {
		if len(s.Table.Rows) > 0 {
			d.Sections = append(d.Sections, s)
		}
	}
	return d
}

func claimCells(c *audit.Claim) []report.Cell {
	value := report.Figure(exchange.Figure{Value: c.Value, Unit: c.Unit, Basis: c.Basis})
	ceiling, share := report.Absent(c.NoCeiling), report.Absent(c.NoCeiling)
	if c.Ceiling != nil {
		ceiling, share = report.Number(c.Ceiling.Value), report.Number(100**c.Share)
	}
	return []report.Cell{report.Text(cmp.Or(c.Name, string(c.Run))), report.Text(string(c.Role)), report.Text(c.Shape), report.Text(c.Metric), value, report.Text(c.Unit),
		report.Count(c.N), ceiling, share}
}

// auditSuite is an audit as CI systems read it: what does not arise is skipped, and a warning fails.
func auditSuite(r *audit.Report) *report.Suite {
	skipped := 0
	for _, c := range r.Checks {
		if c.Status == audit.NotApplicable {
			skipped++
		}
	}
	return &report.Suite{
		Name: "benchproxy audit", Properties: []report.Fact{{Name: "audited_by", Value: r.Harness}},
		Counts: report.Counts{Tests: len(r.Checks), Failures: r.Failures + r.Warnings, Skipped: skipped},
		Cases: func(yield func(report.TestCase) bool) {
			for _, c := range r.Checks {
				if !yield(report.TestCase{Class: c.Name, Name: cmp.Or(c.Object, c.Name), State: auditState(c.Status), Message: string(c.Status) + ": " + c.Detail}) {
					return
				}
			}
		},
	}
}

func auditState(s audit.Status) report.TestState {
	switch s {
	case audit.OK:
		return report.TestPassed
	case audit.NotApplicable:
		return report.TestSkipped
	}
	return report.TestFailed
}
