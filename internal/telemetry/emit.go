package telemetry

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// span is a span that is whole: it began and ended in the past.
type span struct {
	name       string
	kind       trace.SpanKind
	start, end time.Time
	attrs      attributes
	events     []sdktrace.Event
	links      []exchange.SpanContext
	failed     bool
	why        string // of a failed one
}

// attributes are a list that grows by what there is.
type attributes []attribute.KeyValue

// str adds a text that is there, as far as maxValue: most come from a client or an engine.
func (a *attributes) str(name, v string) { a.long(name, cut(v, maxValue)) }

// long adds a text whose length was bounded elsewhere.
func (a *attributes) long(name, v string) {
	if v != "" {
		*a = append(*a, attribute.String(name, strings.ToValidUTF8(v, "\uFFFD")))
	}
}

func (a *attributes) strs(name string, v []string) {
	if len(v) == 0 {
		return
	}
	clean := make([]string, min(len(v), maxTexts))
	for i := range clean {
		clean[i] = strings.ToValidUTF8(cut(v[i], maxValue), "\uFFFD")
	}
	*a = append(*a, attribute.StringSlice(name, clean))
}

func (a *attributes) int(name string, v int64)     { *a = append(*a, attribute.Int64(name, v)) }
func (a *attributes) float(name string, v float64) { *a = append(*a, attribute.Float64(name, v)) }
func (a *attributes) bool(name string, v bool)     { *a = append(*a, attribute.Bool(name, v)) }

// figure adds a figure in another unit; an absent one is absent.
func (a *attributes) figure(name string, f exchange.Figure, per float64) {
	if f.Present() {
		a.float(name, f.Value/per)
	}
}

// tell hands the spans of an exchange to the exporter.
func (t *Tracing) tell(s settled) {
	p := s.p
	client := p.spans.client
	client.links = append(client.links, p.links...)
	client.attrs.str(ourState, s.state)
	client.attrs.str(ourHash, s.key)
	parent, remote := p.parent, p.remote
	if p.server != (exchange.SpanID{}) {
		own := exchange.SpanContext{Trace: p.client.Trace, Span: p.server, Sampled: true}
		t.emit(parent, remote, own, p.state, &p.spans.server)
		parent, remote = own, false
	}
	t.emit(parent, remote, p.client, p.state, &client)
}

// emit queues one span below parent, which is zero for the first of a trace.
func (t *Tracing) emit(parent exchange.SpanContext, remote bool, own exchange.SpanContext, state string, s *span) {
	out := &told{from: &t.origin, span: s}
	out.own = sdkContext(own, false, state)
	if parent.Valid() {
		out.parent = sdkContext(parent, remote, state)
	}
	out.dropped = t.o.Settings.Limits.apply(s)
	for _, l := range s.links {
		out.links = append(out.links, sdktrace.Link{SpanContext: sdkContext(l, true, "")})
	}
	t.batch.add(out)
}

func sdkContext(c exchange.SpanContext, remote bool, state string) trace.SpanContext {
	config := trace.SpanContextConfig{TraceID: trace.TraceID(c.Trace), SpanID: trace.SpanID(c.Span), Remote: remote}
	if c.Sampled {
		config.TraceFlags = trace.FlagsSampled
	}
	if state != "" {
		if ts, err := trace.ParseTraceState(state); err == nil {
			config.TraceState = ts
		}
	}
	return trace.NewSpanContext(config)
}
