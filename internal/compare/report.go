package compare

import (
	"context"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Schema is the version of the report's JSON form.
const Schema = 1

// DefaultMargin is the relative difference below which two runs are not called different: speeds of one engine differ by
// as much from run to run.
const DefaultMargin = 0.02

// Options of a comparison.
type Options struct {
	Margin     float64           // see DefaultMargin; 0 = none
	Accept     []exchange.Reason // differences that the caller knows of and compares across; see Acceptable
	Objectives []Objective       // what a request must meet to count for goodput
	Bounds     []Bound           // what the result must not be
}

// Report is a comparison for people and scripts.
type Report struct {
	Schema      int               `json:"schema"`
	Rules       int               `json:"rules"` // version of internal/measure, by which both sides were derived
	Reference   RunView           `json:"reference"`
	Candidate   RunView           `json:"candidate"`
	Pairing     PairingView       `json:"pairing"`
	Margin      float64           `json:"margin"`
	Accepted    []exchange.Reason `json:"accepted,omitempty"`
	Objectives  []Objective       `json:"objectives,omitempty"`
	Refused     []exchange.Reason `json:"refused,omitempty"` // why nothing is compared
	Checks      []Check           `json:"checks"`
	Deployments Deployments       `json:"deployments"`
	Fields      []RequestField    `json:"request_fields"` // in which requests of a pair differ
	Metrics     []Metric          `json:"metrics"`
	Parts       []Part            `json:"parts,omitempty"` // by model and scenario; none where all requests are of one kind
	Waves       []WavePart        `json:"waves,omitempty"` // of requests that ran together
	Answers     *Agreement        `json:"answers"`
	Failures    []Failure         `json:"failures"` // the first 200; each run has its count
	Partials    []Partial         `json:"partial_conversations"`
	Bounds      []BoundResult     `json:"bounds,omitempty"`
}

// RunView is one run in a report.
type RunView struct {
	ID       exchange.ID       `json:"id"`
	Name     string            `json:"name,omitempty"`
	Mode     string            `json:"mode"`
	State    exchange.RunState `json:"state"`
	Upstream string            `json:"upstream,omitempty"`
	Engine   exchange.Identity `json:"engine"`
	Harness  string            `json:"harness"`
	Failed   int               `json:"failed"`  // measured exchanges that did not end complete
	Retries  int               `json:"retries"` // attempts that a later one replaced
	Load     Load              `json:"load"`
}

// PairingView is what belongs together.
type PairingView struct {
	By    string `json:"by"` // origin or key
	Pairs int    `json:"pairs"`
	// NewlyFailed are the pairs that the reference answered in full every time and the candidate did not.
	NewlyFailed int              `json:"newly_failed"`
	Unpaired    [2]int           `json:"unpaired"`     // of the reference, of the candidate
	IDs         [2][]exchange.ID `json:"unpaired_ids"` // the first 200
}

// RequestField is a field in which requests that belong together differ.
type RequestField struct {
	Field     string `json:"field"`
	Pairs     int    `json:"pairs"`
	Reference string `json:"reference"` // of the first such pair; "" when it was not sent
	Candidate string `json:"candidate"`
}

// Failure is a measured exchange that did not end complete.
type Failure struct {
	Side    string           `json:"side"`
	ID      exchange.ID      `json:"id"`
	Seq     uint64           `json:"seq"`
	Item    string           `json:"item,omitempty"`
	Outcome exchange.Outcome `json:"outcome"`
	Status  int              `json:"status"`
	Cause   *exchange.Cause  `json:"cause"`
}

// comparison is the work on one report.
type comparison struct {
	runs        [2]*Side
	options     Options
	pairing     *pairing
	judge       judge
	scenarios   [2]map[string]string // by the case of a suite
	named       map[string]string    // models of the candidate, by what the reference calls them
	loads       [2]Load
	noiseMS     float64
	failures    []Failure
	failed      [2]int
	checks      []Check
	fields      []RequestField
	deployments Deployments
	refused     []exchange.Reason
	// otherPrompts says that both sides count prompts in tokens that are not the same.
	otherPrompts bool
}

// Compare sets candidate against reference. texts loads the answers that differ. The error is that of texts, or wraps
// exchange.ErrUsage for an option that means nothing.
func Compare(ctx context.Context, reference, candidate *Side, o Options, texts Texts) (*Report, error) {
	for _, why := range o.Accept {
		if !slices.Contains(acceptable, why) {
			return nil, fmt.Errorf("%w: %q cannot be accepted; there is %v", exchange.ErrUsage, why, acceptable)
		}
	}
	c := &comparison{fields: []RequestField{}, failures: []Failure{}, checks: []Check{}, runs: [2]*Side{reference, candidate}, options: o, pairing: match(reference, candidate)}
	c.judge = judge{p: c.pairing, accepted: o.Accept}
	c.nameModels()
	for side, s := range c.runs {
		c.scenarios[side] = s.Run.Replay.Scenarios()
		takes, _ := lastAttempts(s.Entries)
		c.loads[side] = loadOf(takes, o.Objectives)
		c.gatherFailures(side, takes)
	}
	c.noiseMS = noiseOf(c.runs, [2]int{c.loads[0].Peak, c.loads[1].Peak})
	c.audit()
	answers, err := c.agreement(ctx, texts)
	if err != nil {
		return nil, err
	}
	r := c.report(answers)
	for _, b := range o.Bounds {
		r.Bounds = append(r.Bounds, b.judge(r))
	}
	if b, ok := implied(o.Bounds); ok {
		result := b.judge(r)
		result.Implied = true
		r.Bounds = append(r.Bounds, result)
	}
	return r, nil
}

func (c *comparison) gatherFailures(side int, takes []*Entry) {
	for _, e := range takes {
		if e.complete() {
			continue
		}
		c.failed[side]++
		if len(c.failures) >= listed {
			continue
		}
		f := Failure{Side: sides[side], ID: e.Row.ID, Seq: e.Row.Seq, Outcome: e.Row.Outcome, Status: e.Row.Status, Cause: e.Row.Cause}
		if e.Row.Item != nil {
			f.Item = e.Row.Item.Item
		}
		c.failures = append(c.failures, f)
	}
}

func (c *comparison) report(answers *Agreement) *Report {
	p := c.pairing
	r := &Report{
		Schema: Schema, Rules: measure.Version, Reference: c.view(0), Candidate: c.view(1),
		Pairing: PairingView{By: p.by, Pairs: len(p.pairs), NewlyFailed: p.newlyFailed(), Unpaired: [2]int{len(p.unpaired[0]), len(p.unpaired[1])},
			IDs: [2][]exchange.ID{ids(p.unpaired[0]), ids(p.unpaired[1])}},
		Margin: c.options.Margin, Accepted: c.options.Accept, Objectives: c.options.Objectives, Refused: c.refused,
		Checks: c.checks, Deployments: c.deployments, Fields: c.fields, Answers: answers,
		Failures: c.failures, Partials: append(append([]Partial{}, p.stopped[0]...), p.stopped[1]...),
	}
	all := make([]*pair, len(p.pairs))
	for i := range p.pairs {
		all[i] = &p.pairs[i]
	}
	for _, m := range metrics {
		r.Metrics = append(r.Metrics, c.measureMetric(m, all))
	}
	r.Parts, r.Waves = c.parts(), c.waves()
	return r
}

func (c *comparison) view(side int) RunView {
	run := c.runs[side].Run
	v := RunView{ID: run.ID, Name: run.Name, Mode: run.Mode, State: run.State, Upstream: c.runs[side].Upstream, Engine: run.Identity,
		Harness: run.Harness, Failed: c.failed[side], Retries: c.pairing.retries[side], Load: c.loads[side]}
	if ds := c.deploymentsOf(side); len(ds) > 0 {
		v.Engine = ds[0].Identity
	}
	return v
}

// Metric is the named metric of the report; ok is false when it is none that is compared.
func (r *Report) Metric(name string) (m Metric, ok bool) {
	i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return r.Metrics[i], true
}

// Comparable reports whether any metric came to a ratio.
func (r *Report) Comparable() bool {
	return slices.ContainsFunc(r.Metrics, func(m Metric) bool { return m.Ratio != nil })
}
