package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// ToolEval measures by the rules of tool-eval-bench: its throughput test takes the response head for TTFT and ends the
// decode window at the last token where the wire names token ids, else at the end of the stream; its speculation test
// (effective_tg_tps) takes the first content or tool call for TTFT and the whole request for the end.
func ToolEval(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, wire.KindText|wire.KindTool)
	r := v.row("tool-eval", v.failure())
	fs := r.Figures
	fs[TTFTMS] = v.since(x.Timeline.HeaderRead, ReasonNoResponse)
	fs[SetEffectiveTPS] = exchange.Absent(unitTPS, ReasonNotReported)
	n := fs[CompletionTokens]
	if !r.OK || !n.Present() || !v.hasEnd {
		return r
	}
	if !v.hasTok || n.Value == 1 {
		fs[SetEffectiveTPS] = perSecond(n.Value, v.end, n)
	} else {
		fs[SetEffectiveTPS] = perSecond(n.Value-1, v.end-v.ttft, n)
	}
	if v.hasTok {
		fs[DecodeTPS] = v.toolEvalDecode(n)
		r.DecodeSource = sourceOf(fs[DecodeTPS], SourceStreamWindow)
	}
	return r
}

func (v toolView) toolEvalDecode(n exchange.Figure) exchange.Figure {
	window := v.end - v.ttft
	if v.t.TokenIDs > 0 {
		window = v.last - v.ttft
	}
	if n.Value == 1 {
		return perSecond(1, window, n)
	}
	return perSecond(n.Value-1, window, n)
}

// Speculation is what tool-eval-bench makes of one answer with speculative decoding.
type Speculation struct {
	Drafted, Accepted, Steps float64
	Completion               float64 // tokens of the answer
	TTFTMS, TotalMS          float64
	BaselineTPS              float64 // rate without drafts, 0 when not measured
}

// Figures are its ratios and rates. Those without evidence are absent.
func (s Speculation) Figures() exchange.Figures {
	seconds := (s.TotalMS - s.TTFTMS) / 1000
	over := func(unit string, a, b float64) exchange.Figure {
		if b <= 0 {
			return exchange.Absent(unit, ReasonNoDrafts)
		}
		return reported(a/b, unit)
	}
	acceptance := over(unitRatio, s.Accepted, s.Drafted)
	waste := acceptance
	waste.Value = 1 - waste.Value
	length := over(unitTokens, s.Accepted, s.Steps)
	length.Value++
	effective := over(unitTPS, s.Completion-1, seconds)
	return exchange.Figures{
		"acceptance_rate":    acceptance,
		"acceptance_length":  length,
		"draft_window":       over(unitTokens, s.Drafted, s.Steps),
		SetEffectiveTPS:      effective,
		"goodput":            over(unitTPS, s.Accepted, seconds),
		"draft_tps":          over(unitTPS, s.Drafted, seconds),
		"waste_ratio":        waste,
		"verify_steps_per_s": over("steps/s", s.Steps, seconds),
		"speedup_ratio":      over(unitRatio, effective.Value, s.BaselineTPS),
	}
}

// PooledAcceptance is the acceptance of several answers together: the ratio of the sums, not the mean of the ratios.
func PooledAcceptance(answers []Speculation) exchange.Figure {
	var pool Speculation
	for _, a := range answers {
		pool.Accepted += a.Accepted
		pool.Drafted += a.Drafted
	}
	return pool.Figures()["acceptance_rate"]
}
