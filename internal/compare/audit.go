package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// Answers to a question of the audit.
const (
	Same    = "same"
	Differs = "differs"
	Unknown = "unknown"
)

// Check is one question that must be asked before two runs are set against each other, with its answer.
type Check struct {
	Name     string          `json:"name"`
	Answer   string          `json:"answer"`           // same, differs or unknown
	Detail   string          `json:"detail,omitempty"` // what was found, for people
	Forbids  exchange.Reason `json:"forbids,omitempty"`
	Pairs    int             `json:"pairs,omitempty"` // that it concerns; 0 for a question about whole runs
	Accepted bool            `json:"accepted,omitempty"`
}

// FieldDifference is a field in which two deployments are known to differ.
type FieldDifference struct {
	Field     string `json:"field"`
	Reference string `json:"reference"`
	Candidate string `json:"candidate"`
}

// Deployments says what is known of the two engines beside each other.
type Deployments struct {
	Same    []string          `json:"same"`
	Differs []FieldDifference `json:"differs"`
	Unknown []string          `json:"unknown"` // on one side or on both: not proven to be the same
}

// audit asks every question and gathers what forbids the whole comparison.
func (c *comparison) audit() {
	c.auditRuns()
	c.auditEngines()
	c.auditPairs()
	c.auditRequests()
	c.auditCircumstances()
	for i := range c.checks {
		k := &c.checks[i]
		k.Accepted = k.Forbids != "" && c.judge.accepts(k.Forbids)
		if k.Forbids != "" && k.Pairs == 0 && !k.Accepted {
			c.refused = append(c.refused, k.Forbids)
		}
	}
}

// ask adds a question whose answer is the same unless differs; forbids counts only then.
func (c *comparison) ask(name string, differs bool, forbids exchange.Reason, detail string) {
	k := Check{Name: name, Answer: Same, Detail: detail}
	if differs {
		k.Answer, k.Forbids = Differs, forbids
	}
	c.checks = append(c.checks, k)
}

// each puts what a function says of both runs side by side, and drops it when it says nothing.
func (c *comparison) each(say func(side int) string) string {
	a, b := say(0), say(1)
	if a == "" && b == "" {
		return ""
	}
	for _, s := range []*string{&a, &b} {
		if *s == "" {
			*s = "-"
		}
	}
	if a == b {
		return a
	}
	return a + " against " + b
}

func (c *comparison) auditRuns() {
	state := func(i int) string {
		r := c.runs[i].Run
		if r.Replay != nil && r.Replay.Incomplete != "" {
			return string(r.State) + " (" + r.Replay.Incomplete + ")"
		}
		return string(r.State)
	}
	incomplete := c.runs[0].Run.State != exchange.RunComplete || c.runs[1].Run.State != exchange.RunComplete
	c.ask("run complete", incomplete, ReasonIncomplete, c.each(state))
	invalid := func(i int) string {
		if r := c.runs[i].Run.Replay; r != nil {
			return r.Invalid
		}
		return ""
	}
	c.ask("schedule kept", invalid(0) != "" || invalid(1) != "", ReasonSchedule, c.each(invalid))
	a, b := c.runs[0].Run.Replay, c.runs[1].Run.Replay
	if a != nil && b != nil {
		c.ask("workload", a.Workload != b.Workload, "", c.each(func(i int) string { return c.runs[i].Run.Replay.Workload }))
		c.ask("plan", a.Plan != b.Plan, "", c.each(func(i int) string { return c.runs[i].Run.Replay.Plan }))
		c.ask("driver", a.Driver != b.Driver, ReasonDriver, c.each(func(i int) string { return c.runs[i].Run.Replay.Driver }))
	}
	c.ask("harness", c.runs[0].Run.Harness != c.runs[1].Run.Harness, "", c.each(func(i int) string { return c.runs[i].Run.Harness }))
	c.auditMachine()
	switch {
	case c.runs[0].Run.ID == c.runs[1].Run.ID && c.runs[0].Upstream == c.runs[1].Upstream:
		c.ask("interleaved", false, "", "both sides are one run, compared with itself")
	case a == nil || b == nil || a.Group == "" || a.Group != b.Group:
		c.checks = append(c.checks, Check{Name: "interleaved", Answer: Differs,
			Detail: "one run after the other: what changed on the machines in between is part of every ratio"})
	default:
		c.ask("interleaved", false, "", "request by request, in random order")
	}
}

