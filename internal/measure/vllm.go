package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Figures that only load generators define.
const (
	SetITLMS   = "itl_ms"   // time between tokens or events of one answer: the mean over the answer, whatever the tool's gaps are
	SetNTPOTMS = "ntpot_ms" // inference-perf: the whole latency over the tokens
)

// VLLM measures by the rules of vllm bench serve: TTFT is the first event with an entry in choices, also one that names
// only the role; latency ends at the last such event with content; TPOT is the rest over the tokens after the first; ITL are
// the gaps between events. It counts by usage; its own tokenizer, which stands in without usage, is not run here.
func VLLM(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, anyContent)
	r := v.loadRow("vllm")
	if first, ok := v.firstChoice(); ok && r.OK {
		r.Figures[TTFTMS] = measured(first, unitMS)
		r.Figures[TotalWallMS] = r.Figures[LastTokenMS]
		v.gapsAndTPOT(r.Figures, first, v.last)
	}
	return r
}

// anyContent are all kinds of generated content.
const anyContent = wire.KindText | wire.KindReasoning | wire.KindRefusal | wire.KindTool

// firstChoice is the instant of the first event that belongs to the answer, in ms: not one that only says what the engine
// is at, or that only counts.
func (v toolView) firstChoice() (ms float64, ok bool) {
	if !v.streamed || !v.sent {
		return 0, false
	}
	for i := range v.t.Events {
		e := &v.t.Events[i]
		inRecord := e.Read >= 0 && e.Read < len(v.x.Timeline.Reads)
		if inRecord && !e.Done && (e.Kinds != 0 || e.Phase == wire.PhaseNone && e.Running < 0) {
			return float64(v.x.Timeline.Reads[e.Read].At-v.t0) / nsPerMS, true
		}
	}
	return 0, false
}

// loadRow is a row with the figures of the load generators, all absent but those that need no rule.
func (v toolView) loadRow(set string) Row {
	r := v.row(set, v.failure())
	for _, name := range []string{AnswerTTFTMS, SetITLMS, TPOTMS, SetNTPOTMS} {
		r.Figures[name] = exchange.Absent(unitMS, ReasonNotReported)
	}
	return r
}

// gapsAndTPOT sets ITL to the mean gap between the events of the tool's kinds from first on, and TPOT to what lies between
// first and end over the tokens after the first.
func (v toolView) gapsAndTPOT(fs exchange.Figures, first, end float64) {
	events := 0
	for i := range v.events {
		if ms := float64(v.events[i].at) / nsPerMS; ms > first {
			events++
		}
	}
	fs[SetITLMS] = over(v.last-first, float64(events), measured(1, unitEvents))
	fs[TPOTMS] = afterFirst(end-first, fs[CompletionTokens])
}

// afterFirst is a time in ms over the tokens after the first.
func afterFirst(ms float64, tokens exchange.Figure) exchange.Figure {
	if !tokens.Present() {
		return exchange.Absent(unitMS, tokens.Reason)
	}
	return over(ms, tokens.Value-1, tokens)
}

// over is a time in ms over a count.
func over(ms, count float64, basis exchange.Figure) exchange.Figure {
	if count <= 0 {
		return exchange.Absent(unitMS, ReasonTooFewTokens)
	}
	return rate(ms/count, unitMS, basis)
}
