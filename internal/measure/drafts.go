package measure

import (
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// DraftCounts is what is known of the drafts of one answer. Steps is 0 when they are not counted.
type DraftCounts struct{ Drafted, Accepted, Steps int64 }

// drafts derives how speculative decoding went, from what the engine says about this very answer: in the response
// first, else in its timings. Counters of the whole engine are no evidence for one request; see BorrowCounters.
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

// BorrowCounters completes the draft figures of an answer from the counters of its engine: moved is how far they went
// while the request ran, alone says that nothing else ran then. What the answer says of itself stays. Where it says
// nothing the counters stand in; where it lacks the steps alone, the counters' are taken if they drafted the same
// number of tokens. It reports whether anything was borrowed, which FlagDraftCounters then says too.
func (a *Analysis) BorrowCounters(moved DraftCounts, alone bool) bool {
	own, ok := draftCounts(a.Transcript.Timings)
	switch {
	case !alone || moved.Drafted <= 0 || a.Figures[DraftAcceptance].Reason == ReasonNoDialect:
		return false
	case ok && (own.Steps > 0 || moved.Steps <= 0 || own.Drafted != moved.Drafted):
		return false
	case ok:
		own.Steps = moved.Steps
		moved = own
	}
	a.setDrafts(moved)
	a.flag(FlagDraftCounters, true)
	slices.Sort(a.Flags)
	return true
}
