package telemetry

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// origin is who tells spans. It is the same for all of them.
type origin struct {
	resource *resource.Resource
	scope    instrumentation.Scope
}

// told is a span as exporters take it. The SDK makes spans that begin, grow and end, under a lock and by way of options;
// of ours all is known when they are told, and making them is most of what tracing costs.
type told struct {
	sdktrace.ReadOnlySpan // nil: it is there for the method of the interface that nobody can call

	from        *origin
	own, parent trace.SpanContext
	span        *span
	links       []sdktrace.Link
	dropped     dropped
}

// Name is that of the span.
func (s *told) Name() string { return s.span.name }

// SpanContext is its place.
func (s *told) SpanContext() trace.SpanContext { return s.own }

// Parent is the place of the span above it, invalid for the first of a trace.
func (s *told) Parent() trace.SpanContext { return s.parent }

// SpanKind is its kind.
func (s *told) SpanKind() trace.SpanKind { return s.span.kind }

// StartTime is when it began.
func (s *told) StartTime() time.Time { return s.span.start }

// EndTime is when it ended.
func (s *told) EndTime() time.Time { return s.span.end }

// Attributes are what is known of it.
func (s *told) Attributes() []attribute.KeyValue { return s.span.attrs }

// Links lead to spans of other traces.
func (s *told) Links() []sdktrace.Link { return s.links }

// Events are instants of it.
func (s *told) Events() []sdktrace.Event { return s.span.events }

// Status is an error with its reason, or unset.
func (s *told) Status() sdktrace.Status {
	if s.span.failed {
		return sdktrace.Status{Code: codes.Error, Description: s.span.why}
	}
	return sdktrace.Status{}
}

// InstrumentationScope is what of this program tells it.
func (s *told) InstrumentationScope() instrumentation.Scope { return s.from.scope }

// Resource is this program.
func (s *told) Resource() *resource.Resource { return s.from.resource }

// DroppedAttributes are those over a limit.
func (s *told) DroppedAttributes() int { return s.dropped.attributes }

// DroppedLinks are those over a limit.
func (s *told) DroppedLinks() int { return s.dropped.links }

// DroppedEvents are those over a limit.
func (s *told) DroppedEvents() int { return s.dropped.events }

// ChildSpanCount is not counted.
func (s *told) ChildSpanCount() int { return 0 }
