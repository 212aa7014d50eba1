package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Bounds of what is plausible, as shares of a ceiling.
const (
	plausible   = 0.97 // nothing real comes closer to what the hardware can do
	implausible = 0.30 // a baseline further below is set up wrongly, or is no baseline
)

// Limits are what the hardware can do, as somebody states it. The zero value knows of nothing.
type Limits struct {
	BytesPerToken float64 // of weights that are read for one token; 0 = that of the model file, where a run names one
	Bandwidth     float64 // of the memory that holds them, bytes/s; 0 = not known
	DraftDepth    float64 // tokens that are drafted in one step; 0 = as the answers tell
	// Stated are ceilings by metric, or by metric and shape as in decode_tps@2048x4, in the unit of the metric and without
	// drafts.
	Stated map[string]float64
	Source string // who says so
}

// Ceiling is the most that a number can be.
type Ceiling struct {
	Value      float64  `json:"value"` // in the unit of the metric, of a drafting run with the factor below
	Source     string   `json:"source"`
	Factor     float64  `json:"draft_factor"`         // 1 + acceptance x depth; 1 without drafts
	Acceptance *float64 `json:"acceptance,omitempty"` // null without drafts
	Depth      *float64 `json:"depth,omitempty"`
	Of         string   `json:"acceptance_of,omitempty"` // the same requests, or the fallback
	Assumed    bool     `json:"assumed"`                 // rests on all bytes of the model file being read for each token
}

// Why a number has no ceiling.
const (
	ReasonNoLimit      exchange.Reason = "no_limit_stated"     // nothing says what the hardware can do
	ReasonNoAcceptance exchange.Reason = "acceptance_unknown"  // it drafts, and how much is accepted is not known
	ReasonNoDepth      exchange.Reason = "draft_depth_unknown" // it drafts, and how many tokens at a time is not known
	ReasonNoBound      exchange.Reason = "no_ceiling"          // less is better, or the number has no bound of its own
)

// decodes are the metrics that the bandwidth of the memory bounds: one pass over the weights gives one token, and with
// drafts some more.
var decodes = map[string]bool{measure.DecodeTPS: true, measure.EngineDecodeTPS: true}

// bounded are the metrics that can have a ceiling.
var bounded = [...]string{measure.DecodeTPS, measure.EngineDecodeTPS, measure.PrefillTPS, measure.EnginePrefillTPS, measure.WallTPS}

// BoundedMetrics are the metrics that can have a ceiling.
func BoundedMetrics() []string { return slices.Clone(bounded[:]) }

// Bounded reports whether a metric can have a ceiling.
func Bounded(metric string) bool { return slices.Contains(bounded[:], metric) }

// claims makes the numbers of a run and asks of each whether it is possible.
func (a *auditor) claims(r *Run, speculating bool) {
	for _, shape := range r.ordered() {
		for _, metric := range claimed {
			c, samples, ok := r.claimOf(shape, metric)
			if !ok {
				continue
			}
			c.Ceiling, c.NoCeiling = a.ceiling(r, shape, metric, speculating || speculates(r))
			if c.Ceiling != nil {
				share := c.Value / c.Ceiling.Value
				c.Share = &share
				a.plausible(&c, samples)
			}
			a.report.Claims = append(a.report.Claims, c)
		}
	}
	a.unbounded(r)
}

// unbounded tells once a run that no number of it has a ceiling, where one could have.
func (a *auditor) unbounded(r *Run) {
	whys := map[exchange.Reason]bool{}
	for i := range a.report.Claims {
		c := &a.report.Claims[i]
		switch {
		case c.Run != r.ID || !decodes[c.Metric]:
		case c.Ceiling != nil:
			return
		default:
			whys[c.NoCeiling] = true
		}
	}
	hint := ""
	switch {
	case len(whys) == 0:
		return
	case whys[ReasonNoAcceptance]:
		hint = "it drafts, and nothing tells how much of the drafts is accepted"
	case whys[ReasonNoDepth]:
		hint = "it drafts, and nothing tells how many tokens at a time: --draft-depth N states it"
	default:
		hint = "nothing says what the hardware can do: --bandwidth and --bytes-per-token state it, or --ceiling METRIC=VALUE"
	}
	a.add(AskPlausible, nameOf(&r.Run), Warning, "no decode rate has a ceiling: %s", hint)
}

