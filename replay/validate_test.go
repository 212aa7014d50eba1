package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// reported is the report of a suite that an engine answered.
func reported(t *testing.T, kind string, p pupil, o SuiteOptions) *Validation {
	t.Helper()
	facts := ValidationFacts{Engine: "pupil", URL: "http://engine", Model: "pupil", WeightsID: "w1", Profile: "cpu", Degrees: []int{1, 4}, Repeats: 1, Fenced: true,
		ToolSum: "ab", Tool: ValidationTool{Harness: "1", Run: "R"}, Started: time.Unix(0, 0)}
	v := NewValidation(kind, &o, facts)
	o.Wave = v.Add
	suiteRig{pupil: p}.play(t, o, func(t *testing.T, h *heard) { v.Finish(h.err, time.Unix(60, 0)) })
	return v
}

// keysOf are the keys of a JSON object in their order.
func keysOf(t *testing.T, raw []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		t.Fatalf("no object: %.80s", raw)
	}
	var out []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, key.(string))
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestValidationReportKeys holds the names that other tools read.
func TestValidationReportKeys(t *testing.T) {
	v := reported(t, ValidateInference, pupil{}, validation(scenario.SuiteValidation, "short", "agentic"))
	raw, err := json.Marshal(&v.Report)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields("format_version engine url harness_sha256 model weights_id profile thinking stream sampling structured_tool_results " +
		"serial_tool_workflows accept_fenced_json max_tokens_override execution_plan run_complete cases waves not_covered warmup summary comparison benchproxy")
	if diff := cmp.Diff(want, keysOf(t, raw)); diff != "" {
		t.Errorf("report (-want +got)\n%s", diff)
	}
	var doc struct {
		Plan  json.RawMessage   `json:"execution_plan"`
		Cases []json.RawMessage `json:"cases"`
		Waves []json.RawMessage `json:"waves"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, keys string
		raw        json.RawMessage
	}{
		{"plan", "scenarios concurrency repeats expected_cases", doc.Plan},
		{"case", "scenario tag status detail input_sha256 turns validated_content lenient_status total_wall_ms concurrency repeat", doc.Cases[0]},
		{"wave", "scenario concurrency repeat wall_ms generated_tokens end_to_end_tokens_per_second all_passed", doc.Waves[0]},
	} {
		if diff := cmp.Diff(strings.Fields(c.keys), keysOf(t, c.raw)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, diff)
		}
	}
	tools := reported(t, ValidateTools, pupil{}, validation(scenario.SuitePolicies))
	if raw, err = json.Marshal(&tools.Report); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields("native_sha256 server_build started_utc finished_utc fixtures fixtures_sha256 scope execution_plan waves") {
		if !slices.Contains(keysOf(t, raw), key) {
			t.Errorf("the report of tool policies has no %s", key)
		}
	}
}

// checkCases holds what the cases, turns and waves of a report say of themselves.
func checkCases(t *testing.T, r *ValidationReport) {
	t.Helper()
	for _, c := range r.Cases {
		if (c.Validated != nil) != c.passed() || len(c.InputSum) != 64 || *c.WallMS <= 0 {
			t.Errorf("%+v", c)
		}
		for _, turn := range c.Turns {
			checkTurn(t, c.Tag, &turn)
		}
		if c.Scenario == "agentic" && (len(c.Turns) != 3 || len(c.Turns[0].Metrics.Message.Calls) != 1 || *c.WallMS < 3*(*c.Turns[0].Metrics.TTFT)) {
			t.Errorf("%+v", c)
		}
	}
	for _, w := range r.Waves {
		if want := w.Scenario == "agentic" || w.Concurrency == 1; w.AllPassed != want || *w.TPS <= 0 || w.Generated == 0 {
			t.Errorf("%+v", w)
		}
	}
}

func checkTurn(t *testing.T, tag string, turn *ValidationTurn) {
	t.Helper()
	m := &turn.Metrics
	if turn.Exchange == "" || !m.UsagePresent || *m.Prompt != 100 || m.DecodeSource == "server" || m.Finish == nil {
		t.Errorf("%s: %+v", tag, m)
	}
}

func TestValidationReport(t *testing.T) {
	wrong := func(tag string, turn int) *pupilSays {
		switch tag {
		case "json-c4-r0-i1":
			return &pupilSays{content: "```json\n{\"name\":\"Mars\",\"moons\":2,\"habitable\":false}\n```"}
		case "json-c4-r0-i2":
			return &pupilSays{content: "no"}
		}
		return nil
	}
	v := reported(t, ValidateInference, pupil{wrong: wrong}, validation(scenario.SuiteValidation, "json", "agentic"))
	r := v.Report
	if !r.Complete || len(r.Cases) != 10 || r.Plan.Expected != 10 || r.WeightsID != "w1" {
		t.Errorf("complete %v, %d cases", r.Complete, len(r.Cases))
	}
	if passed, total := v.Counts(); passed != 8 || total != 10 {
		t.Errorf("%d of %d", passed, total)
	}
	s := r.Summary["json@c4"]
	if s.Passed != 2 || s.Total != 4 || s.LenientPassed != 3 || len(s.TTFTSamples) != 2 || *s.TTFT != s.TTFTSamples[0] {
		t.Errorf("summary %+v", s)
	}
	checkCases(t, &r)
	if err := v.Verdict(); !errors.Is(err, exchange.ErrGate) || !strings.Contains(err.Error(), "2 of 10 cases fail") {
		t.Errorf("%v", err)
	}
	cut := *v
	cut.Finish(errors.New("a signal"), time.Unix(60, 0))
	if err := cut.Verdict(); cut.Report.Complete || !errors.Is(err, exchange.ErrIncomplete) {
		t.Errorf("%v", err)
	}
}

