package measure

import (
	"math"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// DraftCounts is what is known of the drafts of one answer. Steps is 0 when they are not counted.
type DraftCounts struct{ Drafted, Accepted, Steps int64 }

// drafts derives how speculative decoding went, from what the engine says about this very answer: in the response
// first, else in its timings. Counters of the whole engine are no evidence for one request; see borrow.
func (a *Analysis) drafts(s *stream) {
	for _, d := range draftFigures {
		a.set(d.name, exchange.Absent(d.unit, ReasonNoDrafts))
		if !s.dialect {
			a.set(d.name, exchange.Absent(d.unit, ReasonNoDialect))
		}
	}
	if counts, ok := draftCounts(s.t.Timings); ok {
		a.setDrafts(counts)
	}
}

// draftCounts are the counts an engine reports. An engine that says what it accepted, but not of how many, says too
// little.
func draftCounts(t *wire.Timings) (counts DraftCounts, ok bool) {
	if t == nil || t.DraftAccepted == nil {
		return counts, false
	}
	counts.Accepted = *t.DraftAccepted
	if t.DraftN != nil {
		counts.Drafted = *t.DraftN
	}
	if t.DraftSteps != nil {
		counts.Steps = *t.DraftSteps
	}
	return counts, counts.Drafted > 0 || counts.Steps > 0
}

// draftFigures are the figures that rest on draft counts. Those per second are over our decode window.
var draftFigures = [...]struct {
	name, unit string
	value      func(c DraftCounts, seconds float64) float64
	steps      bool // needs verification steps
	drafted    bool // needs drafted tokens
	timed      bool // needs the decode window
}{
	{name: DraftAcceptance, unit: unitRatio, drafted: true, value: func(c DraftCounts, _ float64) float64 { return float64(c.Accepted) / float64(c.Drafted) }},
	{name: DraftWaste, unit: unitRatio, drafted: true, value: func(c DraftCounts, _ float64) float64 { return 1 - float64(c.Accepted)/float64(c.Drafted) }},
	{name: DraftWindow, unit: unitTokens, drafted: true, steps: true, value: func(c DraftCounts, _ float64) float64 { return float64(c.Drafted) / float64(c.Steps) }},
	{name: TokensPerStep, unit: unitTokens, steps: true, value: func(c DraftCounts, _ float64) float64 { return 1 + float64(c.Accepted)/float64(c.Steps) }},
	{name: VerifyStepsPS, unit: unitSteps, steps: true, timed: true, value: func(c DraftCounts, s float64) float64 { return float64(c.Steps) / s }},
	{name: AcceptedGoodputTPS, unit: unitTPS, timed: true, value: func(c DraftCounts, s float64) float64 { return float64(c.Accepted) / s }},
}

// setDrafts derives the draft figures from counts.
func (a *Analysis) setDrafts(c DraftCounts) {
	seconds, why := a.decodeWindow()
	for _, d := range draftFigures {
		switch {
		case d.drafted && c.Drafted <= 0:
			a.set(d.name, exchange.Absent(d.unit, ReasonNoDrafts))
		case d.steps && c.Steps <= 0:
			a.set(d.name, exchange.Absent(d.unit, ReasonStepsUnknown))
		case d.timed && why != "":
			a.set(d.name, exchange.Absent(d.unit, why))
		case d.timed:
			a.set(d.name, measured(d.value(c, seconds), d.unit))
		default:
			a.set(d.name, reported(d.value(c, seconds), d.unit))
		}
	}
}

// decodeWindow is the time from the first to the last token in seconds, or why it is no decode window.
func (a *Analysis) decodeWindow() (seconds float64, why exchange.Reason) {
	if f := a.Figures[DecodeTPS]; !f.Present() {
		return 0, f.Reason
	}
	return (a.Figures[LastTokenMS].Value - a.Figures[TTFTMS].Value) / 1000, ""
}

// borrow completes the draft figures of an answer from the counters of its engine, which were read around it while the
// proxy sent nothing else. They speak for this answer only when no other client of the engine moved them: the tokens that
// the engine counted as generated, where it does, must be those of the answer.
func (a *Analysis) borrow(c *exchange.Counters) {
	if c == nil {
		return
	}
	var moved DraftCounts
	var drafted, accepted bool
	moved.Drafted, drafted = exchange.Moved(c.Before.Drafted, c.After.Drafted)
	moved.Accepted, accepted = exchange.Moved(c.Before.Accepted, c.After.Accepted)
	moved.Steps, _ = exchange.Moved(c.Before.Steps, c.After.Steps)
	a.borrowMoved(moved, drafted && accepted && moved.Accepted <= moved.Drafted && a.alone(c))
}

// alone reports whether the engine generated this answer and nothing else between two readings. A token more or less is
// the end mark, which not every engine counts.
func (a *Analysis) alone(c *exchange.Counters) bool {
	if c.Before.Generated == nil && c.After.Generated == nil {
		return true // nothing speaks against it
	}
	generated, ok := exchange.Moved(c.Before.Generated, c.After.Generated)
	answered := a.Figures[CompletionTokens]
	return ok && (!answered.Present() || answered.Basis == exchange.BasisEstimated || math.Abs(float64(generated)-answered.Value) <= 1)
}

// borrowMoved takes counts of drafts for those of the answer: moved is how far the engine's counters went while the
// request ran, alone says that nothing else ran then. What the answer says of itself stays. Where it says nothing the
// counters stand in; where it lacks the steps alone, the counters' are taken if they drafted the same number of tokens.
// FlagDraftCounters says that anything was borrowed.
func (a *Analysis) borrowMoved(moved DraftCounts, alone bool) {
	own, ok := draftCounts(a.Transcript.Timings)
	switch {
	case !alone || moved.Drafted <= 0 || a.Figures[DraftAcceptance].Reason == ReasonNoDialect:
		return
	case ok && (own.Steps > 0 || moved.Steps <= 0 || own.Drafted != moved.Drafted):
		return
	case ok:
		own.Steps = moved.Steps
		moved = own
	}
	a.setDrafts(moved)
	a.flag(FlagDraftCounters, true)
}
