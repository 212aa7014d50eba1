package telemetry

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Served is a request that a stand-in answered with what was recorded.
type Served struct {
	Method   string
	Target   string               // credentials masked
	Trace    []exchange.Header    // headers of the request that name its place in a trace
	Key      string               // of the request
	Recorded exchange.ID          // of the answer
	Span     exchange.SpanContext // of the recorded exchange; zero where it was in no trace
	Status   int                  // 0 for an answer without a head
	Start    time.Time            // the request was read whole
	Took     time.Duration        // from then to the end of the answer
	Sent     int64                // bytes, head and framing included
	Cut      bool                 // the client left before the end
}

// Miss is a request that a stand-in had no recorded answer to.
type Miss struct {
	Method  string
	Target  string            // credentials masked
	Trace   []exchange.Header // headers of the request that name its place in a trace
	Key     string
	Why     string      // one of few words
	Text    string      // for people
	Nearest exchange.ID // of what is recorded, "" for none
	Differs []string    // where the request differs from that
}

// Served tells of an answer as a span that is linked to the recorded exchange, which took place in another trace.
func (r *Run) Served(a Served) {
	if r == nil {
		return
	}
	r.count(false)
	at, sampled := r.placeOf(a.Trace)
	if !sampled {
		return
	}
	s := &at.span
	s.start, s.end = a.Start.UTC(), a.Start.Add(a.Took).UTC()
	s.name = s.request(a.Method, a.Target, a.Key)
	s.attrs.status(a.Status)
	s.attrs.int(ourSent, a.Sent)
	s.attrs.str(ourMode, serveMode)
	s.attrs.str(ourReplayed, string(a.Recorded))
	if a.Span.Valid() {
		s.links = append(s.links, a.Span)
	}
	switch {
	case a.Cut:
		s.attrs.str(errorType, errClient) // what a client does is no error of the server
	case a.Status >= 500:
		s.failed, s.why = true, "the recorded answer is a failure"
	}
	r.t.later(at)
}

// Miss tells of a miss as a span that lasts no time: nothing was sent that would have a length. The run counts them.
func (r *Run) Miss(m Miss) {
	if r == nil {
		return
	}
	r.count(true)
	at, sampled := r.placeOf(m.Trace)
	if !sampled {
		return
	}
	s := &at.span
	now := clock.Now().UTC()
	s.start, s.end, s.failed, s.why = now, now, true, nameableTo(m.Text, maxTold)
	s.name = "miss " + s.request(m.Method, m.Target, m.Key)
	s.attrs.str(ourMode, serveMode)
	s.attrs.str(errorType, "replay_miss")
	s.attrs.str(ourMiss, m.Why)
	s.attrs.str(ourNearest, string(m.Nearest))
	s.attrs.strs(ourDiffers, m.Differs)
	r.t.later(at)
}

// serveMode is the mode of what a stand-in answers, and of its run.
const serveMode = "serve"

func (r *Run) count(miss bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	if miss {
		r.misses++
	}
}

// placeOf is the place of the span of a request that a client sent to a run: in the trace that the client began, with a
// link to the run, or below the run. sampled is false where it is not exported.
func (r *Run) placeOf(headers []exchange.Header) (at single, sampled bool) {
	at = single{parent: r.own, own: exchange.SpanContext{Trace: r.own.Trace, Span: newSpanID(), Sampled: r.own.Sampled}}
	at.span.kind = trace.SpanKindServer
	if !r.t.o.Settings.Propagate {
		return at, at.own.Sampled
	}
	if parent, state := inbound(headers); parent.Valid() {
		at.parent, at.remote, at.state = parent, true, state
		at.own.Trace, at.own.Sampled = parent.Trace, r.t.o.Settings.Sampler.takes(parent.Trace, parent)
		at.span.links = r.link()
	}
	return at, at.own.Sampled
}

// link is the run's own span, to be found by from the trace of a client; nothing where it is not exported.
func (r *Run) link() []exchange.SpanContext {
	if !r.own.Sampled {
		return nil
	}
	return []exchange.SpanContext{r.own}
}

// request adds what was asked for and gives the name of its span.
func (s *span) request(method, target, key string) (name string) {
	path, query, _ := strings.Cut(target, "?")
	name = s.attrs.method(method)
	if route := routeOf(path); route != "" {
		name += " " + route
		s.attrs.str(httpRoute, route)
	}
	s.attrs.str(urlPath, path)
	s.attrs.str(urlQuery, query)
	s.attrs.str(ourHash, key)
	return name
}

// Clients is the Tracer of a session through which clients of the run reach an engine.
func (r *Run) Clients() *ClientsTracer { return &ClientsTracer{run: r} }

// ClientsTracer places exchanges that clients of a run asked for: in the trace that the client began, or below the run.
type ClientsTracer struct{ run *Run }

// Trace is the place of an exchange.
func (c *ClientsTracer) Trace(id exchange.ID, cell string, headers []exchange.Header, served bool) []exchange.Header {
	r := c.run
	if r.t.o.Settings.Propagate {
		if parent, state := inbound(headers); parent.Valid() {
			r.count(false)
			return r.t.enter(id, place{parent: parent, remote: true, state: state, links: r.link()}, served, headers)
		}
	}
	return r.Trace(id, cell, headers, served)
}
