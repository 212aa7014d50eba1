package audit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Schema is the version of the JSON form of a Report.
const Schema = 1

// Status is the answer to one question.
type Status string

// The answers.
const (
	OK            Status = "ok"
	Warning       Status = "warning" // to be told beside the numbers
	Failure       Status = "failure" // the numbers are not to be published
	NotApplicable Status = "not_applicable"
)

// The questions.
const (
	AskEvidence    = "evidence"     // is there anything to audit
	AskDocument    = "document"     // can the file be read
	AskComplete    = "complete"     // did everything that was planned end, with nothing lost
	AskTraceable   = "traceable"    // does every number come from an exchange on record
	AskIdentity    = "identity"     // is it known what answered, and was it one engine from beginning to end
	AskInstrument  = "selftest"     // is the error of the measuring machine known
	AskMachine     = "same_machine" // did one machine measure everything
	AskSpeculation = "speculation"  // does an engine that is to draft draft
	AskPlausible   = "plausibility" // is the number possible
	AskBaseline    = "baseline"     // is the baseline the fastest qualified build
	AskCases       = "cases"        // did the cases of a run pass
	AskGates       = "gates"        // was the measured build judged, and did it pass
	AskFullContext = "full_context" // was a probe deferred
	AskComparison  = "comparison"   // does the record give the numbers that a file states
)

// Check is one question about one thing, with its answer.
type Check struct {
	Name      string        `json:"check"`
	Object    string        `json:"object"` // run, file or number that it is about
	Status    Status        `json:"status"`
	Detail    string        `json:"detail"`              // one line for people
	Exchanges []exchange.ID `json:"exchanges,omitempty"` // that show it, the first ones
}

// Role is what a run stands for.
type Role string

// The roles.
const (
	Baseline    Role = "baseline"
	Alternative Role = "alternative" // another build of the baseline's engine, measured to choose the baseline
	Candidate   Role = "candidate"
	Supporting  Role = "supporting" // a file names it as its source; no number of its own is claimed
)

// Input is what is audited.
type Input struct {
	Runs        []*Run
	Gates       []GateRun
	GateRules   map[string]int // gate -> version of its rule today
	Comparisons []Comparison
	Documents   []*Document
	Rows        map[exchange.ID]*exchange.Summary // of the exchanges that documents name, as far as they are on record
	Limits      Limits
}

// Report is the result.
type Report struct {
	Schema   int     `json:"schema"`
	Harness  string  `json:"harness"`
	Checks   []Check `json:"checks"`
	Claims   []Claim `json:"claims"`
	Warnings int     `json:"warnings"`
	Failures int     `json:"failures"`
}

// auditor is the work on one report.
type auditor struct {
	in     *Input
	report *Report
	told   map[*GateRun]bool // that were held against a build with numbers
}

// Audit asks every question of the input. harness is the version of benchproxy that asks.
func Audit(in *Input, harness string) *Report {
	own := *in
	own.Gates = slices.Clone(in.Gates)
	for i := range own.Gates { // what files state is corrected by the record
		own.Gates[i].Verdicts = slices.Clone(in.Gates[i].Verdicts)
	}
	a := &auditor{in: &own, told: map[*GateRun]bool{}, report: &Report{Schema: Schema, Harness: harness, Checks: []Check{}, Claims: []Claim{}}}
	if len(in.Runs)+len(in.Comparisons)+len(in.Documents) == 0 {
		a.add(AskEvidence, "", Failure, "there is nothing to audit: no run and no file that benchproxy wrote")
	}
	for _, r := range in.Runs {
		if r.Role == Supporting {
			a.traceable(r, nameOf(&r.Run))
			continue
		}
		a.trace(r)
		a.identity(r)
		a.instrument(r)
		speculating := a.speculation(r)
		a.claims(r, speculating)
	}
	a.machines()
	a.baselines()
	a.gates()
	for i := range in.Comparisons {
		a.comparison(&in.Comparisons[i])
	}
	for _, d := range in.Documents {
		a.document(d)
	}
	for _, c := range a.report.Checks {
		switch c.Status {
		case Warning:
			a.report.Warnings++
		case Failure:
			a.report.Failures++
		}
	}
	return a.report
}

func (a *auditor) add(name, object string, status Status, format string, args ...any) *Check {
	a.report.Checks = append(a.report.Checks, Check{Name: name, Object: object, Status: status, Detail: fmt.Sprintf(format, args...)})
	return &a.report.Checks[len(a.report.Checks)-1]
}

// Verdict is what the audit amounts to for a script: nil, or an error that wraps exchange.ErrGate when anything is to be
// told or to be mended first.
func (r *Report) Verdict() error {
	if r.Warnings+r.Failures == 0 {
		return nil
	}
	return &exchange.Error{Op: "audit", Cause: exchange.ErrGate,
		Hint: fmt.Sprintf("%s and %s: mend the failures before anything is published, and publish the warnings with it", count(r.Failures, "failure"), count(r.Warnings, "warning"))}
}

// Word is the bottom line.
func (r *Report) Word() string {
	switch {
	case r.Failures > 0:
		return "NOT PASSED"
	case r.Warnings > 0:
		return "PASSED WITH WARNINGS"
	}
	return "PASS"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// first bounds a list of ids that is printed.
func first(ids []exchange.ID) []exchange.ID {
	const most = 20
	return slices.Clone(ids[:min(len(ids), most)])
}

func nameOf(r *exchange.Run) string { return cmp.Or(r.Name, string(r.ID)) }
