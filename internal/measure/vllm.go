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
// only the role; ITL are the gaps from each further such event, also the one that only finishes, to the event before it; latency
// ends at the last event before the end marker, on the completions path at the last with an entry in choices; TPOT is the rest
// after TTFT over the tokens after the first. It counts by usage; its own tokenizer, which stands in without usage, is not run here.
func VLLM(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, anyContent)
	r := v.loadRow("vllm")
	loop := v.vllmLoop()
	if fs := r.Figures; loop.began && r.OK {
		fs[TTFTMS], fs[TotalWallMS] = measured(loop.first, unitMS), measured(loop.last, unitMS)
		fs[SetITLMS] = over(loop.gaps, float64(loop.n), measured(1, unitEvents))
		fs[TPOTMS] = afterFirst(loop.last-loop.first, fs[CompletionTokens])
	}
	return r
}

// vllmLoop is what its loop over the events keeps, in ms from the send.
type vllmLoop struct {
	began       bool
	first, last float64
	gaps        float64 // sum
	n           int     // of gaps
}

func (v toolView) vllmLoop() (l vllmLoop) {
	if !v.streamed || !v.sent {
		return l
	}
	onlyChoices := v.t.Dialect == wire.DialectCompletions
	for i := range v.t.Events {
		e := &v.t.Events[i]
		if e.Done || e.Read < 0 || e.Read >= len(v.x.Timeline.Reads) {
			continue
		}
		at := float64(v.x.Timeline.Reads[e.Read].At-v.t0) / nsPerMS
		choice := ofAnswer(e)
		switch {
		case choice && !l.began:
			l.began, l.first = true, at
		case choice:
			l.gaps += at - l.last
			l.n++
		}
		if choice || !onlyChoices {
			l.last = at
		}
	}
	return l
}

// ofAnswer reports whether an event belongs to the answer: not one that only says what the engine is at, or that only counts.
func ofAnswer(e *wire.Event) bool {
	return e.Kinds != 0 || e.Phase == wire.PhaseNone && e.Running < 0
}

// anyContent are all kinds of generated content.
const anyContent = wire.KindText | wire.KindReasoning | wire.KindRefusal | wire.KindTool

// loadRow is a row with the figures of the load generators, all absent but those that need no rule.
func (v toolView) loadRow(set string) Row {
	r := v.row(set, v.failure())
	for _, name := range []string{AnswerTTFTMS, SetITLMS, TPOTMS, SetNTPOTMS} {
		r.Figures[name] = exchange.Absent(unitMS, ReasonNotReported)
	}
	return r
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
