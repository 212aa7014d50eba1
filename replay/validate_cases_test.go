package replay

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// TestValidationKeepsEachCase holds that a report has each case as soon as it has ended, that it does not count as complete
// before the last one, and that in the end it is the same as if it had been told of whole waves.
func TestValidationKeepsEachCase(t *testing.T) {
	o := validation(scenario.SuitePolicies, "required", "none_history", "invalid_named")
	facts := ValidationFacts{Engine: "pupil", Degrees: []int{1, 4}, Repeats: 1}
	v := NewValidation(ValidateTools, &o, facts)
	path := filepath.Join(t.TempDir(), "tools.json")
	var counts []int
	saved := func() error {
		if err := v.Save(path); err != nil {
			return err
		}
		r, _, err := ReadValidation(path)
		if err != nil {
			return err
		}
		if r.Complete {
			t.Error("it is complete while cases are out")
		}
		counts = append(counts, len(r.Cases))
		return nil
	}
	o.Case = func(c *SuiteCase) error { return errors.Join(v.AddCase(c), saved()) }
	o.Wave = func(w *SuiteWave) error { return errors.Join(v.Add(w), saved()) }
	suiteRig{}.play(t, o, func(t *testing.T, h *heard) {
		if h.err != nil {
			t.Fatal(h.err)
		}
		v.Finish(h.err, time.Unix(60, 0))
	})
	if diff := cmp.Diff([]int{1, 1, 2, 3, 4, 5, 5, 6, 6, 7, 8, 9, 10, 10, 11, 11}, counts); diff != "" {
		t.Error(diff)
	}
	var tags []string
	for _, c := range v.Report.Cases {
		tags = append(tags, c.Tag)
	}
	var planned []string
	for _, m := range o.Members {
		planned = append(planned, m.Tag())
	}
	if diff := cmp.Diff(planned, tags); diff != "" || !v.Report.Complete || v.Verdict() != nil {
		t.Errorf("%v: %s", v.Verdict(), diff)
	}
	if s := v.Report.Summary["required@c4"]; s == nil || s.Total != 4 || s.Passed != 4 {
		t.Errorf("%+v", s)
	}
}

// TestValidationCutCase holds that a case which was cut is in no report, and those that ended before are.
func TestValidationCutCase(t *testing.T) {
	why := errors.New("told to")
	o := validation(scenario.SuitePolicies)
	v := NewValidation(ValidateTools, &o, ValidationFacts{Degrees: []int{1, 4}, Repeats: 1})
	o.Case, o.Wave = v.AddCase, v.Add
	suiteRig{until: 125 * time.Millisecond, why: why}.play(t, o, func(t *testing.T, h *heard) {
		v.Finish(h.err, time.Unix(60, 0))
		if !errors.Is(h.err, why) || v.Report.Complete || len(v.Report.Cases) == 0 || !errors.Is(v.Verdict(), exchange.ErrIncomplete) {
			t.Errorf("%v, %d cases: %v", h.err, len(v.Report.Cases), v.Verdict())
		}
		for _, c := range v.Report.Cases {
			if c.Status != "ok" {
				t.Errorf("%s: %s", c.Tag, c.Detail)
			}
		}
	})
	o.Case = func(*SuiteCase) error { return why }
	suiteRig{}.play(t, o, func(t *testing.T, h *heard) {
		if !errors.Is(h.err, why) || len(h.waves) != 0 {
			t.Errorf("the error of a case: %v, %d waves", h.err, len(h.waves))
		}
	})
}

// TestValidationConditionsAsTold holds that what a reference states of its conditions counts as it stands there: further
// sampling, sampling that it lacks, and conditions that it does not state.
func TestValidationConditionsAsTold(t *testing.T) {
	mine := reported(t, ValidateInference, pupil{}, validation(scenario.SuiteValidation, "short"))
	path := filepath.Join(t.TempDir(), "r.json")
	if err := mine.Save(path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, why string }{
		"as it is":         {`"top_k"`, `"top_k"`, ""},
		"further sampling": {`"top_k":`, `"min_p":0.1,"top_k":`, "sampling differs: {"},
		"less sampling":    {`"top_k":0,`, ``, "sampling differs: {"},
		"another order":    {`"temperature":0,"top_p":1,`, `"top_p":1,"temperature":0,`, ""},
		"no word of it":    {`"thinking":false,"stream":true,`, `"thinking":null,`, "the reference does not say thinking, stream"},
	} {
		if !bytes.Contains(whole, []byte(c.old)) {
			t.Fatalf("%s: nothing to change", name)
		}
		if err := os.WriteFile(path, bytes.Replace(whole, []byte(c.old), []byte(c.new), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		reference, _, err := ReadValidation(path)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(CompareValidations(&mine.Report, reference, DefaultTolerance).Errors, "; ")
		if (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestValidationTimingSources holds that the formula of a rate is that of the request, whether there is a rate or not: an
// answer of one event has none, and is no reason to refuse a comparison.
func TestValidationTimingSources(t *testing.T) {
	v := reported(t, ValidateInference, pupil{}, validation(scenario.SuiteValidation, "short", "tool_round_trip"))
	without := 0
	for _, c := range v.Report.Cases {
		for _, turn := range c.Turns {
			if turn.Metrics.DecodeTPS == nil {
				without++
			}
			if turn.Metrics.DecodeSource != "stream_window" {
				t.Errorf("%s: %q", c.Tag, turn.Metrics.DecodeSource)
			}
		}
	}
	if without == 0 {
		t.Error("every answer has a rate: nothing was tested")
	}
}

// TestToolUseReport holds that the report of tool_use tells what engines lack apart from what they do wrong, and which share
// of the planned turns was right.
func TestToolUseReport(t *testing.T) {
	calls := func(tag string, turn int) *pupilSays {
		switch tag {
		case "selection_weather-c1-r0-i0":
			return &pupilSays{calls: []string{"get_weather", `{"city":"Lisbon","units":"celsius"}`}}
		case "abstention_known-c1-r0-i0":
			return &pupilSays{content: "Paris"}
		}
		return &pupilSays{content: "I cannot."}
	}
	v := reported(t, ValidateToolUse, pupil{wrong: calls}, useSuite(1))
	rates := v.Report.ToolUse
	if passed, total := v.Counts(); passed != 2 || total != 8 || v.Unsupported() != 0 || !errors.Is(v.Verdict(), exchange.ErrGate) {
		t.Errorf("%d of %d: %v", passed, total, v.Verdict())
	}
	if len(rates) == 0 || rates[0].Planned != 11 || rates[0].OK != 2 || rates[1].Category != "selection" || rates[1].OK != 1 || rates[1].Planned != 2 {
		t.Errorf("%+v", rates)
	}
	v = reported(t, ValidateToolUse, toolless("this model does not support tools").pupil, useSuite(1))
	if v.Unsupported() != 8 || !v.Report.Complete || !errors.Is(v.Verdict(), exchange.ErrMiss) || v.Report.ToolUse[0].Rate != nil {
		t.Errorf("%d unsupported, complete %v: %v", v.Unsupported(), v.Report.Complete, v.Verdict())
	}
	for i, c := range v.Report.Cases {
		if c.Status != "unsupported" || (len(c.Turns) == 0) != (i > 0) {
			t.Errorf("%s: %s, %d turns", c.Tag, c.Status, len(c.Turns))
		}
	}
}
