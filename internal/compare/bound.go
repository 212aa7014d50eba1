package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Quantities beside the ratios that a bound may name.
const (
	boundIdentical = "identical"        // share of pairs with equal answers
	boundPrefix    = "prefix_agreement" // mean
	boundDifflib   = "difflib_ratio"    // mean
	boundFailed    = "failed"           // failures of the candidate
	boundNewFailed = "newly_failed"     // pairs that the reference answered every time and the candidate did not
	boundUnpaired  = "unpaired"         // requests that one side lacks
)

var otherBounds = []string{boundIdentical, boundPrefix, boundDifflib, boundFailed, boundNewFailed, boundUnpaired}

// Bound is what a result must not be: METRIC<NUMBER on the ratio candidate / reference, or METRIC=worse on the verdict.
type Bound struct {
	Text string
	name string
	op   string // < <= > >= or =
	at   float64
	word Verdict // of an = bound
}

var boundForm = regexp.MustCompile(`^\s*([a-z][a-z0-9_]*)\s*(?:(<=|>=|<|>)\s*([0-9]*\.?[0-9]+)\s*(%?)|(=)\s*([a-z]+))\s*$`)

// ParseBound reads a bound: a name, one of < <= > >= and a number or percentage, or a metric, = and a verdict. Names are
// those of the metrics, whose ratio candidate / reference is meant, and identical, prefix_agreement and difflib_ratio
// (means over the pairs), failed, newly_failed and unpaired (counts). The error wraps exchange.ErrUsage.
func ParseBound(text string) (Bound, error) {
	m := boundForm.FindStringSubmatch(text)
	if m == nil {
		return Bound{}, fmt.Errorf("%w: bound %q is not NAME<NUMBER (or <=, >, >=, a percentage) or METRIC=worse, such as decode_tps<0.95 or ttft_ms>110%%",
			exchange.ErrUsage, text)
	}
	b := Bound{Text: strings.TrimSpace(text), name: m[1], op: m[2] + m[5]}
	_, isMetric := metricNamed(b.name)
	if !isMetric && !slices.Contains(otherBounds, b.name) {
		return Bound{}, fmt.Errorf("%w: bound %q names nothing that is compared; there is %s, and %s", exchange.ErrUsage, text,
			strings.Join(MetricNames(), ", "), strings.Join(otherBounds, ", "))
	}
	if b.op == "=" {
		b.word = Verdict(m[6])
		if !isMetric || !slices.Contains([]Verdict{Better, Worse, Indistinguishable}, b.word) {
			return Bound{}, fmt.Errorf("%w: bound %q: only a metric has a verdict, which is worse, better or indistinguishable", exchange.ErrUsage, text)
		}
		return b, nil
	}
	at, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return Bound{}, fmt.Errorf("%w: bound %q: %q is no number", exchange.ErrUsage, text, m[3])
	}
	if b.at = at; m[4] == "%" {
		b.at = at / 100
	}
	return b, nil
}

// implied is the bound that stands beside those of the user: requests that fail leave the figures, so that an engine
// could meet every bound by failing where it is slow. A bound on failures of the user's own takes its place.
func implied(bounds []Bound) (b Bound, ok bool) {
	ofFailures := func(b Bound) bool { return b.name == boundFailed || b.name == boundNewFailed }
	if len(bounds) == 0 || slices.ContainsFunc(bounds, ofFailures) {
		return Bound{}, false
	}
	return Bound{Text: boundNewFailed + ">0", name: boundNewFailed, op: ">"}, true
}

// BoundResult is what became of a bound.
type BoundResult struct {
	Bound    string            `json:"bound"`
	Implied  bool              `json:"implied,omitempty"` // nobody stated it
	Violated bool              `json:"violated"`
	Value    *float64          `json:"value"`             // null when there is none, and then the bound says nothing
	Verdict  Verdict           `json:"verdict,omitempty"` // of a metric
	Reasons  []exchange.Reason `json:"reasons,omitempty"` // why there is no value
}

// judge holds a report to the bound.
func (b Bound) judge(r *Report) BoundResult {
	out := BoundResult{Bound: b.Text}
	if m, ok := r.Metric(b.name); ok {
		out.Value, out.Verdict = m.Ratio, m.Verdict
		if b.op == "=" && slices.Contains(m.Reasons, ReasonTooFew) { // whatever the engine did, the verdict would be this one
			out.Value = nil
		}
		if out.Value == nil {
			out.Reasons = m.Reasons
		}
	} else {
		out.Value = r.quantity(b.name)
		if out.Value == nil {
			out.Reasons = []exchange.Reason{ReasonNoPairs}
		}
	}
	if out.Value == nil {
		return out
	}
	v := *out.Value
	switch b.op {
	case "<":
		out.Violated = v < b.at
	case "<=":
		out.Violated = v <= b.at
	case ">":
		out.Violated = v > b.at
	case ">=":
		out.Violated = v >= b.at
	default:
		out.Violated = out.Verdict == b.word
	}
	return out
}

// quantity is what a bound names that is no ratio of a metric.
func (r *Report) quantity(name string) *float64 {
	count := func(n int) *float64 { v := float64(n); return &v }
	switch name {
	case boundIdentical:
		return r.Answers.Identical.Share
	case boundPrefix:
		return r.Answers.Prefix.Mean
	case boundDifflib:
		return r.Answers.Difflib.Mean
	case boundFailed:
		return count(r.Candidate.Failed)
	case boundNewFailed:
		return count(r.Pairing.NewlyFailed)
	}
	return count(r.Pairing.Unpaired[0] + r.Pairing.Unpaired[1])
}
