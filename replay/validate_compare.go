package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// DefaultTolerance is by how much a validation may be slower than its reference.
const DefaultTolerance = 0.05

// Comparison is what a validation came to beside the report of another engine or build. Without a reason against it there
// are ratios, and without ratios there is no statement about speed.
type Comparison struct {
	Reference    string            `json:"reference"`
	ReferenceSum string            `json:"reference_sha256"`
	Tolerance    float64           `json:"tolerance"`
	Errors       []string          `json:"errors"` // why the two cannot be compared; empty when they can
	Ratios       []ValidationRatio `json:"ratios"`
	Passed       bool              `json:"passed"`
}

// ValidationRatio is one ratio of medians, above 1 where this run is the faster one.
type ValidationRatio struct {
	Summary   string  `json:"summary"` // scenario@cN
	Metric    string  `json:"metric"`  // wall, ttft or decode
	Reference float64 `json:"reference"`
	Current   float64 `json:"current"`
	Ratio     float64 `json:"ratio"`
	Passed    bool    `json:"passed"` // not below 1 - tolerance
}

// ReadValidation reads a validation report, ours or that of another tool, with the hex SHA-256 of its bytes. Keys that we
// do not know are passed over. The error wraps exchange.ErrMiss.
func ReadValidation(path string) (r *ValidationReport, sum string, err error) {
	fail := func(err error) error {
		return &exchange.Error{Op: "read reference report", Object: filepath.Base(path), Side: exchange.SideClient, Cause: fmt.Errorf("%w: %w", exchange.ErrMiss, err),
			Hint: "it is what validate writes with --output"}
	}
	raw, err := readBounded(path)
	if err != nil {
		return nil, "", fail(err)
	}
	var doc struct {
		ValidationReport
		Sampling json.RawMessage `json:"sampling"`
		// What is not looked at may be of another form in reports of others.
		Harness    json.RawMessage `json:"harness_sha256"`
		Waves      json.RawMessage `json:"waves"`
		NotCovered json.RawMessage `json:"not_covered"`
		Warmup     json.RawMessage `json:"warmup"`
		Summary    json.RawMessage `json:"summary"`
		Comparison json.RawMessage `json:"comparison"`
		Fixtures   json.RawMessage `json:"fixtures"`
		Scope      json.RawMessage `json:"scope"`
		Instrument json.RawMessage `json:"benchproxy"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, "", fail(err)
	}
	r = &doc.ValidationReport
	r.sampled = doc.Sampling
	_ = json.Unmarshal(doc.Sampling, &r.Sampling) // what is of another form differs as it stands
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, "", fail(err)
	}
	for _, key := range []string{"thinking", "stream", "sampling", "structured_tool_results", "serial_tool_workflows"} {
		if v, there := keys[key]; !there || string(v) == "null" {
			r.unsaid = append(r.unsaid, key)
		}
	}
	if r.Plan.Expected == 0 && len(r.Cases) == 0 {
		return nil, "", fail(fmt.Errorf("it is no validation report"))
	}
	return r, hexSum(raw), nil
}

// maxComparisonErrors bounds the reasons that are told.
const maxComparisonErrors = 50

// CompareValidations holds a report against that of a reference. Both must be whole, of the same questions under the same
// conditions, and passed; else it says why there are no ratios.
func CompareValidations(current, reference *ValidationReport, tolerance float64) *Comparison {
	c := &Comparison{Tolerance: tolerance, Errors: []string{}, Ratios: []ValidationRatio{}}
	c.wholeness("this run", current)
	c.wholeness("the reference", reference)
	c.conditions(current, reference)
	c.cases(current, reference)
	if len(c.Errors) > maxComparisonErrors {
		more := len(c.Errors) - maxComparisonErrors
		c.Errors = append(c.Errors[:maxComparisonErrors:maxComparisonErrors], fmt.Sprintf("and %d more", more))
	}
	if len(c.Errors) > 0 {
		return c
	}
	c.Passed = true
	mine, theirs := summaries(current), summaries(reference)
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		c.ratios(name, mine[name], theirs[name])
	}
	return c
}

func (c *Comparison) errorf(format string, args ...any) {
	c.Errors = append(c.Errors, fmt.Sprintf(format, args...))
}

func (c *Comparison) wholeness(who string, r *ValidationReport) {
	switch {
	case !r.Complete:
		c.errorf("%s is incomplete: run_complete is not true", who)
	case len(r.Cases) == 0:
		c.errorf("%s has no cases", who)
	case len(r.Cases) != r.Plan.Expected:
		c.errorf("%s has %d cases, and planned %d", who, len(r.Cases), r.Plan.Expected)
	}
	if r.WeightsID == "" || r.WeightsID == unspecified {
		c.errorf("%s does not say which weights answered: --weights-id", who)
	}
	for i := range r.Cases {
		if k := &r.Cases[i]; !k.passed() {
			c.errorf("%s: case %s is %s: %s", who, shown(k.Tag), k.Status, k.Detail)
		}
	}
}

// conditions are what must be the same on both sides.
func (c *Comparison) conditions(current, reference *ValidationReport) {
	if len(reference.unsaid) > 0 {
		c.errorf("the reference does not say %s", strings.Join(reference.unsaid, ", "))
	}
	if a, b := current.sampling(), reference.sampling(); a != b || current.Sampling != reference.Sampling {
		c.errorf("sampling differs: %s here, %s in the reference", a, b)
	}
	for _, f := range []struct {
		name string
		a, b any
	}{
		{"weights_id", current.WeightsID, reference.WeightsID}, {"profile", current.Profile, reference.Profile},
		{"thinking", current.Thinking, reference.Thinking}, {"stream", current.Stream, reference.Stream},
		{"structured_tool_results", current.Structured, reference.Structured},
		{"serial_tool_workflows", current.Serial, reference.Serial},
	} {
		if f.a != f.b {
			c.errorf("%s differs: %v here, %v in the reference", f.name, f.a, f.b)
		}
	}
}

// sampling is that of a report as canonical JSON: whatever else it states counts, too.
func (r *ValidationReport) sampling() string {
	raw := r.sampled
	if raw == nil {
		raw, _ = json.Marshal(r.Sampling) // numbers
	}
	b, err := canon.JSON(raw)
	if err != nil {
		return string(raw)
	}
	return string(b)
}

// caseKey is what cases of two reports belong together by.
type caseKey struct {
	scenario, tag string
	concurrency   int
}

func casesByKey(r *ValidationReport) map[caseKey]*ValidationCase {
	out := map[caseKey]*ValidationCase{}
	for i := range r.Cases {
		k := &r.Cases[i]
		out[caseKey{k.Scenario, k.Tag, k.Concurrency}] = k
	}
	return out
}

// cases holds that both sides asked the same.
func (c *Comparison) cases(current, reference *ValidationReport) {
	theirs := casesByKey(reference)
	mine := casesByKey(current)
	if len(mine) != len(current.Cases) || len(theirs) != len(reference.Cases) {
		c.errorf("two cases of one report have one tag")
	}
	for i := range reference.Cases {
		k := &reference.Cases[i]
		if mine[caseKey{k.Scenario, k.Tag, k.Concurrency}] == nil {
			c.errorf("case %s is in the reference alone", shown(k.Tag))
		}
	}
	for i := range current.Cases {
		a := &current.Cases[i]
		b := theirs[caseKey{a.Scenario, a.Tag, a.Concurrency}]
		switch {
		case b == nil:
			c.errorf("case %s is not in the reference", shown(a.Tag))
		case a.InputSum != b.InputSum:
			c.errorf("case %s asks something else: input_sha256 differs", shown(a.Tag))
		case len(a.Turns) != len(b.Turns):
			c.errorf("case %s has %d turns here and %d in the reference", shown(a.Tag), len(a.Turns), len(b.Turns))
		default:
			c.turns(a, b)
		}
	}
}

// turns holds that the prompts had the same tokens, and that rates were made by the same formula.
func (c *Comparison) turns(a, b *ValidationCase) {
	for i := range a.Turns {
		m, o := &a.Turns[i].Metrics, &b.Turns[i].Metrics
		switch {
		case !equalFigure(m.Prompt, o.Prompt):
			c.errorf("case %s, turn %d: prompt_tokens are %s here and %s in the reference", shown(a.Tag), i+1, figure(m.Prompt), figure(o.Prompt))
		case m.DecodeSource != o.DecodeSource:
			c.errorf("case %s, turn %d: decode_timing_source is %q here and %q in the reference", shown(a.Tag), i+1, m.DecodeSource, o.DecodeSource)
		}
	}
}

func equalFigure(a, b *float64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func figure(v *float64) string {
	if v == nil {
		return "not known"
	}
	b, _ := json.Marshal(*v) // a number that was read as JSON
	return string(b)
}

// summaries are those of a report by its cases: what a file states of them is not trusted.
func summaries(r *ValidationReport) map[string]*ValidationSummary {
	v := Validation{Report: ValidationReport{Summary: map[string]*ValidationSummary{}}}
	for i := range r.Cases {
		if len(r.Cases[i].Turns) > 0 {
			v.summarize(&r.Cases[i])
		}
	}
	return v.Report.Summary
}

// ratios are those of one scenario at one concurrency.
func (c *Comparison) ratios(name string, mine, theirs *ValidationSummary) {
	if theirs == nil {
		return // it has no turns there, which was told
	}
	add := func(metric string, current, reference *float64, ratio func(cur, ref float64) float64) {
		if current == nil || reference == nil || *current <= 0 || *reference <= 0 {
			return
		}
		r := ValidationRatio{Summary: name, Metric: metric, Reference: *reference, Current: *current, Ratio: ratio(*current, *reference)}
		r.Passed = r.Ratio >= 1-c.Tolerance
		c.Passed = c.Passed && r.Passed
		c.Ratios = append(c.Ratios, r)
	}
	shorter := func(cur, ref float64) float64 { return ref / cur }
	add("wall", mine.WallMS, theirs.WallMS, shorter)
	add("ttft", mine.TTFT, theirs.TTFT, shorter)
	if strings.HasPrefix(name, "decode") { // other answers are too short for a rate
		add("decode", mine.DecodeTPS, theirs.DecodeTPS, func(cur, ref float64) float64 { return cur / ref })
	}
}

// Verdict is what a validation amounts to for a script: nil, or an error that wraps exchange.ErrIncomplete for a run that
// did not come to its end, exchange.ErrGate for a failed case or a regression, exchange.ErrMiss for a reference that it
// could not be held against.
func (v *Validation) Verdict() error {
	told := func(kind error, format string, args ...any) error {
		return &exchange.Error{Op: "validate engine", Object: v.Report.URL, Cause: kind, Hint: fmt.Sprintf(format, args...)}
	}
	passed, total := v.Counts()
	lacking := v.Unsupported()
	c := v.Report.Comparison
	switch {
	case !v.Report.Complete:
		return told(exchange.ErrIncomplete, "%d of %d cases did not end", v.Report.Plan.Expected-total, v.Report.Plan.Expected)
	case passed+lacking < total:
		return told(exchange.ErrGate, "%d of %d cases fail", total-passed-lacking, total)
	case passed == 0:
		return told(exchange.ErrMiss, "nothing could be judged: the engine lacks what is asked for")
	case c != nil && len(c.Errors) > 0:
		return told(exchange.ErrMiss, "it cannot be held against the reference: %s", strings.Join(c.Errors[:min(3, len(c.Errors))], "; "))
	case c != nil && !c.Passed:
		return told(exchange.ErrGate, "it is slower than the reference by more than %.0f %%", 100*c.Tolerance)
	}
	return nil
}
