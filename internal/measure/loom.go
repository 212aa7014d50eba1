package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Loom measures by the rules of Loom's benchmark: tokens after the first over the request without its TTFT, to the end
// of the stream and not to the last token; prompt over TTFT. It takes llama.cpp's rates from the engine.
func Loom(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, wire.KindText|wire.KindReasoning|wire.KindTool)
	r := v.row("loom", v.failure())
	if !r.OK || !v.hasTok {
		return r
	}
	fs := r.Figures
	n := fs[CompletionTokens]
	fs[PrefillTPS] = perSecond(fs[PromptTokens].Value, v.ttft, fs[PromptTokens])
	fs[DecodeTPS] = perSecond(n.Value-1, v.end-v.ttft, n)
	r.DecodeSource = sourceOf(fs[DecodeTPS], SourceStreamWindow)
	if tps, ok := statedDecode(t); ok && t.Timings.Source == "timings" {
		fs[DecodeTPS], r.DecodeSource = reported(tps, unitTPS), SourceEngine
		if p := t.Timings.PrefillTPS; p != nil && usable(*p) {
			fs[PrefillTPS] = reported(*p, unitTPS)
		}
	}
	return r
}

// LoomCounts reports whether Loom takes an answer as a sample of the decode rate: from half of the limit on.
func LoomCounts(completion, maxTokens int64) bool { return 2*completion >= maxTokens }
