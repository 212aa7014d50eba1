package measure

import "github.com/benchproxy/benchproxy/internal/exchange"

const nsPerSecond = 1e9

const (
	// maxCachedShare is the part of a prompt that may come from a cache before prompt tokens over TTFT says nothing
	// about prefill.
	maxCachedShare = 0.05
	// minUncached is the number of uncached prompt tokens from which on their rate says something.
	minUncached = 32
)

// rates derives the speeds on our clock.
func (a *Analysis) rates(s *stream) {
	ttft := a.Figures[TTFTMS]
	a.set(PrefillTPS, s.prefill(ttft))
	a.set(PrefillUncachedTPS, s.prefillUncached(ttft))
	a.set(DecodeTPS, s.decode())
	a.set(DecodeFirstEventTPS, s.decodeFirstEvent())
	a.set(TPOTMS, s.tpot())
	a.set(WallTPS, s.wall(a.Figures[TotalWallMS]))
}

// prefillBlocked is why there can be no prefill rate of any kind, or "".
func (s *stream) prefillBlocked(ttft exchange.Figure) exchange.Reason {
	switch {
	case !ttft.Present():
		return ttft.Reason
	case !s.prompt.Present():
		return s.prompt.Reason
	case s.hidden: // the tokens that were not shown were decoded before the first that was
		return ReasonHiddenReasoning
	case ttft.Value <= 0:
		return ReasonZeroWindow
	}
	return ""
}

func (s *stream) prefill(ttft exchange.Figure) exchange.Figure {
	if why := s.prefillBlocked(ttft); why != "" {
		return exchange.Absent(unitTPS, why)
	}
	if s.cached.Present() && s.cached.Value > maxCachedShare*s.prompt.Value {
		return exchange.Absent(unitTPS, ReasonCached)
	}
	return measured(s.prompt.Value/ttft.Value*1000, unitTPS)
}

func (s *stream) prefillUncached(ttft exchange.Figure) exchange.Figure {
	if why := s.prefillBlocked(ttft); why != "" {
		return exchange.Absent(unitTPS, why)
	}
	if !s.cached.Present() {
		return exchange.Absent(unitTPS, ReasonCachedUnknown)
	}
	uncached := s.prompt.Value - s.cached.Value
	if uncached < minUncached {
		return exchange.Absent(unitTPS, ReasonCached)
	}
	return measured(uncached/ttft.Value*1000, unitTPS)
}

// window is the decode window, first to last token, in seconds. why says what forbids a rate over it.
func (s *stream) window() (seconds float64, why exchange.Reason) {
	if why := s.noTokens(); why != "" {
		return 0, why
	}
	switch {
	case s.cut:
		return 0, ReasonRecordTruncated
	case s.buffered:
		return 0, ReasonBuffered
	case s.hidden:
		return 0, ReasonHiddenReasoning
	case !s.completion.Present():
		return 0, s.completion.Reason
	case len(s.events) == 1:
		return 0, ReasonSingleEvent
	case s.completion.Value < 2:
		return 0, ReasonTooFewTokens
	case s.last() <= s.first() || s.windowTooShort():
		return 0, ReasonZeroWindow
	}
	return float64(s.last()-s.first()) / nsPerSecond, ""
}

func (s *stream) decode() exchange.Figure {
	seconds, why := s.window()
	if why != "" {
		return exchange.Absent(unitTPS, why)
	}
	return rate((s.completion.Value-1)/seconds, unitTPS, s.completion)
}

func (s *stream) tpot() exchange.Figure {
	seconds, why := s.window()
	if why != "" {
		return exchange.Absent(unitMS, why)
	}
	return rate(1000*seconds/(s.completion.Value-1), unitMS, s.completion)
}

// decodeFirstEvent does not count the tokens of the first event: they were all there when the window opens.
func (s *stream) decodeFirstEvent() exchange.Figure {
	seconds, why := s.window()
	if why != "" {
		return exchange.Absent(unitTPS, why)
	}
	first := s.firstEventTokens()
	if first <= 0 {
		return exchange.Absent(unitTPS, ReasonFirstEventTokens)
	}
	rest := s.completion.Value - float64(first)
	if rest <= 0 {
		return exchange.Absent(unitTPS, ReasonTooFewTokens)
	}
	return rate(rest/seconds, unitTPS, s.completion)
}

// firstEventTokens is the number of tokens the first token event brought, 0 when the wire does not say.
func (s *stream) firstEventTokens() int64 {
	if n := s.events[0].Tokens; n > 0 {
		return int64(n)
	}
	return max(s.events[0].Running, 0)
}

func (s *stream) wall(total exchange.Figure) exchange.Figure {
	switch {
	case !total.Present():
		return exchange.Absent(unitTPS, total.Reason)
	case !s.completion.Present():
		return exchange.Absent(unitTPS, s.completion.Reason)
	case total.Value <= 0:
		return exchange.Absent(unitTPS, ReasonZeroWindow)
	}
	return rate(s.completion.Value/total.Value*1000, unitTPS, s.completion)
}
