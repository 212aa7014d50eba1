package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Miss is a request that a stand-in had no recorded answer to.
type Miss struct {
	Method  string
	Target  string // credentials masked
	Key     string
	Why     string      // one of few words
	Text    string      // for people
	Nearest exchange.ID // of what is recorded, "" for none
	Differs []string    // where the request differs from that
}

// Miss tells of a miss as a span of its own below the run, at once: nothing was sent that would have a length. The run
// counts them.
func (r *Run) Miss(m Miss) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.misses++
	r.mu.Unlock()
	if !r.own.Sampled {
		return
	}
	now := clock.Now().UTC()
	s := span{kind: trace.SpanKindServer, start: now, end: now, failed: true, why: nameableTo(m.Text, maxTold)}
	path, query, _ := strings.Cut(m.Target, "?")
	s.name = "miss " + s.attrs.method(m.Method)
	if route := routeOf(path); route != "" {
		s.name += " " + route
		s.attrs.str(httpRoute, route)
	}
	s.attrs.str(urlPath, path)
	s.attrs.str(urlQuery, query)
	s.attrs.str(ourHash, m.Key)
	s.attrs.str(errorType, "replay_miss")
	s.attrs.str(ourMiss, m.Why)
	s.attrs.str(ourNearest, string(m.Nearest))
	s.attrs.strs(ourDiffers, m.Differs)
	r.t.emit(r.own, false, exchange.SpanContext{Trace: r.own.Trace, Span: newSpanID(), Sampled: true}, "", &s)
}