func TestToolPolicyReport(t *testing.T) {
	v := reported(t, ValidateTools, pupil{}, validation(scenario.SuitePolicies))
	if err := v.Verdict(); err != nil {
		t.Fatal(err)
	}
	requests := 0
	for _, c := range v.Report.Cases {
		for i, turn := range c.Turns {
			requests++
			digest, err := canon.Digest(turn.Request)
			if err != nil || exchange.DigestPrefix+turn.RequestSum != digest || i == 0 && c.InputSum != turn.RequestSum {
				t.Errorf("%s: request_sha256 %s, want %s", c.Tag, turn.RequestSum, digest)
			}
			refusal := strings.HasPrefix(c.Scenario, "invalid_")
			if a := turn.Response; refusal != (a.Status == 400) || refusal != (a.Body != nil) || refusal == (a.Lines != nil) {
				t.Errorf("%s: %+v", c.Tag, a)
			} else if !refusal && a.Lines[len(a.Lines)-2] != "data: [DONE]" {
				t.Errorf("%s ends with %q", c.Tag, a.Lines)
			}
		}
		if *c.Thinking != strings.HasSuffix(c.Scenario, "_thinking") || (*c.WallSeconds <= 0) != strings.HasPrefix(c.Scenario, "invalid_") { // the clock stands still while a refusal is made
			t.Errorf("%+v", c)
		}
	}
	r := v.Report
	if requests != 35 || r.Plan.Requests != 35 || r.Plan.Expected != 30 || *r.Started >= *r.Finished || len(r.FixturesSum) != 64 {
		t.Errorf("%d requests, %+v", requests, r.Plan)
	}
}

