package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// AIPerf measures by the rules of NVIDIA's aiperf: TTFT is the first content of any kind, TTFO the first of the answer;
// latency ends with the last content; ITL is the time after TTFT over the tokens after the first, and the user's rate is
// its inverse. It counts with a tokenizer unless told to take the engine's usage; here it is told so.
func AIPerf(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, anyContent)
	r := v.loadRow("aiperf")
	fs := r.Figures
	if fs[TotalWallMS] = fs[LastTokenMS]; !r.OK || !v.hasTok {
		return r
	}
	fs[AnswerTTFTMS] = v.firstOf(wire.KindAnswer)
	fs[SetITLMS] = afterFirst(v.last-v.ttft, fs[CompletionTokens])
	if itl := fs[SetITLMS]; itl.Present() {
		fs[DecodeTPS] = perSecond(1, itl.Value, itl)
		r.DecodeSource = sourceOf(fs[DecodeTPS], SourceStreamWindow)
	}
	return r
}
