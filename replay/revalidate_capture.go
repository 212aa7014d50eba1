package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// A captured report is what TensorSharp's validation writes: the answers of a run with what was measured of them. It is
// judged by the rules of that tool's own revalidation, and the document that comes of it has the same keys.

// ModeCaptured is the mode of that document.
const ModeCaptured = "captured_response_revalidation"

// capturedScenarios are the scenarios of which a captured report holds all that their gate looks at.
var capturedScenarios = []string{"decode", "decode_8k"}

// capturedReport is a captured report, as far as it is looked at.
type capturedReport struct {
	RunComplete   *bool           `json:"run_complete"`
	Harness       json.RawMessage `json:"harness_sha256"`
	ExecutionPlan struct {
		Expected plainNumber `json:"expected_cases"`
	} `json:"execution_plan"`
	Cases []capturedCase `json:"cases"`
	Waves []capturedWave `json:"waves"`
}

type capturedCase struct {
	Scenario    string         `json:"scenario"`
	Tag         string         `json:"tag"`
	Concurrency plainNumber    `json:"concurrency"`
	Repeat      plainNumber    `json:"repeat"`
	Status      string         `json:"status"`
	Detail      string         `json:"detail"`
	WallMS      *float64       `json:"total_wall_ms"`
	Turns       []capturedTurn `json:"turns"`
}

type capturedTurn struct {
	Request json.RawMessage `json:"request"`
	Metrics json.RawMessage `json:"metrics"`
}

// capturedMetrics are the fields of a turn's metrics that the gate and the summary look at.
type capturedMetrics struct {
	UsagePresent bool            `json:"usage_present"`
	Tokens       json.RawMessage `json:"completion_tokens"`
	Finish       *string         `json:"finish_reason"`
	DecodeTPS    *float64        `json:"decode_tps"`
	TTFT         *float64        `json:"ttft_ms"`
	PrefillTPS   *float64        `json:"prefill_tps"`
	Message      struct {
		Content *string `json:"content"`
	} `json:"assistant_message"`
}

type capturedWave struct {
	Scenario    string      `json:"scenario"`
	Concurrency plainNumber `json:"concurrency"`
	Repeat      plainNumber `json:"repeat"`
	AllPassed   bool        `json:"all_passed"`
	TPS         *float64    `json:"end_to_end_tokens_per_second"`
	Generated   json.Number `json:"generated_tokens"`
	WallMS      *float64    `json:"wall_ms"`
}

// Captured is what the revalidation of a captured report came to.
type Captured struct {
	Mode         string            `json:"mode"`
	NewRun       bool              `json:"new_inference_run"` // always false
	Created      float64           `json:"created_at_unix"`
	Source       string            `json:"source_report"`
	SourceSum    string            `json:"source_report_sha256"`
	InferenceSum json.RawMessage   `json:"inference_harness_sha256"`  // as the report states it
	HarnessSum   map[string]string `json:"validation_harness_sha256"` // of the gates that judged: id and version -> digest of the rule as told
	ToolSum      string            `json:"revalidation_tool_sha256"`
	Harness      string            `json:"harness"` // version of benchproxy
	Limits       []string          `json:"limits"`
	Complete     bool              `json:"complete"`
	Recorded     int               `json:"recorded_cases"`
	Passed       int               `json:"passed"`
	Failed       int               `json:"failed"`
	Cases        []CapturedCase    `json:"cases"`
	Waves        []CapturedWave    `json:"waves"`
	// Summary is what the eligible waves come to, by scenario@cN.
	Summary map[string]CapturedSummary `json:"comparable_timing_summary"`
}

// CapturedCase is one case, judged again.
type CapturedCase struct {
	Tag         string                 `json:"tag"`
	Scenario    string                 `json:"scenario"`
	Concurrency int64                  `json:"concurrency"`
	Repeat      int64                  `json:"repeat"`
	Original    string                 `json:"original_status"`
	Status      exchange.VerdictStatus `json:"status"`
	Detail      string                 `json:"detail"`
	RequestSum  string                 `json:"request_sha256"`
	MetricsSum  string                 `json:"metrics_sha256"`
	Tokens      json.RawMessage        `json:"completion_tokens"`
	Finish      *string                `json:"finish_reason"`
}

// CapturedWave is one wave, judged again.
type CapturedWave struct {
	Scenario    string       `json:"scenario"`
	Concurrency int64        `json:"concurrency"`
	Repeat      int64        `json:"repeat"`
	Generated   *json.Number `json:"generated_tokens"`
	WallMS      *float64     `json:"wall_ms"`
	TPS         *float64     `json:"end_to_end_tokens_per_second"`
	Original    bool         `json:"original_all_passed"`
	AllPassed   bool         `json:"all_passed"`
	Eligible    bool         `json:"eligible_for_comparable_throughput"`
}