// auditMachine asks whether one machine measured both runs.
func (c *comparison) auditMachine() {
	host := func(i int) string {
		if in := c.runs[i].Run.Instrument; in != nil {
			return in.Host.Fingerprint()
		}
		return ""
	}
	if host(0) == "" || host(1) == "" {
		c.checks = append(c.checks, Check{Name: "measuring machine", Answer: Unknown, Detail: "no selftest on record"})
		return
	}
	c.ask("measuring machine", host(0) != host(1), "", c.each(host))
}

// deploymentsOf are what answered a side, in the order in which they were read.
func (c *comparison) deploymentsOf(side int) []exchange.Deployment {
	used := c.upstreams(side)
	several := c.models(side) > 1
	var out []exchange.Deployment
	for _, d := range c.runs[side].Run.Deployments {
		asked := several && d.Why == exchange.ReadAtAnswer // another model answered because another one was asked for
		if slices.Contains(used, d.Upstream) && !asked {
			out = append(out, d)
		}
	}
	return out
}

// models is the number of models that the requests of a side asked for.
func (c *comparison) models(side int) int {
	seen := map[string]bool{}
	for i := range c.runs[side].Entries {
		if e := &c.runs[side].Entries[i]; e.measured() {
			seen[e.Row.Model] = true
		}
	}
	return len(seen)
}

