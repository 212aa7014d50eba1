package measure

import "github.com/benchproxy/benchproxy/internal/exchange"

// drafts derives how speculative decoding went, from what the engine says about this very answer. Counters of the
// whole engine are no evidence for one request and stay out.
func (a *Analysis) drafts(s *stream) {
	missing := ReasonNoDrafts
	if !s.dialect {
		missing = ReasonNoDialect
	}
	a.set(DraftAcceptance, exchange.Absent(unitRatio, missing))
	a.set(TokensPerStep, exchange.Absent(unitTokens, missing))
	t := s.t.Timings
	if t == nil || t.DraftAccepted == nil {
		return
	}
	accepted := float64(*t.DraftAccepted)
	if t.DraftN != nil && *t.DraftN > 0 {
		a.set(DraftAcceptance, reported(accepted/float64(*t.DraftN), unitRatio))
	}
	if t.DraftSteps == nil || *t.DraftSteps <= 0 {
		a.set(TokensPerStep, exchange.Absent(unitTokens, ReasonStepsUnknown))
		return
	}
	a.set(TokensPerStep, reported(1+accepted/float64(*t.DraftSteps), unitTokens))
}
