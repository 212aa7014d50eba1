package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// DraftSpeedup is the median decode rate of a run over the rate of an otherwise equal run without drafts, in tok/s. It is
// as good as the rate it is held against: checkpoint, prompts, sampling and machine must be the same.
func (r Run) DraftSpeedup(baseline float64) exchange.Figure {
	m := r.Metric(DecodeTPS)
	if m.Summary.Median == nil || baseline <= 0 {
		return exchange.Absent(unitRatio, stat.ReasonNoSamples)
	}
	return exchange.Figure{Value: *m.Summary.Median / baseline, Unit: unitRatio, Basis: m.Basis}
}
