package replay

import (
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// Given is a recorded answer that a stand-in gave to a request.
type Given struct {
	Key      string // of the request
	Method   string
	Target   string               // secrets masked
	Trace    []exchange.Header    // headers of the request that name its place in a trace
	Recorded exchange.ID          // of the answer
	Span     exchange.SpanContext // that the engine got with the recorded request; zero for none
	Status   int                  // 0 for an answer without a head
	Read     time.Time            // the request was read whole
	Took     time.Duration        // from then to the end of the answer
	Sent     int64                // bytes, head and framing included
	Cut      bool                 // the client left before, or the stand-in was ended
	Relaxed  bool                 // by a relax rule
	Again    bool                 // it was given before
}

// given tells of an answer.
func (s *StandIn) given(x *exchange.Exchange, a *inquiry, found match, r sim.Record) {
	if s.o.OnAnswer == nil {
		return
	}
	span, _ := exchange.SentTrace(x.Interventions) // zero for none
	s.o.OnAnswer(Given{
		Key: a.key.Key, Method: a.request.Method, Target: a.request.Target, Trace: traceOf(r.Headers),
		Recorded: x.ID, Span: span, Status: x.Response.Status, Read: time.Unix(0, r.Wall), Took: time.Duration(r.End), Sent: int64(r.SentLen),
		Cut: r.Ended != sim.EndedSent, Relaxed: found.relaxed, Again: found.again,
	})
}

// traceOf are the headers that name the place of a request in a trace.
func traceOf(headers []exchange.Header) (out []exchange.Header) {
	for _, h := range headers {
		if strings.EqualFold(h.Name, exchange.TraceParentHeader) || strings.EqualFold(h.Name, exchange.TraceStateHeader) {
			out = append(out, h)
		}
	}
	return out
}
