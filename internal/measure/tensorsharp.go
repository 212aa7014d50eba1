package measure

import (
	"math/bits"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// tensorSharpTokens are the kinds that move the first and last token of TensorSharp's harness.
const tensorSharpTokens = wire.KindText | wire.KindReasoning | wire.KindTool

// TensorSharp measures by the rules of TensorSharp's engine comparison: a broken data line or an error fails the
// request; a completion count of 0 counts as missing and the number of content and reasoning pieces stands in; the
// engine's own decode rate replaces that of the stream window where it is given.
func TensorSharp(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, tensorSharpTokens)
	failure := v.failure()
	if failure == "" && t.ParseErrors > 0 {
		failure = FailureInvalidJSON
	}
	r := v.row("tensorsharp", failure)
	fs := r.Figures
	deltas := v.tensorSharpDeltas()
	fs[SetTokenDeltas] = measured(float64(deltas), unitEvents)
	fs[AnswerTTFTMS] = v.firstOf(wire.KindAnswer)
	fs[SetDecodeStream] = exchange.Absent(unitTPS, ReasonNotReported)
	if !r.OK {
		return r
	}
	n := fs[CompletionTokens]
	if n.Value == 0 && deltas > 0 { // absent or 0
		n = exchange.Figure{Value: float64(deltas), Unit: unitTokens, Basis: exchange.BasisEstimated}
		fs[CompletionTokens] = n
	}
	if !v.streamed {
		fs[DecodeTPS] = perSecond(n.Value, v.end, n)
		r.DecodeSource = sourceOf(fs[DecodeTPS], SourceRequestWall)
		return r
	}
	if v.hasTok {
		fs[PrefillTPS] = perSecond(fs[PromptTokens].Value, v.ttft, fs[PromptTokens])
		fs[SetDecodeStream] = perSecond(n.Value-1, v.last-v.ttft, n)
	}
	fs[DecodeTPS] = fs[SetDecodeStream]
	r.DecodeSource = sourceOf(fs[DecodeTPS], SourceStreamWindow)
	if tps, ok := statedDecode(t); ok {
		fs[DecodeTPS], r.DecodeSource = reported(tps, unitTPS), SourceEngine
	}
	return r
}

// tensorSharpDeltas counts content and reasoning apart: an event with both counts twice, tool fragments never.
func (v toolView) tensorSharpDeltas() int {
	n := 0
	for i := range v.events {
		n += bits.OnesCount8(uint8(v.events[i].Kinds & (wire.KindText | wire.KindReasoning)))
	}
	return n
}

// statedDecode is the decode rate in the engine's timings object.
func statedDecode(t *wire.Transcript) (tps float64, ok bool) {
	if t.Timings == nil || t.Timings.DecodeTPS == nil || !usable(*t.Timings.DecodeTPS) {
		return 0, false
	}
	return *t.Timings.DecodeTPS, true
}

// sourceOf names the source of a rate that is there.
func sourceOf(f exchange.Figure, s DecodeSource) DecodeSource {
	if !f.Present() {
		return ""
	}
	return s
}