// TestValidationIsRevalidated holds that the report of decodes is judged again from the file alone, and stays as it is.
func TestValidationIsRevalidated(t *testing.T) {
	v := reported(t, ValidateInference, pupil{}, validation(scenario.SuiteValidation, "decode", "decode_8k"))
	path := filepath.Join(t.TempDir(), "report.json")
	if err := v.Save(path); err != nil {
		t.Fatal(err)
	}
	if captured, err := IsCapturedReport(path); err != nil || !captured {
		t.Fatalf("not taken for a report: %v", err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := RevalidateCaptured(context.Background(), path, CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Passed != 10 || got.Failed != 0 || len(got.Waves) != 4 || !got.Waves[3].Eligible || got.Summary["decode@c4"].DecodeTPS == nil {
		t.Errorf("%+v", got)
	}
	for i, c := range got.Cases {
		if c.Status != exchange.VerdictOK || c.Tag != v.Report.Cases[i].Tag || string(c.Tokens) != "512" {
			t.Errorf("%+v", c)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the report was changed: %v", err)
	}
}

// TestValidationSave holds that nothing but the report is left, and that what cannot be written is told.
func TestValidationSave(t *testing.T) {
	v := &Validation{}
	path := filepath.Join(t.TempDir(), "report.json")
	for range 2 {
		if err := v.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%d files are left", len(files))
	}
	if err := v.Save(filepath.Join(path, "below")); err == nil || !strings.Contains(err.Error(), "save report below") {
		t.Errorf("saved below a file: %v", err)
	}
	taken := filepath.Join(t.TempDir(), "taken")
	if err := os.MkdirAll(filepath.Join(taken, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := v.Save(taken); err == nil {
		t.Error("a directory was replaced")
	}
	if files, err := os.ReadDir(filepath.Dir(taken)); err != nil || len(files) != 1 {
		t.Errorf("%d files are left", len(files))
	}
}

// again is a report that was written and read, with something changed.
func again(t *testing.T, raw []byte, change func(*ValidationReport)) *ValidationReport {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reference.json")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	r, sum, err := ReadValidation(path)
	if err != nil || len(sum) != 64 {
		t.Fatal(err)
	}
	change(r)
	return r
}

func number(v float64) *float64 { return &v }

// TestCompareValidations changes one thing after the other of a report, and holds what is said.
func TestCompareValidations(t *testing.T) {
	base := reported(t, ValidateInference, pupil{}, validation(scenario.SuiteValidation, "decode", "agentic")).Report
	raw, err := json.Marshal(&base)
	if err != nil {
		t.Fatal(err)
	}
	for why, change := range map[string]func(*ValidationReport){
		"run_complete is not true":           func(r *ValidationReport) { r.Complete = false },
		"has no cases":                       func(r *ValidationReport) { r.Cases = nil },
		"has 9 cases, and planned 10":        func(r *ValidationReport) { r.Cases = r.Cases[1:] },
		"weights_id differs":                 func(r *ValidationReport) { r.WeightsID = "w2" },
		"does not say which weights":         func(r *ValidationReport) { r.WeightsID = unspecified },
		"profile differs":                    func(r *ValidationReport) { r.Profile = "gpu" },
		"thinking differs":                   func(r *ValidationReport) { r.Thinking = true },
		"stream differs":                     func(r *ValidationReport) { r.Stream = false },
		"sampling differs":                   func(r *ValidationReport) { r.Sampling.Seed = 1 },
		"structured_tool_results differs":    func(r *ValidationReport) { r.Structured = true },
		"serial_tool_workflows differs":      func(r *ValidationReport) { r.Serial = true },
		"is not in the reference":            func(r *ValidationReport) { r.Cases[0].Tag = "x" },
		"is in the reference alone":          func(r *ValidationReport) { r.Cases[0].Concurrency = 9 },
		"one report have one tag":            func(r *ValidationReport) { r.Cases[2] = r.Cases[1] },
		"input_sha256 differs":               func(r *ValidationReport) { r.Cases[0].InputSum = "x" },
		"is fail: because":                   func(r *ValidationReport) { r.Cases[0].Status, r.Cases[0].Detail = "fail", "because" },
		"3 turns here and 2 in the":          func(r *ValidationReport) { r.Cases[9].Turns = r.Cases[9].Turns[:2] },
		"turn 3: prompt_tokens are 100 here": func(r *ValidationReport) { r.Cases[9].Turns[2].Metrics.Prompt = number(99) },
		"prompt_tokens are 100 here and not": func(r *ValidationReport) { r.Cases[0].Turns[0].Metrics.Prompt = nil },
		"decode_timing_source is":            func(r *ValidationReport) { r.Cases[0].Turns[0].Metrics.DecodeSource = "server" },
	} {
		c := CompareValidations(&base, again(t, raw, change), DefaultTolerance)
		if text := strings.Join(c.Errors, "\n"); !strings.Contains(text, why) || c.Passed || len(c.Ratios) > 0 {
			t.Errorf("want %q, got %q, %d ratios", why, text, len(c.Ratios))
		}
		if b, err := json.Marshal(CompareValidations(again(t, raw, change), &base, DefaultTolerance)); err != nil || strings.Contains(string(b), `"passed":true,"errors"`) {
			t.Errorf("%s: %s, %v", why, b, err)
		}
	}
}

// TestCompareValidationSpeeds holds the ratios, and what they amount to.
func TestCompareValidationSpeeds(t *testing.T) {
	base := reported(t, ValidateInference, pupil{}, validation(scenario.SuiteValidation, "decode", "agentic")).Report
	raw, err := json.Marshal(&base)
	if err != nil {
		t.Fatal(err)
	}
	names := func(c *Comparison) (out []string) {
		for _, r := range c.Ratios {
			out = append(out, fmt.Sprintf("%s %s %.3f %v", r.Summary, r.Metric, r.Ratio, r.Passed))
		}
		return out
	}
	same := CompareValidations(&base, again(t, raw, func(*ValidationReport) {}), DefaultTolerance)
	want := []string{"agentic@c1 wall 1.000 true", "agentic@c1 ttft 1.000 true", "agentic@c4 wall 1.000 true", "agentic@c4 ttft 1.000 true",
		"decode@c1 wall 1.000 true", "decode@c1 ttft 1.000 true", "decode@c1 decode 1.000 true", "decode@c4 wall 1.000 true", "decode@c4 ttft 1.000 true", "decode@c4 decode 1.000 true"}
	if diff := cmp.Diff(want, names(same)); diff != "" || !same.Passed {
		t.Errorf("the same run (-want +got)\n%s", diff)
	}
	faster := CompareValidations(&base, again(t, raw, func(r *ValidationReport) {
		for i := range r.Cases {
			m := &r.Cases[i].Turns[0].Metrics
			m.TTFT = number(*m.TTFT * 0.94)
			if m.DecodeTPS != nil {
				m.DecodeTPS = number(*m.DecodeTPS * 1.04)
			}
		}
	}), DefaultTolerance)
	if got := names(faster); faster.Passed || !slices.Contains(got, "decode@c1 ttft 0.940 false") || !slices.Contains(got, "decode@c4 decode 0.962 true") {
		t.Errorf("a faster reference: %q", got)
	}
	v := &Validation{Report: base}
	for _, c := range []struct {
		c    *Comparison
		kind error
	}{{same, nil}, {faster, exchange.ErrGate}, {&Comparison{Errors: []string{"x"}}, exchange.ErrMiss}} {
		v.Report.Comparison = c.c
		if err := v.Verdict(); !errors.Is(err, c.kind) {
			t.Errorf("%v, want %v", err, c.kind)
		}
	}
}

// TestReadValidation holds that reports of other tools are read whatever else they say, and that what is none is refused.
func TestReadValidation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	for text, ok := range map[string]bool{
		`{"format_version":1,"run_complete":true,"profile":null,"execution_plan":{"expected_cases":1},"summary":[1],"comparison":"none","waves":{},"warmup":true,` +
			`"cases":[{"scenario":"short","tag":"a","status":"ok","turns":[{"request":{},"metrics":{"prompt_tokens":7,"assistant_message":{"content":null}}}]}]}`: true,
		`{}`: false, `[]`: false, `{"cases":3}`: false, ``: false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, _, err := ReadValidation(path)
		if (err == nil) != ok || err != nil && !errors.Is(err, exchange.ErrMiss) {
			t.Errorf("%q: %v", text, err)
		}
		if ok && (len(r.Cases) != 1 || *r.Cases[0].Turns[0].Metrics.Prompt != 7) {
			t.Errorf("%+v", r)
		}
	}
	if _, _, err := ReadValidation(path + "x"); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("no file: %v", err)
	}
}
