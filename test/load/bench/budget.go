package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/stat"
)

// Verdicts on a budget.
const (
	verdictAim     = "meets aim"
	verdictMust    = "meets must"
	verdictNot     = "not met"
	verdictNoisy   = "noisy: not judged"
	verdictMissing = "no figure: not judged" // what it is compared with added nothing that could be told, or failed
)

// budgetRow is a figure that has a budget.
type budgetRow struct {
	What    string         `json:"what"`
	Unit    string         `json:"unit"`
	Value   *float64       `json:"value"` // null when it could not be told from noise
	Range   *stat.Interval `json:"range"` // of a ratio
	Must    float64        `json:"must"`
	Aim     float64        `json:"aim"`
	Verdict string         `json:"verdict"`
	Unsure  bool           `json:"unsure"` // must or aim lies in the range: another run may come out otherwise
}

// ratioBudgets are the budgets on record beside another.
var ratioBudgets = []struct {
	what, scenario, figure, against string
	must, aim                       float64
}{
	{"added p50 an event", "events", "added_p50_us", nginx, 1.3, 1},
	{"added p50 of TTFT", "ttft", "added_p50_us", nginx, 1.3, 1},
	{"added p50 an event", "events", "added_p50_us", compare, 0.7, 0.5},
	{"added p50 of TTFT", "ttft", "added_p50_us", compare, 0.7, 0.5},
	{"CPU a small JSON request", "load", "cpu_us", compare, 0.45, 0.3},
}

// finish derives ratios and budgets from what was measured.
func (r *report) finish(cfg config) {
	r.Machine.ended()
	r.compareAll()
	r.compareTracing()
	for _, b := range ratioBudgets {
		if cfg.has(b.scenario) && slices.Contains(cfg.targets, b.against) && slices.Contains(cfg.targets, records) {
			row := budgetRow{What: fmt.Sprintf("%s, record / %s", b.what, b.against), Unit: "x", Must: b.must, Aim: b.aim}
			r.Budgets = append(r.Budgets, r.ofRatio(row, b.scenario, b.figure, b.against))
		}
	}
	for _, m := range r.Memory {
		if m.Target == records {
			kb := m.PerStream / 1024
			r.plain("memory of an idle stream, record", "KB", &kb, 40, 24)
		}
	}
	for _, g := range r.Gone {
		if g.Target == records {
			lost := float64(g.Missed)
			r.plain("client gone to engine closed, record, longest", "ms", g.Max, 100, 5)
			r.plain("client gone, record, engine never heard", "clients", &lost, 0, 0)
		}
	}
	for _, own := range []string{records, proxied} {
		if slices.Contains(cfg.targets, own) {
			n := float64(r.failures(own))
			r.plain("answers that failed or were cut, "+own, "answers", &n, 0, 0)
		}
	}
}

// failures are the answers that failed on a target, in all that was played.
func (r *report) failures(name string) int {
	n := 0
	for _, s := range r.Scenarios {
		if t := s.Targets[name]; t != nil {
			n += t.Failed
		}
	}
	for _, m := range r.Memory {
		if m.Target == name {
			n += m.Failed
		}
	}
	return n
}

// ofRatio judges a ratio, unless direct was too noisy for it.
func (r *report) ofRatio(row budgetRow, scenario, figure, against string) budgetRow {
	i := slices.IndexFunc(r.Ratios, func(x ratioRow) bool {
		return x.Own == records && x.Scenario == scenario && x.Figure == figure
	})
	if i < 0 {
		row.Verdict = verdictMissing
		return row
	}
	x := r.Ratios[i].Against[against]
	row.Value, row.Range = x.Value, x.Range
	if row.Verdict = row.verdict(); r.Ratios[i].Noisy {
		row.Verdict = verdictNoisy
	}
	inside := func(limit float64) bool { return x.Range != nil && x.Range.Lo <= limit && limit < x.Range.Hi }
	row.Unsure = inside(row.Must) || inside(row.Aim)
	return row
}

// plain enters a budget on a figure that stands by itself.
func (r *report) plain(what, unit string, value *float64, must, aim float64) {
	row := budgetRow{What: what, Unit: unit, Value: value, Must: must, Aim: aim}
	row.Verdict = row.verdict()
	r.Budgets = append(r.Budgets, row)
}

func (b budgetRow) verdict() string {
	switch {
	case b.Value == nil:
		return verdictMissing
	case *b.Value <= b.Aim:
		return verdictAim
	case *b.Value <= b.Must:
		return verdictMust
	}
	return verdictNot
}

// judge is an error when a budget is not met or cannot be judged. One that is not met by a figure whose interval holds
// the limit is open: the evidence is for neither.
func (r *report) judge() error {
	var not, open []string
	for _, b := range r.Budgets {
		switch {
		case b.Verdict == verdictNot && !b.Unsure:
			not = append(not, b.What)
		case b.Verdict == verdictNot, b.Verdict == verdictNoisy, b.Verdict == verdictMissing:
			open = append(open, b.What)
		}
	}
	switch {
	case len(not) > 0:
		return verdictError{exitNotMet, "over budget: " + strings.Join(not, "; ")}
	case len(open) > 0:
		return verdictError{exitNoJudge, "not judged: " + strings.Join(open, "; ")}
	}
	return nil
}
