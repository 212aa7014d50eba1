package measure

import (
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// tokens publishes the counts.
func (a *Analysis) tokens(s *stream) {
	a.set(PromptTokens, s.prompt)
	a.set(CompletionTokens, s.completion)
	a.set(CachedTokens, s.cached)
	a.set(ReasoningTokens, s.reasoning)
	a.set(ReasoningChars, s.reasoningChars())
	a.set(TokenEvents, s.tokenEvents())
}

// reasoningChars is the length of the reasoning that came, whether or not the engine counts its tokens.
func (s *stream) reasoningChars() exchange.Figure {
	switch {
	case !s.dialect:
		return exchange.Absent(unitChars, ReasonNoDialect)
	case s.x.Response.Status == 0:
		return exchange.Absent(unitChars, ReasonNoResponse)
	case s.cut:
		return exchange.Absent(unitChars, ReasonRecordTruncated)
	}
	n := 0
	for i := range s.t.Choices {
		n += utf8.RuneCountInString(s.t.Choices[i].Reasoning)
	}
	return measured(float64(n), unitChars)
}

func (s *stream) tokenEvents() exchange.Figure {
	switch {
	case !s.dialect:
		return exchange.Absent(unitEvents, ReasonNoDialect)
	case !s.streamed:
		return exchange.Absent(unitEvents, ReasonNotStreamed)
	}
	return measured(float64(len(s.events)), unitEvents)
}

// count finds the token counts. The engine's last usage goes first; where it is silent, the counts beside the engine's
// own timings; for the completion then the token ids or log-probability entries it sent, and last the number of
// token events, which is an estimate.
func (s *stream) count() {
	missing := ReasonNotReported
	if !s.dialect {
		missing = ReasonNoDialect
	}
	s.prompt = exchange.Absent(unitTokens, missing)
	s.completion, s.cached, s.reasoning = s.prompt, s.prompt, s.prompt
	if t := s.t.Timings; t != nil {
		take(&s.completion, t.DecodeN)
		take(&s.cached, t.CachedN)
		if t.PrefillN != nil && t.CachedN != nil { // without the cached part the whole prompt is not known
			whole := *t.PrefillN + *t.CachedN
			take(&s.prompt, &whole)
		}
	}
	if u := s.t.Usage; u != nil {
		take(&s.prompt, u.Prompt)
		take(&s.cached, u.Cached)
		if s.counts(u) {
			take(&s.completion, u.Completion)
			take(&s.reasoning, u.Reasoning)
		} else if s.completion.Value < float64(len(s.events)) { // the counts beside the times hold a place as well
			s.completion = exchange.Absent(unitTokens, missing)
		}
		if u.PerChoice {
			s.completion = exchange.Absent(unitTokens, ReasonPerChoice)
			s.reasoning = s.completion
			if s.prompts > 1 { // the prompt is that of one choice as well
				s.prompt, s.cached = s.completion, s.completion
			}
			return
		}
	}
	if !s.completion.Present() && s.dialect {
		s.completion = s.countedCompletion()
	}
}

// counts reports whether a usage counts the answer. One that opened it, or that stayed behind it and has fewer tokens
// than there were token events, tells the prompt alone: its completion holds a place.
func (s *stream) counts(u *wire.Usage) bool {
	behind := u.Partial && u.Completion != nil && *u.Completion < int64(len(s.events))
	return !u.Opening && !behind
}

// take replaces the figure by a count the engine reports.
func take(f *exchange.Figure, n *int64) {
	if n != nil {
		*f = reported(float64(*n), unitTokens)
	}
}

// countedCompletion is the completion count of an answer that reports none.
func (s *stream) countedCompletion() exchange.Figure {
	if n := max(s.t.TokenIDs, s.t.LogprobEntries); n > 0 && !s.echo && !s.cut {
		return reported(float64(n), unitTokens)
	}
	if s.streamed && s.cut {
		return exchange.Absent(unitTokens, ReasonRecordTruncated)
	}
	if !s.streamed || s.echo || len(s.events) == 0 {
		return exchange.Absent(unitTokens, ReasonNotReported)
	}
	return exchange.Figure{Value: float64(len(s.events)), Unit: unitTokens, Basis: exchange.BasisEstimated}
}
