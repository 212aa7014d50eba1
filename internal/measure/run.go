package measure

import (
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// Reasons for which a row gives no sample to a metric of a run, beside the reason its figure is absent for.
const (
	ExcludedFailed    exchange.Reason = "failed"           // the exchange did not end complete
	ExcludedShort     exchange.Reason = "short_answer"     // below half of max_tokens: no sample of a decode rate
	ExcludedSuspect   exchange.Reason = "error_as_content" // the answer is an error message that the wire does not call one
	ExcludedEstimated exchange.Reason = "tokens_estimated" // built on counted events, while other rows have real counts
)

// Run is what the exchanges of a run come to.
type Run struct {
	Exchanges int                      `json:"exchanges"`          // all rows
	Generated int                      `json:"generated"`          // of them requests for generation: rows with a dialect
	Outcomes  map[exchange.Outcome]int `json:"outcomes"`           // of all rows
	Truncated int                      `json:"truncated"`          // records cut at a memory bound
	Warmups   int                      `json:"warmups,omitempty"`  // rows sent before the measuring began, in nothing else here
	Unsampled int                      `json:"unsampled"`          // generated ones past Totals.Limit, which are in no metric
	Outdated  int                      `json:"outdated,omitempty"` // generated ones whose rows other versions of the rules derived
	Metrics   []RunMetric              `json:"metrics"`            // in the order of runMetrics, always all of them
}

// RunMetric is one metric over the exchanges of a run. Each exchange is one sample, also of the metrics that are
// percentiles themselves: the median of added_p99_us is that of the exchanges' p99, and its maximum bounds them all.
type RunMetric struct {
	Name     string                  `json:"name"`
	Unit     string                  `json:"unit"`
	Basis    exchange.Basis          `json:"basis,omitempty"` // of the samples; estimated ones are used only when there is no other
	Summary  stat.Summary            `json:"summary"`
	Excluded map[exchange.Reason]int `json:"excluded,omitempty"` // why how many rows with a dialect gave no sample
}

// runMetrics are the metrics a run is summarized by. Those of the decode rate leave short answers out.
var runMetrics = [...]struct {
	name   string
	decode bool
}{
	{TTFTMS, false}, {AnswerTTFTMS, false}, {PrefillTPS, false}, {PrefillUncachedTPS, false},
	{QueueMS, false}, {LoadMS, false}, {ThinkMS, false},
	{DecodeTPS, true}, {DecodeFirstEventTPS, true}, {TPOTMS, true}, {WallTPS, true}, {TotalWallMS, false},
	{EnginePrefillTPS, false}, {EngineDecodeTPS, true},
	{AddedP50US, false}, {AddedP99US, false}, {WriteStallMS, false}, {ProxyQueueMS, false},
}

// Totals gathers a run row by row, so that a run of any length can be summed up without its rows. The zero value with a
// Limit is ready for use; it belongs to one goroutine at a time.
type Totals struct {
	// Limit bounds the exchanges that give samples, the first ones; outcomes are counted of all. 0 = no limit.
	Limit int

	run     Run
	metrics []gathered // as runMetrics
}

// gathered are the samples of one metric by their basis, and why rows gave none.
type gathered struct {
	samples  map[exchange.Basis][]float64
	excluded map[exchange.Reason]int
}

// Add takes one row.
func (t *Totals) Add(r *exchange.Summary) {
	if t.metrics == nil {
		t.run.Outcomes = map[exchange.Outcome]int{}
		t.metrics = make([]gathered, len(runMetrics))
		for i := range t.metrics {
			t.metrics[i] = gathered{map[exchange.Basis][]float64{}, map[exchange.Reason]int{}}
		}
	}
	if r.Item != nil && r.Item.Warmup {
		t.run.Warmups++
		return
	}
	t.run.Exchanges++
	t.run.Outcomes[r.Outcome]++
	if r.State == exchange.StateTruncated {
		t.run.Truncated++
	}
	if r.Dialect == "" {
		return
	}
	t.run.Generated++
	if r.Rules != Rules() {
		t.run.Outdated++
	}
	if t.Limit > 0 && t.run.Generated > t.Limit {
		t.run.Unsampled++
		return
	}
	for i, m := range runMetrics {
		if f, why := sample(r, m.name, m.decode); why != "" {
			t.metrics[i].excluded[why]++
		} else {
			t.metrics[i].samples[f.Basis] = append(t.metrics[i].samples[f.Basis], f.Value)
		}
	}
}

// Run is what was gathered so far.
func (t *Totals) Run() Run {
	run := t.run
	run.Outcomes = map[exchange.Outcome]int{}
	for o, n := range t.run.Outcomes {
		run.Outcomes[o] = n
	}
	run.Metrics = make([]RunMetric, len(runMetrics))
	for i, m := range runMetrics {
		run.Metrics[i] = RunMetric{Name: m.name, Unit: unitOf(m.name), Excluded: map[exchange.Reason]int{}}
		if t.metrics != nil {
			t.metrics[i].into(&run.Metrics[i])
		}
		if run.Metrics[i].Summary.N == 0 {
			run.Metrics[i].Summary = stat.Summarize(nil)
		}
	}
	return run
}

// into fills in a metric. It has one exact basis; estimates stand in only when there is nothing exact.
func (g *gathered) into(m *RunMetric) {
	for why, n := range g.excluded {
		m.Excluded[why] = n
	}
	for _, b := range []exchange.Basis{exchange.BasisMeasured, exchange.BasisReported} {
		if len(g.samples[b]) > 0 {
			m.Basis = b
		}
	}
	estimated := g.samples[exchange.BasisEstimated]
	switch {
	case m.Basis == "" && len(estimated) > 0:
		m.Basis = exchange.BasisEstimated
	case len(estimated) > 0:
		m.Excluded[ExcludedEstimated] += len(estimated)
	}
	m.Summary = stat.Summarize(g.samples[m.Basis])
}

// RunSummary aggregates the rows of a run. Only complete exchanges with a dialect give samples; how many did not, and
// why, stands beside each metric.
func RunSummary(rows []exchange.Summary) Run {
	var t Totals
	for i := range rows {
		t.Add(&rows[i])
	}
	return t.Run()
}

// Metric is the named metric of the run; the zero value when the run has none of that name.
func (r Run) Metric(name string) RunMetric {
	i := slices.IndexFunc(r.Metrics, func(m RunMetric) bool { return m.Name == name })
	if i < 0 {
		return RunMetric{}
	}
	return r.Metrics[i]
}

// Sample is the figure with which a row counts in a metric that runs are summarized by, or why it does not count.
func Sample(r *exchange.Summary, name string) (f exchange.Figure, why exchange.Reason) {
	i := slices.IndexFunc(runMetrics[:], func(m struct {
		name   string
		decode bool
	}) bool {
		return m.name == name
	})
	return sample(r, name, i >= 0 && runMetrics[i].decode)
}

// sample is the figure a row gives to a metric, or the reason why it gives none.
func sample(r *exchange.Summary, name string, decode bool) (f exchange.Figure, why exchange.Reason) {
	f = r.Metrics[name]
	switch {
	case r.Outcome != exchange.OutcomeComplete:
		return f, ExcludedFailed
	case slices.Contains(r.Flags, FlagErrorAsContent):
		return f, ExcludedSuspect
	case !f.Present() && f.Reason == "": // a row of an older version that did not know the metric
		return f, ReasonNotReported
	case !f.Present():
		return f, f.Reason
	case decode && slices.Contains(r.Flags, FlagShortAnswer):
		return f, ExcludedShort
	}
	return f, ""
}

func unitOf(name string) string {
	i := slices.IndexFunc(definitions[:], func(d Definition) bool { return d.Name == name })
	return definitions[i].Unit
}
