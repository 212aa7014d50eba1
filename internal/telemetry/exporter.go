package telemetry

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
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
		case s.Protocol == grpcProtocol:
			one, err = otlptracegrpc.New(ctx, grpcOptions(s)...)
		default:
			one = newOTLPHTTP(s)
		}
		if err != nil {
			return nil, fmt.Errorf("open exporter %s: %w", name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// grpcOptions say where to; headers, certificates, compression and timeout the exporter reads itself.
func grpcOptions(s *Settings) []otlptracegrpc.Option {
	if strings.HasPrefix(s.Endpoint, unixScheme) {
		return []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(s.Endpoint), otlptracegrpc.WithInsecure()}
	}
	return []otlptracegrpc.Option{otlptracegrpc.WithEndpointURL(s.Endpoint)}
}

// sdkLog is the log of the SDK. It tells what the SDK could not follow of its variables, by the SDK's fixed words: the
// values beside them may be headers with keys.
type sdkLog struct{ tell func(text string) }

// Init is for the interface of the log.
func (sdkLog) Init(logr.RuntimeInfo) {}

// Enabled takes errors alone, which do not ask.
func (sdkLog) Enabled(int) bool { return false }

// Info takes nothing.
func (sdkLog) Info(int, string, ...any) {}

// Error tells an error, with the file that it is about.
func (l sdkLog) Error(_ error, what string, about ...any) {
	for i := 0; i+1 < len(about); i += 2 {
		if about[i] == "file" {
			what += " " + fmt.Sprint(about[i+1])
		}
	}
	l.tell("an OTEL_EXPORTER_OTLP_* variable is not followed: could not " + nameableTo(what, maxTold))
}

// WithName is for the interface of the log.
func (l sdkLog) WithName(string) logr.LogSink { return l }

// WithValues is for the interface of the log.
func (l sdkLog) WithValues(...any) logr.LogSink { return l }

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