// ceiling is the most that a metric of requests of that shape can be, or why there is none.
func (a *auditor) ceiling(r *Run, s Shape, metric string, drafts bool) (*Ceiling, exchange.Reason) {
	if !Bounded(metric) {
		return nil, ReasonNoBound
	}
	c := a.base(r, s, metric)
	if c == nil {
		return nil, ReasonNoLimit
	}
	c.Factor = 1
	if !decodes[metric] || !drafts {
		return c, ""
	}
	acceptance, of, ok := acceptanceOf(r, s)
	if !ok {
		return nil, ReasonNoAcceptance
	}
	depth, ok := a.depthOf(r, s)
	if !ok {
		return nil, ReasonNoDepth
	}
	c.Factor = 1 + acceptance*depth
	c.Value *= c.Factor
	c.Acceptance, c.Depth, c.Of = &acceptance, &depth, of
	return c, ""
}

// base is the ceiling without drafts: a stated one, that of the shape before that of the metric, else what the memory can
// give.
func (a *auditor) base(r *Run, s Shape, metric string) *Ceiling {
	l := &a.in.Limits
	for _, name := range []string{metric + "@" + s.Key(), metric} {
		if v := l.Stated[name]; v > 0 {
			return &Ceiling{Value: v, Source: fmt.Sprintf("%s %g stated by %s", name, v, l.Source)}
		}
	}
	if !decodes[metric] || l.Bandwidth <= 0 {
		return nil
	}
	if l.BytesPerToken > 0 {
		return &Ceiling{Value: l.Bandwidth / l.BytesPerToken, Source: fmt.Sprintf("%.4g GB/s over %.4g GB a token, stated by %s", l.Bandwidth/1e9, l.BytesPerToken/1e9, l.Source)}
	}
	for i := range r.Deployments {
		if w := r.Deployments[i].Weights; w != nil && w.Bytes > 0 {
			return &Ceiling{Value: l.Bandwidth / float64(w.Bytes), Assumed: true,
				Source: fmt.Sprintf("%.4g GB/s stated by %s, over all %.4g GB of %s", l.Bandwidth/1e9, l.Source, float64(w.Bytes)/1e9, w.Name)}
		}
	}
	return nil
}

// acceptanceOf is the share of drafted tokens that was accepted, of requests of that shape, else of the whole run.
func acceptanceOf(r *Run, s Shape) (share float64, of string, ok bool) {
	if n := r.shapes[s]; n != nil && len(n.drafts.acceptance) > 0 {
		return median(n.drafts.acceptance), "these requests", true
	}
	if len(r.drafts.acceptance) > 0 {
		return median(r.drafts.acceptance), "other requests of the run, since these tell none: their texts may be accepted otherwise", true
	}
	return 0, "", false
}

// depthOf is how many tokens are drafted in one step.
func (a *auditor) depthOf(r *Run, s Shape) (float64, bool) {
	if n := r.shapes[s]; n != nil && len(n.drafts.window) > 0 {
		return median(n.drafts.window), true
	}
	if d := a.in.Limits.DraftDepth; d > 0 {
		return d, true
	}
	if len(r.drafts.window) > 0 {
		return median(r.drafts.window), true
	}
	return 0, false
}

// plausible asks whether a number, and every single sample of it, stays below its ceiling.
func (a *auditor) plausible(c *Claim, samples []sampled) {
	object := orWord(c.Name, string(c.Run)) + " " + c.Metric + " of " + c.Shape
	text := fmt.Sprintf("%.4g %s is %.0f %% of the ceiling %.4g (%s)", c.Value, c.Unit, 100**c.Share, c.Ceiling.Value, c.Ceiling.text())
	var above []exchange.ID
	most := 0.0
	for _, s := range samples {
		if s.value > c.Ceiling.Value {
			above = append(above, s.id)
			most = max(most, s.value)
		}
	}
	status := Failure
	if c.Ceiling.Assumed { // a model with experts, or with a table of its own for the input, reads less
		status = Warning
		text += "; where a token does not read the whole file, state --bytes-per-token"
	}
	switch {
	case *c.Share > plausible:
		a.add(AskPlausible, object, status, "%s", text).Exchanges = c.Exchanges
	case len(above) > 0:
		a.add(AskPlausible, object, Warning, "%s, and %s above it, up to %.4g", text, isAre(len(above), "sample"), most).Exchanges = first(above)
	case c.Role == Baseline && *c.Share < implausible:
		a.add(AskPlausible, object, Warning, "%s: so far below, the baseline may be set up wrongly", text).Exchanges = c.Exchanges
	default:
		a.add(AskPlausible, object, OK, "%s", strings.TrimSuffix(text, "; where a token does not read the whole file, state --bytes-per-token"))
	}
}

func isAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

// text is where the ceiling comes from.
func (c *Ceiling) text() string {
	if c.Acceptance == nil {
		return c.Source
	}
	return fmt.Sprintf("%s, times 1 + %.2f accepted x %.3g drafted, by %s", c.Source, *c.Acceptance, *c.Depth, c.Of)
}
