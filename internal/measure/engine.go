package measure

import (
	"math"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// differsFrom is the share by which our rate and the engine's may part before the exchange is flagged.
const differsFrom = 0.05

// minCompared is the number of tokens a rate must rest on before its difference is flagged: below, the rounding of the
// engine's times, one late stamp and the token that one side counts and the other does not are worth more than 5 %.
const minCompared = 20

// engine derives what the engine says about itself, and how far our clock agrees.
func (a *Analysis) engine(s *stream) {
	prefill, decode := s.enginePrefill(), s.engineDecode()
	a.set(EnginePrefillTPS, prefill)
	a.set(EnginePrefillMaxTPS, s.enginePrefillMax())
	a.set(EngineDecodeTPS, decode)
	a.set(EngineTTFTMS, s.engineTTFT())
	ours, prompt := a.Figures[PrefillUncachedTPS], s.prompt.Value-s.cached.Value // an engine's prefill rate covers what it had to read
	if !ours.Present() {
		ours, prompt = a.Figures[PrefillTPS], s.prompt.Value
	}
	a.set(PrefillEngineDiff, difference(ours, prefill))
	a.set(DecodeEngineDiff, difference(a.Figures[DecodeTPS], decode))
	a.flag(FlagPrefillDiffers, parted(a.Figures[PrefillEngineDiff], prompt))
	a.flag(FlagDecodeDiffers, parted(a.Figures[DecodeEngineDiff], s.completion.Value))
}

// silent is a figure of the engine that it does not report.
func (s *stream) silent(unit string) exchange.Figure {
	if !s.dialect {
		return exchange.Absent(unit, ReasonNoDialect)
	}
	return exchange.Absent(unit, ReasonNotReported)
}

// enginePrefill is the engine's prefill rate as it states it, else the tokens it read over the time it took. Some count
// cached tokens among them, or give a time without a count: then the cached part has to be known.
func (s *stream) enginePrefill() exchange.Figure {
	t := s.t.Timings
	if t == nil {
		return s.silent(unitTPS)
	}
	n := t.PrefillN
	if n == nil || t.PrefillCounts {
		n = s.uncached()
	}
	if v, ok := engineRate(t.PrefillTPS, n, t.PrefillMS); ok {
		return reported(v, unitTPS)
	}
	if n == nil && t.PrefillMS != nil && usable(*t.PrefillMS) && s.prompt.Present() {
		return exchange.Absent(unitTPS, ReasonCachedUnknown)
	}
	return s.silent(unitTPS)
}

// uncached is the number of prompt tokens that did not come from a cache, nil when the engine does not say.
func (s *stream) uncached() *int64 {
	if !s.prompt.Present() || !s.cached.Present() {
		return nil
	}
	n := int64(s.prompt.Value - s.cached.Value)
	return &n
}

// enginePrefillMax is an upper bound where the rate itself cannot be known.
func (s *stream) enginePrefillMax() exchange.Figure {
	t := s.t.Timings
	if t == nil || !s.prompt.Present() || s.prompt.Value <= 0 || t.PrefillMS == nil || !usable(*t.PrefillMS) {
		return s.silent(unitTPS)
	}
	return reported(s.prompt.Value / *t.PrefillMS * 1000, unitTPS)
}

func (s *stream) engineDecode() exchange.Figure {
	t := s.t.Timings
	if t == nil {
		return s.silent(unitTPS)
	}
	if t.DecodeN != nil && *t.DecodeN < 2 { // llama.cpp calls one token a million a second
		return exchange.Absent(unitTPS, ReasonTooFewTokens)
	}
	if v, ok := engineRate(t.DecodeTPS, t.DecodeN, t.DecodeMS); ok {
		return reported(v, unitTPS)
	}
	return s.silent(unitTPS)
}

func (s *stream) engineTTFT() exchange.Figure {
	if t := s.t.Timings; t != nil && t.TTFTMS != nil && usable(*t.TTFTMS) {
		return reported(*t.TTFTMS, unitMS)
	}
	return s.silent(unitMS)
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

// parted reports whether a difference of rates over so many tokens is worth a flag.
func parted(diff exchange.Figure, tokens float64) bool {
	return diff.Present() && tokens >= minCompared && math.Abs(diff.Value) > differsFrom
}
