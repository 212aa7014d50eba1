package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// captureVectors are the acceptance cases of offline revalidation.
type captureVectors struct {
	ID, Title, Area, Seed, Confidence, Notes string

	Input struct {
		Texts    map[string]string
		Captures []struct {
			Name   string
			Report json.RawMessage
		}
		Refused []string `json:"must_be_refused"`
	}
	Expected struct {
		Captures []struct {
			Name          string
			Passed        int
			Failed        int
			ExitCode      int                           `json:"exit_code"`
			FailedTags    []string                      `json:"failed_tags"`
			WavesEligible []bool                        `json:"waves_eligible"`
			Summary       map[string]map[string]float64 `json:"summary"`
			NewInference  bool                          `json:"new_inference_run"`
			Unchanged     bool                          `json:"source_unchanged"`
		}
		Refused string `json:"must_be_refused"`
	}
	Tolerance map[string]float64
}

func loadCaptureVectors(t *testing.T) *captureVectors {
	t.Helper()
	raw, err := os.ReadFile("testdata/revalidation-semantics.json")
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Format int
		Cases  []captureVectors
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&index); err != nil {
		t.Fatal(err)
	}
	if len(index.Cases) != 1 || len(index.Cases[0].Input.Captures) == 0 || len(index.Cases[0].Input.Refused) == 0 {
		t.Fatal("there are no vectors")
	}
	return &index.Cases[0]
}

// report is a captured report of the vectors as a file, with its texts put in, changed by the given steps.
func (v *captureVectors) report(t *testing.T, n int, change ...func(report map[string]any)) string {
	t.Helper()
	text := string(v.Input.Captures[n].Report)
	for name, content := range v.Input.Texts {
		text = strings.ReplaceAll(text, jsonText(name), jsonText(content))
	}
	var report map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&report); err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(report)
	}
	b, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "report.json", string(b))
}

