package telemetry

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/go-logr/logr"
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
			one, err = otlptracehttp.New(ctx, httpOptions(s)...)
		}
		if err != nil {
			return nil, fmt.Errorf("open exporter %s: %w", name, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// httpOptions are those of OTLP over HTTP. A collector that sends elsewhere is not followed: the SDK's client would take the
// page it ends at for success, and would give headers with keys to any host. With certificates the SDK's own client is
// needed, which reads them.
func httpOptions(s *Settings) []otlptracehttp.Option {
	out := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(s.Endpoint)}
	if s.TLS {
		return out
	}
	return append(out, otlptracehttp.WithHTTPClient(&http.Client{
		Timeout:       s.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}))
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
