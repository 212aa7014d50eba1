package telemetry

import (
	"context"
	"fmt"
	"io"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// newExporter makes the exporters that are asked for; console writes to w.
func newExporter(ctx context.Context, s *Settings, w io.Writer) (sdktrace.SpanExporter, error) {
	var all exporters
	for _, name := range s.Exporters {
		var one sdktrace.SpanExporter
		var err error
		switch {
		case name == exporterConsole:
			one, err = stdouttrace.New(stdouttrace.WithWriter(w))
		case s.Protocol == "grpc":
			one, err = otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(s.Endpoint))
		default:
			one, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(s.Endpoint))
		}
		if err != nil {
			return nil, fmt.Errorf("open exporter %s: %w", name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// exporters are several as one. A span counts as exported when all took it.
type exporters []sdktrace.SpanExporter

// ExportSpans sends the spans to each, whatever another one says, and gives the first error.
func (es exporters) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) (first error) {
	for _, e := range es {
		if err := e.ExportSpans(ctx, spans); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Shutdown ends each.
func (es exporters) Shutdown(ctx context.Context) (first error) {
	for _, e := range es {
		if err := e.Shutdown(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}
