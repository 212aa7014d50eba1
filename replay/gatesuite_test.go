package replay

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// TestGateReportIsRead holds that only a report of gates is read, and none of a later version.
func TestGateReportIsRead(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		kind error
	}{
		"good":        {`{"schema":1,"level":"dev","package":"sha256:00","verdicts":[]}`, nil},
		"newer":       {`{"schema":2,"level":"dev","package":"sha256:00","verdicts":[],"more":1}`, exchange.ErrDamaged},
		"unknown key": {`{"schema":1,"level":"dev","package":"sha256:00","verdicts":[],"more":1}`, exchange.ErrMiss},
		"no verdicts": {`{"schema":1,"level":"dev","package":"sha256:00"}`, exchange.ErrMiss},
		"no version":  {`{"level":"dev","package":"sha256:00","verdicts":[]}`, exchange.ErrMiss},
		"no JSON":     {`gates`, exchange.ErrMiss},
		"cut":         {`{"schema":1,"verdicts":[`, exchange.ErrMiss},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "_"))
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := ReadGateReport(path); !errors.Is(err, c.kind) || (err == nil) != (r != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadGateReport(filepath.Join(dir, "nothing")); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("no file: %v", err)
	}
	if err := (&GateReport{}).Save(filepath.Join(dir, "no", "such", "dir.json")); err == nil {
		t.Error("it is written where nothing can be")
	}
}

// TestGateVerdicts holds what a report comes to: only what passed or does not apply is no error.
func TestGateVerdicts(t *testing.T) {
	of := func(statuses ...exchange.VerdictStatus) *GateReport {
		r := &GateReport{Complete: true, Statuses: map[exchange.VerdictStatus]int{}}
		for _, s := range statuses {
			r.Verdicts = append(r.Verdicts, GateEntry{Verdict: exchange.Verdict{Status: s}})
			r.Statuses[s]++
		}
		return r
	}
	lacks, cut := of(exchange.VerdictOK, exchange.VerdictIncomparable), of(exchange.VerdictOK)
	lacks.Verdicts[1].Lacks, cut.Complete = true, false
	failedAndCut := of(exchange.VerdictFail, exchange.VerdictNotRun)
	failedAndCut.Complete = false
	for name, c := range map[string]struct {
		r    *GateReport
		kind error
	}{
		"passed":              {of(exchange.VerdictOK, exchange.VerdictSkipped, exchange.VerdictUnsupported), nil},
		"failed":              {of(exchange.VerdictOK, exchange.VerdictFail, exchange.VerdictIncomparable), exchange.ErrGate},
		"failed and cut":      {failedAndCut, exchange.ErrGate},
		"cut":                 {cut, exchange.ErrIncomplete},
		"lacks a reference":   {lacks, exchange.ErrMiss},
		"could not be judged": {of(exchange.VerdictOK, exchange.VerdictIncomparable), exchange.ErrIncomplete},
		"partial":             {of(exchange.VerdictOK, exchange.VerdictPartial), exchange.ErrIncomplete},
		"nothing":             {of(exchange.VerdictSkipped), exchange.ErrMiss},
	} {
		if err := c.r.Verdict(); !errors.Is(err, c.kind) || (err == nil) != (c.kind == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGateSuitePlan holds that the run keeps every case, with what a recording must be of among its checks.
func TestGateSuitePlan(t *testing.T) {
	cases, _, err := scenario.LevelPlan(scenario.LevelOptions{Level: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	ref := GateParty{Weights: "w", Identity: exchange.Identity{Engine: "llamacpp", Version: "b1"}}
	s, err := NewGateSuite(GateOptions{Level: gates.LevelDev, Cases: cases, Candidate: GateParty{Weights: "w", Model: "m"}, Reference: &ref, Variants: []string{"-ub 8"}})
	if err != nil {
		t.Fatal(err)
	}
	kept := s.Suite().Planned()
	if asked, reused := s.Planned(); asked != len(cases) || reused != 0 || len(kept.Cases) != len(cases) || kept.Reference.Version != "b1" {
		t.Errorf("%d and %d of %d, %+v", asked, reused, len(cases), kept.Reference)
	}
	for _, c := range kept.Cases {
		for _, check := range c.Checks {
			params := string(check.Params)
			if comparesGoldens(check.Gate) && !strings.Contains(params, `"build":"b1"`) || check.Gate == gateNearTie && !strings.Contains(params, `"variants":["-ub 8"]`) {
				t.Errorf("%s %s: %s", c.ID, check.Gate, params)
			}
		}
	}
	if a, b := GatePackage(), GatePackage(); a != b || !strings.HasPrefix(a, exchange.DigestPrefix) {
		t.Errorf("%s %s", a, b)
	}
}

// TestGateSuiteGivesUp holds that gates which never have enough come to an end, and that what was not had is told.
func TestGateSuiteGivesUp(t *testing.T) {
	cases, _, err := scenario.LevelPlan(scenario.LevelOptions{Level: "fast"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewGateSuite(GateOptions{Level: gates.LevelFast, Cases: cases[:1], Candidate: GateParty{Model: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	answer := `{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`
	c := s.cases[0]
	for range 2 {
		c.Case.Exchanges = append(c.Case.Exchanges, &exchange.Exchange{
			ID: exchange.NewID(time.UnixMilli(1)), State: exchange.StateStored, End: exchange.EndEOF,
			Request:  exchange.Request{Method: "POST", Target: "/v1/chat/completions", Body: exchange.NewBody([]byte(`{"model":"m","temperature":0,"messages":[]}`))},
			Response: exchange.Response{Status: 200, Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}, Body: exchange.NewBody([]byte(answer))},
			Timeline: exchange.Timeline{SendStart: exchange.MarkAt(1), BodyEnd: exchange.MarkAt(1000)},
		})
	}
	r := &gateRun{GateSuite: s, report: s.emptyReport()}
	if err := r.giveUp(); err != nil {
		t.Fatal(err)
	}
	if e := r.report.Verdicts[len(r.report.Verdicts)-1]; e.Gate != "consistency" || e.Status != exchange.VerdictIncomparable || !strings.Contains(e.Reason, "more than a suite gives") {
		t.Errorf("%s %s: %s", e.Gate, e.Status, e.Reason)
	}
}
