package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// GuideLLM measures by the rules of GuideLLM: TTFT is the first content of any kind, and the first of the answer stands
// beside it; ITL is the time from first to last content over the tokens after the first; TPOT is the time from the send to
// the last content over all tokens, the first included; latency ends with the stream.
func GuideLLM(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, anyContent)
	r := v.loadRow("guidellm")
	fs := r.Figures
	if !r.OK || !v.hasTok {
		return r
	}
	fs[AnswerTTFTMS] = v.firstOf(wire.KindAnswer)
	n := fs[CompletionTokens]
	fs[SetITLMS] = afterFirst(v.last-v.ttft, n)
	fs[TPOTMS] = overAll(v.last, n)
	return r
}

// overAll is a time in ms over all tokens.
func overAll(ms float64, tokens exchange.Figure) exchange.Figure {
	if !tokens.Present() {
		return exchange.Absent(unitMS, tokens.Reason)
	}
	return over(ms, tokens.Value, tokens)
}
