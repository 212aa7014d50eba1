package measure

import (
	"math"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Version of the rules in this package. It changes when the same exchange can give other results.
const Version = 3

// Rules are the versions of the rules that this build derives by.
func Rules() exchange.Rules { return exchange.Rules{Wire: wire.Version, Measure: Version} }

// Analysis is everything that can be derived from one exchange.
type Analysis struct {
	Version    int
	Transcript *wire.Transcript
	Request    wire.RequestFacts
	Outcome    exchange.Outcome
	Cause      *exchange.Cause // nil when complete
	Figures    exchange.Figures
	Flags      []string // sorted, each once; never nil
	Phases     []exchange.PhaseSpan
	Curve      []exchange.PrefillPoint // how far the prompt was read when
}

// Flagged reports whether the analysis carries the flag.
func (a *Analysis) Flagged(flag string) bool { return slices.Contains(a.Flags, flag) }

// Analyze reads a sealed exchange and derives all there is.
func Analyze(x *exchange.Exchange) *Analysis {
	return Derive(x, wire.Parse(x), wire.RequestOf(x))
}

// Derive is Analyze for a caller that has read the bodies already.
func Derive(x *exchange.Exchange, t *wire.Transcript, request wire.RequestFacts) *Analysis {
	a := &Analysis{
		Version:    Version,
		Transcript: t,
		Request:    request,
		Outcome:    Outcome(x, t),
		Figures:    make(exchange.Figures, len(definitions)),
		Flags:      []string{},
	}
	a.Cause = cause(x, t, a.Outcome)
	s := newStream(x, t, request)
	a.latency(s)
	a.phases(s)
	a.tokens(s)
	a.rates(s)
	a.peak(s)
	a.gaps(s)
	a.engine(s)
	a.drafts(s)
	a.borrow(x.Counters)
	a.cost(s)
	a.remarks(s)
	slices.Sort(a.Flags)
	return a
}

// set stores a figure. A value that is no finite number has no business in a record and becomes absent.
func (a *Analysis) set(name string, f exchange.Figure) {
	if f.Present() && (math.IsNaN(f.Value) || math.IsInf(f.Value, 0)) {
		f = exchange.Absent(f.Unit, ReasonZeroWindow)
	}
	a.Figures[name] = f
}

// flag adds a flag when the condition holds.
func (a *Analysis) flag(name string, holds bool) {
	if holds && !slices.Contains(a.Flags, name) {
		a.Flags = append(a.Flags, name)
	}
}

// remarks adds the flags that belong to no metric of their own.
func (a *Analysis) remarks(s *stream) {
	x, t := s.x, s.t
	a.flag(FlagBuffered, s.buffered)
	a.flag(FlagLateBurst, s.late)
	a.flag(FlagSingleEvent, s.streamed && len(s.events) == 1)
	a.flag(FlagMergedReads, s.streamed && s.merged > 0)
	a.flag(FlagTokensEstimated, s.completion.Basis == exchange.BasisEstimated)
	a.flag(FlagHiddenReasoning, s.hidden)
	a.flag(FlagUsagePartial, t.Usage != nil && t.Usage.Partial)
	a.flag(FlagPerChoiceUsage, t.Usage != nil && t.Usage.PerChoice)
	a.flag(FlagEcho, a.Request.Echo)
	a.flag(FlagShortAnswer, a.Outcome == exchange.OutcomeComplete && !limitAdded(x) && shortAnswer(s.completion, a.Request))
	a.flag(FlagUnterminatedLast, t.UnterminatedLast)
	a.flag(string(t.Suspect), t.Suspect != "" && hasDialect(x, t))
	a.flag(FlagEventsAfterDone, t.AfterDone > 0)
	a.flag(FlagTruncatedTail, t.TruncatedTail)
	a.flag(FlagContentCoded, t.Coding != "")
	a.flag(FlagCodingError, t.CodingError != "")
	a.flag(FlagRecordTruncated, x.State == exchange.StateTruncated || !x.Response.Body.Whole())
	a.flag(FlagOversizedEvent, t.Oversized > 0)
	complete := a.Outcome == exchange.OutcomeComplete
	proper := x.End == exchange.EndEOF || x.End == exchange.EndClientGone // a client need not wait for what follows the end
	a.flag(FlagUncleanEnd, complete && x.Tunnel == nil && !proper)
	a.flag(FlagOutcomeUnverified, complete && hasDialect(x, t) && !t.DialectEnd)
}

// limitAdded reports whether the output limit is one that nobody asked for.
func limitAdded(x *exchange.Exchange) bool {
	return slices.ContainsFunc(x.Interventions, func(v exchange.Intervention) bool { return v.Kind == exchange.KindLimitAdded })
}

// shortAnswer reports whether an answer stayed below half of its output limit. Whatever ended it: also one that a
// context limit cut is too short to be a sample of the decode rate.
func shortAnswer(completion exchange.Figure, r wire.RequestFacts) bool {
	if r.MaxTokens == nil || !completion.Present() {
		return false
	}
	limit := float64(*r.MaxTokens) * float64(max(r.N, 1))
	return 2*completion.Value < limit
}

func measured(v float64, unit string) exchange.Figure {
	return exchange.Figure{Value: v, Unit: unit, Basis: exchange.BasisMeasured}
}

func reported(v float64, unit string) exchange.Figure {
	return exchange.Figure{Value: v, Unit: unit, Basis: exchange.BasisReported}
}

// rate is a measured figure built on a count: it is an estimate when the count is one.
func rate(v float64, unit string, count exchange.Figure) exchange.Figure {
	f := measured(v, unit)
	if count.Basis == exchange.BasisEstimated {
		f.Basis = exchange.BasisEstimated
	}
	return f
}
