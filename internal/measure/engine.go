package measure

import (
	"math"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// differsFrom is the share by which our rate and the engine's may part before the exchange is flagged.
const differsFrom = 0.05

// engine derives what the engine says about itself, and how far our clock agrees.
func (a *Analysis) engine(s *stream) {
	prefill, decode, ttft := s.engineFigures()
	a.set(EnginePrefillTPS, prefill)
	a.set(EngineDecodeTPS, decode)
	a.set(EngineTTFTMS, ttft)
	ours := a.Figures[PrefillUncachedTPS] // an engine's prefill rate covers what it had to read
	if !ours.Present() {
		ours = a.Figures[PrefillTPS]
	}
	a.set(PrefillEngineDiff, difference(ours, prefill))
	a.set(DecodeEngineDiff, difference(a.Figures[DecodeTPS], decode))
	a.flag(FlagPrefillDiffers, parted(a.Figures[PrefillEngineDiff]))
	a.flag(FlagDecodeDiffers, parted(a.Figures[DecodeEngineDiff]))
}

// engineFigures are the engine's own rates: as it states them, else its count over its duration.
func (s *stream) engineFigures() (prefill, decode, ttft exchange.Figure) {
	missing := ReasonNotReported
	if !s.dialect {
		missing = ReasonNoDialect
	}
	prefill, decode, ttft = exchange.Absent(unitTPS, missing), exchange.Absent(unitTPS, missing), exchange.Absent(unitMS, missing)
	t := s.t.Timings
	if t == nil {
		return prefill, decode, ttft
	}
	if v, ok := engineRate(t.PrefillTPS, t.PrefillN, t.PrefillMS); ok {
		prefill = reported(v, unitTPS)
	}
	switch v, ok := engineRate(t.DecodeTPS, t.DecodeN, t.DecodeMS); {
	case t.DecodeN != nil && *t.DecodeN < 2: // llama.cpp calls one token a million a second
		decode = exchange.Absent(unitTPS, ReasonTooFewTokens)
	case ok:
		decode = reported(v, unitTPS)
	}
	if t.TTFTMS != nil && usable(*t.TTFTMS) {
		ttft = reported(*t.TTFTMS, unitMS)
	}
	return prefill, decode, ttft
}

func engineRate(stated *float64, n *int64, ms *float64) (v float64, ok bool) {
	if stated != nil && usable(*stated) {
		return *stated, true
	}
	if n != nil && ms != nil && *n > 0 && usable(*ms) {
		return float64(*n) / *ms * 1000, true
	}
	return 0, false
}

// usable reports whether a number of the engine says anything: some send 0 or nonsense for a phase they skipped.
func usable(v float64) bool { return v > 0 && !math.IsInf(v, 0) && !math.IsNaN(v) }

func difference(ours, engine exchange.Figure) exchange.Figure {
	if !ours.Present() || !engine.Present() {
		return exchange.Absent(unitRatio, ReasonNotComparable)
	}
	f := ours
	f.Value, f.Unit = ours.Value/engine.Value-1, unitRatio
	return f
}

func parted(diff exchange.Figure) bool { return diff.Present() && math.Abs(diff.Value) > differsFrom }
