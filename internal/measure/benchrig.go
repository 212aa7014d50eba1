package measure

import (
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

const (
	benchRigFloorMS   = 1.0 // shortest window it divides by
	benchRigFlagMS    = 1.5 // windows below are marked as floored
	benchRigWordRatio = 1.3 // tokens a word, for an answer without usage
)

// BenchRig measures by the rules of BenchRig: all tokens over the time from the first token to the end of the stream;
// tool calls do not start TTFT; broken events are skipped; prefill only where the engine gives it. On Ollama's own API
// it takes the engine's decode rate, and divides all prompt tokens by the time of the uncached ones. It guesses a
// missing prompt count from the words of the prompt (BenchRigPromptGuess); that guess is left absent here.
func BenchRig(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, wire.KindText|wire.KindReasoning)
	r := v.row("benchrig", v.failure())
	fs := r.Figures
	fs[AnswerTTFTMS] = v.firstOf(wire.KindText)
	if !r.OK {
		return r
	}
	if !fs[CompletionTokens].Present() {
		fs[CompletionTokens] = exchange.Figure{Value: v.benchRigGuess(), Unit: unitTokens, Basis: exchange.BasisEstimated}
	}
	if p := t.Timings; p != nil {
		if tps, ok := engineRate(p.PrefillTPS, p.PrefillN, p.PrefillMS); ok {
			fs[PrefillTPS] = reported(tps, unitTPS)
		}
		if tps, ok := engineRate(nil, p.DecodeN, p.DecodeMS); ok && t.Dialect == wire.DialectOllama {
			fs[DecodeTPS], r.DecodeSource = reported(tps, unitTPS), SourceEngine
			return r
		}
	}
	if !v.hasTok || !v.hasEnd {
		return r
	}
	n := fs[CompletionTokens]
	tps, floored := BenchRigDecode(n.Value, v.end-v.ttft)
	fs[DecodeTPS], r.Floored, r.DecodeSource = rate(tps, unitTPS, n), floored, SourceStreamWindow
	return r
}

// BenchRigDecode is BenchRig's rate of tokens over a window in ms, which it takes as at least 1 ms, and whether it
// marks the rate for that.
func BenchRigDecode(tokens, windowMS float64) (tps float64, floored bool) {
	if tokens <= 0 {
		return 0, false
	}
	return tokens / max(windowMS, benchRigFloorMS) * 1000, windowMS < benchRigFlagMS
}

// BenchRigPromptGuess is its prompt count without usage: the words of the prompt times 1.3, rounded down, and at least 1.
func BenchRigPromptGuess(prompt string) int {
	return max(1, int(float64(len(strings.Fields(prompt)))*benchRigWordRatio))
}

// benchRigGuess is its completion count without usage: parsed events of a stream, words of a whole answer.
func (v toolView) benchRigGuess() float64 {
	if !v.streamed {
		return float64(BenchRigPromptGuess(v.t.Choice0().Text))
	}
	n := 0
	for i := range v.t.Events {
		if !v.t.Events[i].Done {
			n++
		}
	}
	return float64(max(n-v.t.ParseErrors, 0))
}