func (c *comparison) upstreams(side int) []string {
	seen := map[string]bool{}
	for i := range c.runs[side].Entries {
		if e := &c.runs[side].Entries[i]; e.measured() {
			seen[e.Row.Upstream] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

func (c *comparison) auditEngines() {
	several := len(c.upstreams(0)) > 1 || len(c.upstreams(1)) > 1
	c.ask("one engine a run", several, ReasonUpstreams, c.each(func(i int) string {
		if u := c.upstreams(i); len(u) > 1 {
			return strings.Join(u, ", ") + "; name one as RUN@UPSTREAM"
		}
		return ""
	}))
	var prints [2]*exchange.Fingerprint
	var deployed [2]*exchange.Deployment
	changed, fallback := false, false
	for side := range sides {
		ds := c.deploymentsOf(side)
		for i := range ds {
			changed = changed || i > 0 && ds[i].Upstream == ds[0].Upstream && otherFields(ds[0].Fingerprint, ds[i].Fingerprint) != nil
			fallback = fallback || ds[i].CPUFallback
		}
		if len(ds) > 0 {
			deployed[side], prints[side] = &ds[0], ds[0].Fingerprint
		}
	}
	c.ask("engine unchanged", changed, ReasonChanged, "")
	c.ask("device as asked for", fallback, ReasonFallback, "")
	c.auditWeights(deployed)
	l := engines.Compare(prints[0], prints[1])
	c.deployments = Deployments{Same: l.Same, Differs: []FieldDifference{}, Unknown: l.Open}
	for _, f := range l.Different {
		c.deployments.Differs = append(c.deployments.Differs, FieldDifference{f, prints[0].Known[f], prints[1].Known[f]})
	}
}

func otherFields(a, b *exchange.Fingerprint) []string { return engines.Compare(a, b).Different }

// auditWeights asks whether both engines serve the same weights. A digest proves it; another quantization or number of
// parameters disproves it; anything else leaves it open.
func (c *comparison) auditWeights(d [2]*exchange.Deployment) {
	k := Check{Name: "weights", Answer: Unknown, Detail: "no digest on record: not proven to be the same"}
	a, b := d[0], d[1]
	if a != nil && b != nil {
		switch {
		case a.WeightsDigest != nil && b.WeightsDigest != nil:
			k.Answer, k.Detail = Differs, *a.WeightsDigest+" against "+*b.WeightsDigest
			if *a.WeightsDigest == *b.WeightsDigest {
				k.Answer, k.Detail = Same, *a.WeightsDigest
			}
		case a.Quantization != nil && b.Quantization != nil && *a.Quantization != *b.Quantization:
			k.Answer, k.Detail = Differs, *a.Quantization+" against "+*b.Quantization
		case a.Parameters != nil && b.Parameters != nil && *a.Parameters != *b.Parameters:
			k.Answer, k.Detail = Differs, fmt.Sprintf("%d against %d parameters", *a.Parameters, *b.Parameters)
		}
	}
	if k.Answer == Differs {
		k.Forbids = ReasonWeights
	}
	c.checks = append(c.checks, k)
}

func (c *comparison) auditPairs() {
	p := c.pairing
	missing := len(p.unpaired[0]) + len(p.unpaired[1])
	forbids := ReasonUnpaired
	if p.by == ByOrigin { // the plan says which requests there are to be, and the state of the run whether they were
		forbids = ""
	}
	c.ask("same requests", missing > 0, forbids, fmt.Sprintf("%d pairs by %s; without a partner: %d of the reference, %d of the candidate",
		len(p.pairs), p.by, len(p.unpaired[0]), len(p.unpaired[1])))
	c.concern("all answered", c.failed[0]+c.failed[1], ReasonFailed, fmt.Sprintf("%d failures in the reference, %d in the candidate", c.failed[0], c.failed[1]))
	c.concern("same turns", len(p.stopped[0])+len(p.stopped[1]), ReasonPartial,
		fmt.Sprintf("%d conversations stopped early in the reference, %d in the candidate", len(p.stopped[0]), len(p.stopped[1])))
	lost := func(i int) (n int) {
		for _, failed := range p.failedWaves[i] {
			if failed {
				n++
			}
		}
		return n
	}
	if a, b := lost(0), lost(1); len(p.failedWaves[0])+len(p.failedWaves[1]) > 0 {
		c.concern("whole waves", a+b, ReasonWave, fmt.Sprintf("%d waves with a failed member in the reference, %d in the candidate", a, b))
	}
}

// concern adds a question that some pairs answer otherwise.
func (c *comparison) concern(name string, pairs int, forbids exchange.Reason, detail string) {
	k := Check{Name: name, Answer: Same}
	if pairs > 0 {
		k = Check{Name: name, Answer: Differs, Forbids: forbids, Pairs: pairs, Detail: detail}
	}
	c.checks = append(c.checks, k)
}

// count is the number of pairs with complete first takes for which a condition holds.
func (c *comparison) count(holds func(a, b *Entry) bool) int {
	n := 0
	for i := range c.pairing.pairs {
		if a, b := c.pairing.pairs[i].both(); a.complete() && b.complete() && holds(a, b) {
			n++
		}
	}
	return n
}

// countAny is the number of pairs in which a condition holds for any complete take against the first complete one of the
// other side.
func (c *comparison) countAny(holds func(a, b *Entry) bool) int {
	n := 0
	for i := range c.pairing.pairs {
		p := &c.pairing.pairs[i]
		a, b := p.both()
		if a.complete() && b.complete() && (slices.ContainsFunc(p.candidate, func(e *Entry) bool { return e.complete() && holds(a, e) }) ||
			slices.ContainsFunc(p.reference, func(e *Entry) bool { return e.complete() && holds(e, b) })) {
			n++
		}
	}
	return n
}

// auditRequests asks what the two sides were asked for.
func (c *comparison) auditRequests() {
	equal := c.count(func(a, b *Entry) bool { return sentDigest(a) == sentDigest(b) })
	all := c.count(func(a, b *Entry) bool { return true })
	fields := map[string]int{}
	example := map[string]difference{}
	c.count(func(a, b *Entry) bool {
		for _, d := range differences(a.Request, b.Request) {
			fields[d.field]++
			if _, seen := example[d.field]; !seen {
				example[d.field] = d
			}
		}
		return false
	})
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		d := example[f]
		c.fields = append(c.fields, RequestField{Field: f, Pairs: fields[f], Reference: d.reference, Candidate: d.candidate})
	}
	detail := fmt.Sprintf("%d of %d pairs sent the same", equal, all)
	if len(fields) > 0 {
		detail += "; differing fields: " + strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
	}
	c.ask("request bodies", equal < all, "", detail)
	for _, why := range []exchange.Reason{ReasonStream, ReasonLimit, ReasonSampling, ReasonThinking, ReasonStructure} {
		n := c.count(func(a, b *Entry) bool { return slices.Contains(pairReasons(a, b), why) })
		name := strings.ReplaceAll(strings.TrimPrefix(string(why), "other_"), "_", " ")
		c.concern(name, n, why, "")
	}
}

func sentDigest(e *Entry) string {
	if e.Row.SentKey != "" {
		return e.Row.SentKey
	}
	return e.Row.Key
}

// auditCircumstances asks under what circumstances the answers were made.
func (c *comparison) auditCircumstances() {
	unknown := c.count(func(a, b *Entry) bool {
		_, x := cached(a)
		_, y := cached(b)
		return !x || !y
	})
	if n := c.countAny(otherCache); n == 0 && unknown > 0 {
		c.checks = append(c.checks, Check{Name: "cache state", Answer: Unknown, Detail: fmt.Sprintf("not reported on both sides in %d pairs", unknown)})
	} else {
		c.concern("cache state", n, ReasonCache, "")
	}
	all := c.count(func(_, _ *Entry) bool { return true })
	c.concern("model loaded", c.countAny(func(a, b *Entry) bool { return loads(a) != loads(b) }), ReasonLoad, "")
	c.concern("answer lengths", c.countAny(otherLength), ReasonLength, "")
	c.concern("decode source", c.countAny(func(a, b *Entry) bool { return a.decodeSource() != b.decodeSource() }), ReasonSource, "")
	c.auditPrompts(all)
	finish := c.count(func(a, b *Entry) bool { return finishOf(a) != finishOf(b) })
	c.ask("finish reasons", finish > 0, "", fmt.Sprintf("%d of %d pairs differ", finish, all))
	c.ask("stamp clock", c.clock(0) != c.clock(1), "", c.each(c.clock))
	c.auditConcurrency()
}

// promptShare is from where another number of prompt tokens is worth a word beside the figures that depend on it.
const promptShare = 0.05

// auditPrompts asks whether both sides count the same prompt tokens. Tokenizers differ, so that this forbids nothing.
func (c *comparison) auditPrompts(all int) {
	var things []stat.Matched
	differ := c.count(func(a, b *Entry) bool {
		x, y := a.Row.Metrics[measure.PromptTokens], b.Row.Metrics[measure.PromptTokens]
		if !x.Present() || !y.Present() || x.Value == y.Value {
			return false
		}
		if math.Abs(x.Value-y.Value) > promptShare*max(x.Value, y.Value) {
			things = append(things, stat.Matched{Reference: []float64{x.Value}, Candidate: []float64{y.Value}})
		}
		return true
	})
	c.otherPrompts = len(things) > 0 && 2*len(things) >= all
	detail := ""
	if differ > 0 {
		detail = fmt.Sprintf("%d pairs differ", differ)
	}
	if len(things) > 0 {
		detail += fmt.Sprintf(", %d by more than 5 %%: candidate / reference is %.3g in their middle", len(things), stat.Compare(things).Ratio)
	}
	c.ask("prompt tokens", differ > 0, "", detail)
}

func finishOf(e *Entry) string {
	if e.Row.FinishReason == nil {
		return ""
	}
	return *e.Row.FinishReason
}

func (c *comparison) clock(side int) string {
	seen := map[string]bool{}
	for i := range c.runs[side].Entries {
		if e := &c.runs[side].Entries[i]; e.measured() && e.clock != "" {
			seen[string(e.clock)] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(seen)), ", ")
}

// concurrencyRatio is from where two numbers of requests at once are different circumstances.
const concurrencyRatio = 1.5

// auditConcurrency asks how many requests were usually in flight. An open loop sends by the clock: there the number
// follows from the speed of the engine, and is told but forbids nothing.
func (c *comparison) auditConcurrency() {
	a, b := c.loads[0].InFlight, c.loads[1].InFlight
	if a == 0 || b == 0 {
		return
	}
	forbids := ReasonConcurrency
	for _, s := range c.runs {
		if s.Run.Replay != nil && s.Run.Replay.Schedule != nil {
			forbids = ""
		}
	}
	differs := float64(max(a, b)) >= concurrencyRatio*float64(min(a, b))
	c.ask("concurrency", differs, forbids, c.each(func(i int) string { return fmt.Sprintf("%d in flight", c.loads[i].InFlight) }))
}
