package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// OTel measures as the conventions of OpenTelemetry name things: a client's time to first chunk stands for TTFT and its
// time per chunk for ITL, whatever the chunks hold; time per token is the rest of the request over the tokens after the
// first.
func OTel(x *exchange.Exchange, t *wire.Transcript) Row {
	v := toolOf(x, t, anyContent)
	r := v.loadRow("otel")
	fs := r.Figures
	first := v.firstEvent()
	if fs[TTFTMS] = first; !r.OK || !first.Present() || !v.hasEnd || !v.streamed {
		return r
	}
	chunks, last := 0, first.Value
	for i := range v.t.Events {
		e := &v.t.Events[i]
		if e.Done || e.Read < 0 || e.Read >= len(v.x.Timeline.Reads) {
			continue
		}
		chunks++
		last = float64(v.x.Timeline.Reads[e.Read].At-v.t0) / nsPerMS
	}
	fs[SetITLMS] = over(last-first.Value, float64(chunks-1), first)
	fs[TPOTMS] = afterFirst(v.end-first.Value, fs[CompletionTokens])
	return r
}