// CapturedSummary is what the eligible waves of one scenario and concurrency come to: medians over their cases, and the
// samples behind them. A median without a sample is null.
type CapturedSummary struct {
	Passed     int      `json:"passed"`
	Total      int      `json:"total"`
	Waves      int      `json:"complete_passing_waves"`
	Aggregate  *float64 `json:"aggregate_end_to_end_tps_median"`
	DecodeTPS  *float64 `json:"decode_tps_median"`
	TTFT       *float64 `json:"ttft_ms_median"`
	PrefillTPS *float64 `json:"prefill_tps_median"`
	WallMS     *float64 `json:"conversation_wall_ms_median"`

	DecodeSamples  []float64 `json:"decode_tps_samples"`
	TTFTSamples    []float64 `json:"ttft_ms_samples"`
	PrefillSamples []float64 `json:"prefill_tps_samples"`
}

// Verdict is what it amounts to for a script: nil, or an error that wraps exchange.ErrGate.
func (c *Captured) Verdict() error {
	if c.Failed == 0 {
		return nil
	}
	return &exchange.Error{Op: "revalidate report", Object: c.Source, Cause: exchange.ErrGate, Hint: fmt.Sprintf("%d of %d cases fail", c.Failed, c.Recorded)}
}

// capturedKey names a wave.
type capturedKey struct {
	scenario            string
	concurrency, repeat int64
}

// plainNumber is a value as it stands in a document. A text that holds a number is none.
type plainNumber string

// UnmarshalJSON takes numbers and texts; who reads one as a number finds out which it is.
func (n *plainNumber) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && bytes.IndexByte([]byte("[{tf"), b[0]) >= 0 {
		return fmt.Errorf("%s is no number", shown(string(b)))
	}
	*n = plainNumber(b)
	return nil
}

// wholeNumber reads a number that is written as an integer.
func wholeNumber(n plainNumber) (int64, bool) {
	v, err := strconv.ParseInt(string(n), 10, 64)
	return v, err == nil
}

// check refuses a report that is no whole evidence. Nothing is judged then.
func (r *capturedReport) check() error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", exchange.ErrMiss, fmt.Sprintf(format, args...))
	}
	if r.RunComplete == nil || !*r.RunComplete {
		return fmt.Errorf("%w: run_complete is not true", exchange.ErrIncomplete)
	}
	expected, whole := wholeNumber(r.ExecutionPlan.Expected)
	switch {
	case len(r.Cases) == 0:
		return refuse("it has no cases")
	case !whole || expected != int64(len(r.Cases)):
		return refuse("execution_plan.expected_cases is %q, and there are %d cases", r.ExecutionPlan.Expected, len(r.Cases))
	}
	tags := map[string]bool{}
	members := map[capturedKey]int64{}
	for i := range r.Cases {
		c := &r.Cases[i]
		key, ok := c.key()
		switch {
		case c.Tag == "":
			return refuse("case %d has no tag", i+1)
		case tags[c.Tag]:
			return refuse("two cases have the tag %s", shown(c.Tag))
		case !slices.Contains(capturedScenarios, c.Scenario):
			return refuse("case %s is of scenario %s; the captured answers of %v can be judged", shown(c.Tag), shown(c.Scenario), capturedScenarios)
		case !ok:
			return refuse("case %s: concurrency and repeat are no whole numbers", shown(c.Tag))
		}
		tags[c.Tag] = true
		members[key]++
	}
	return r.checkWaves(members, refuse)
}

// checkWaves holds that waves and cases tell of the same.
func (r *capturedReport) checkWaves(members map[capturedKey]int64, refuse func(string, ...any) error) error {
	seen := map[capturedKey]bool{}
	for _, w := range r.Waves {
		key, ok := w.key()
		switch n := members[key]; {
		case !ok:
			return refuse("a wave of %s: concurrency and repeat are no whole numbers", shown(w.Scenario))
		case seen[key]:
			return refuse("the wave %s is listed twice", key)
		case n == 0:
			return refuse("the wave %s has no case", key)
		case n != key.concurrency:
			return refuse("the wave %s has %d cases", key, n)
		}
		seen[key] = true
	}
	for i := range r.Cases {
		if key, _ := r.Cases[i].key(); !seen[key] {
			return refuse("case %s is of no wave", shown(r.Cases[i].Tag))
		}
	}
	return nil
}

func (c *capturedCase) key() (capturedKey, bool) { return keyOf(c.Scenario, c.Concurrency, c.Repeat) }
func (w *capturedWave) key() (capturedKey, bool) { return keyOf(w.Scenario, w.Concurrency, w.Repeat) }

func keyOf(scenario string, concurrency, repeat plainNumber) (capturedKey, bool) {
	c, okC := wholeNumber(concurrency)
	r, okR := wholeNumber(repeat)
	return capturedKey{scenario, c, r}, okC && okR && c > 0 && r >= 0
}

// String is scenario-cN-rN, as tags begin.
func (k capturedKey) String() string {
	return fmt.Sprintf("%s-c%d-r%d", k.scenario, k.concurrency, k.repeat)
}
