package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// InferencePerf measures by the rules of inference-perf: only text of the answer counts, so thinking and tool calls have no
// first token; latency ends with the stream; TPOT is the rest after TTFT over the tokens after the first, NTPOT all of it
// over all tokens. It stamps each token of its own tokenizer, whose gaps have the mean that ITL has here.
func InferencePerf(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, wire.KindText)
	r := v.loadRow("inference-perf")
	fs := r.Figures
	if !r.OK || !v.hasEnd {
		return r
	}
	n := fs[CompletionTokens]
	fs[SetNTPOTMS] = overAll(v.end, n)
	if v.hasTok {
		fs[SetITLMS] = afterFirst(v.last-v.ttft, n)
		fs[TPOTMS] = afterFirst(v.end-v.ttft, n)
	}
	return r
}