func TestCapturedReportVectors(t *testing.T) {
	v := loadCaptureVectors(t)
	for i, want := range v.Expected.Captures {
		path := v.report(t, i)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := RevalidateCaptured(context.Background(), path, CaptureOptions{Harness: "test", ToolSum: "00", Now: time.Unix(1_790_000_000, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if got.Passed != want.Passed || got.Failed != want.Failed || got.NewRun != want.NewInference || got.Recorded != want.Passed+want.Failed {
			t.Errorf("%s: passed %d, failed %d of %d", want.Name, got.Passed, got.Failed, got.Recorded)
		}
		if failed := errors.Is(got.Verdict(), exchange.ErrGate); failed != (want.ExitCode != 0) {
			t.Errorf("%s: verdict %v", want.Name, got.Verdict())
		}
		var tags []string
		for _, c := range got.Cases {
			if c.Status != exchange.VerdictOK {
				tags = append(tags, c.Tag)
			}
		}
		var eligible []bool
		for _, w := range got.Waves {
			eligible = append(eligible, w.Eligible)
		}
		if diff := cmp.Diff(want.FailedTags, tags) + cmp.Diff(want.WavesEligible, eligible); diff != "" {
			t.Errorf("%s: -want +got\n%s", want.Name, diff)
		}
		v.compareSummary(t, want.Summary, got.Summary)
		after, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the source was changed: %v", want.Name, err)
		}
	}
}

func (v *captureVectors) compareSummary(t *testing.T, want map[string]map[string]float64, got map[string]CapturedSummary) {
	t.Helper()
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var flat map[string]map[string]any
	if err := json.Unmarshal(b, &flat); err != nil {
		t.Fatal(err)
	}
	if len(flat) != len(want) {
		t.Errorf("summaries %v, want %v", flat, want)
	}
	for name, fields := range want {
		for field, value := range fields {
			if f, ok := flat[name][field].(float64); !ok || math.Abs(f-value) > v.Tolerance["medians"] {
				t.Errorf("%s %s is %v, want %v", name, field, flat[name][field], value)
			}
		}
	}
}

func caseOf(report map[string]any, n int) map[string]any {
	return report["cases"].([]any)[n].(map[string]any)
}
func turnOf(report map[string]any, n int, part string) map[string]any {
	return caseOf(report, n)["turns"].([]any)[0].(map[string]any)[part].(map[string]any)
}

// TestCapturedReportRefusals holds what is refused before anything is judged.
func TestCapturedReportRefusals(t *testing.T) {
	v := loadCaptureVectors(t)
	waves := func(r map[string]any) []any { return r["waves"].([]any) }
	changes := map[string]func(r map[string]any){
		"run_complete is false":                    func(r map[string]any) { r["run_complete"] = false },
		"two cases share a tag":                    func(r map[string]any) { caseOf(r, 1)["tag"] = caseOf(r, 0)["tag"] },
		"a wave is listed twice":                   func(r map[string]any) { r["waves"] = append(waves(r), waves(r)[0]) },
		"a scenario other than decode / decode_8k": func(r map[string]any) { caseOf(r, 0)["scenario"] = "json" },
	}
	for _, name := range v.Input.Refused {
		if _, known := changes[name]; !known && name != "output path equals input path" { // the command line's
			t.Errorf("nothing holds %q", name)
		}
	}
	more := map[string]func(r map[string]any){
		"run_complete is no bool":  func(r map[string]any) { r["run_complete"] = "true" },
		"run_complete is missing":  func(r map[string]any) { delete(r, "run_complete") },
		"no cases":                 func(r map[string]any) { r["cases"] = []any{} },
		"fewer cases than planned": func(r map[string]any) { r["execution_plan"].(map[string]any)["expected_cases"] = 5 },
		"expected cases is a text": func(r map[string]any) {
			r["execution_plan"].(map[string]any)["expected_cases"] = "4"
		},
		"concurrency is a text": func(r map[string]any) {
			r["cases"].([]any)[0].(map[string]any)["concurrency"] = "1"
		},
		"expected cases is no int":   func(r map[string]any) { r["execution_plan"].(map[string]any)["expected_cases"] = json.Number("4.0") },
		"no plan":                    func(r map[string]any) { delete(r, "execution_plan") },
		"an empty tag":               func(r map[string]any) { caseOf(r, 1)["tag"] = "" },
		"a repeat that is no number": func(r map[string]any) { caseOf(r, 1)["repeat"] = json.Number("0.5") },
		"a wave without cases":       func(r map[string]any) { waves(r)[0].(map[string]any)["repeat"] = 9 },
		"a wave of other size":       func(r map[string]any) { caseOf(r, 1)["repeat"] = 1 },
		"a case without a wave":      func(r map[string]any) { r["waves"] = waves(r)[:1] },
		"no JSON":                    nil,
	}
	for _, set := range []map[string]func(map[string]any){changes, more} {
		for name, change := range set {
			path := write(t, "report.json", `{"run_complete":true,`)
			if change != nil {
				path = v.report(t, 0, change)
			}
			got, err := RevalidateCaptured(context.Background(), path, CaptureOptions{})
			kind := exchange.ErrMiss
			if name == "run_complete is false" || name == "run_complete is missing" {
				kind = exchange.ErrIncomplete
			}
			if got != nil || !errors.Is(err, kind) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	}
	if _, err := RevalidateCaptured(context.Background(), filepath.Join(t.TempDir(), "absent"), CaptureOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := RevalidateCaptured(ctx, v.report(t, 0), CaptureOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestCapturedCasesFail holds what fails a single case, and its wave with it.
func TestCapturedCasesFail(t *testing.T) {
	v := loadCaptureVectors(t)
	for name, c := range map[string]struct {
		change func(r map[string]any)
		says   string
	}{
		"two turns": {func(r map[string]any) {
			c := caseOf(r, 0)
			c["turns"] = append(c["turns"].([]any), c["turns"].([]any)[0])
		}, "2 turns"},
		"no usage":         {func(r map[string]any) { turnOf(r, 0, "metrics")["usage_present"] = false }, "usage"},
		"no budget":        {func(r map[string]any) { delete(turnOf(r, 0, "request"), "max_tokens") }, "budget"},
		"budget is no int": {func(r map[string]any) { turnOf(r, 0, "request")["max_tokens"] = json.Number("512.0") }, "budget"},
		"count is no int":  {func(r map[string]any) { turnOf(r, 0, "metrics")["completion_tokens"] = json.Number("512.0") }, "no integer"},
		"count is a bool":  {func(r map[string]any) { turnOf(r, 0, "metrics")["completion_tokens"] = true }, "no completion tokens"},
		"short":            {func(r map[string]any) { turnOf(r, 0, "metrics")["completion_tokens"] = 511 }, "511 of 512"},
		"another word":     {func(r map[string]any) { turnOf(r, 0, "metrics")["finish_reason"] = "max_tokens" }, "neither length nor stop"},
		"a budget as text": {func(r map[string]any) {
			turnOf(r, 0, "request")["max_tokens"] = "512"
		}, "no whole number from 1"},
		"other finish":      {func(r map[string]any) { turnOf(r, 0, "metrics")["finish_reason"] = "tool_calls" }, "neither length nor stop"},
		"no content":        {func(r map[string]any) { turnOf(r, 0, "metrics")["assistant_message"] = map[string]any{"content": nil} }, "too short"},
		"metrics of a list": {func(r map[string]any) { turnOf(r, 0, "metrics")["usage_present"] = 3 }, "metrics cannot be read"},
		"request of a list": {func(r map[string]any) { turnOf(r, 0, "request")["max_tokens"] = []any{} }, "request cannot be read"},
		"it failed before":  {func(r map[string]any) { caseOf(r, 0)["status"], caseOf(r, 0)["detail"] = "fail", "boom" }, "original failed case remains failed: boom"},
		"gate errors first": {func(r map[string]any) {
			caseOf(r, 0)["status"] = "fail"
			turnOf(r, 0, "metrics")["usage_present"] = false
		}, "usage"},
	} {
		got, err := RevalidateCaptured(context.Background(), v.report(t, 0, c.change), CaptureOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Failed != 2 || got.Cases[0].Status != exchange.VerdictFail || !strings.Contains(got.Cases[0].Detail, c.says) {
			t.Errorf("%s: %d failed, %s: %s", name, got.Failed, got.Cases[0].Status, got.Cases[0].Detail)
		}
		if s := got.Summary["decode@c2"]; got.Waves[0].Eligible || s.Waves != 0 || s.Aggregate != nil {
			t.Errorf("%s: its wave counts: %+v", name, s)
		}
	}
	waved, err := RevalidateCaptured(context.Background(), v.report(t, 0, func(r map[string]any) {
		r["waves"].([]any)[0].(map[string]any)["all_passed"] = false
	}), CaptureOptions{})
	if err != nil || waved.Waves[0].Eligible || !waved.Waves[0].AllPassed {
		t.Errorf("a wave that failed before: %+v, %v", waved, err)
	}
}

func TestIsCapturedReport(t *testing.T) {
	v := loadCaptureVectors(t)
	for text, want := range map[string]bool{
		`{"format_version":1,"engine":"x","harness_sha256":{}}`: true, `{"schema":"benchproxy.workload/1"}` + "\n{}": false,
		`[1]`: false, ``: false, `{"log":{}}`: false, `{"a":`: false, `{"a":1}`: false,
	} {
		if got, err := IsCapturedReport(write(t, "f", text)); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	if got, err := IsCapturedReport(v.report(t, 0)); err != nil || !got {
		t.Errorf("the vector: %v, %v", got, err)
	}
}
