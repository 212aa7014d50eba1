package telemetry

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Where spans go by default: to a collector on this machine, without TLS. The default of the Go exporter is https, where a
// plain collector hears nothing.
const (
	defaultHTTP = "http://localhost:4318"
	defaultGRPC = "http://localhost:4317"
)

// Settings say what is traced and how. They are those of the OTEL_* variables of OpenTelemetry's specification; what is
// not here (attributes of the resource; headers, certificates, compression and timeout of gRPC) the SDK reads from the
// environment of the process itself.
type Settings struct {
	Exporters []string // otlp, console; none of them is tracing off
	Protocol  string   // http/protobuf or grpc
	Endpoint  string   // URL of OTLP, for http with its path
	Propagate bool     // W3C trace context is read from requests and given to the engine
	Sampler   Sampler
	Content   Content // what of the texts of requests and answers is told
	Metrics   bool    // /metrics answers
	Quiet     bool    // exporter trouble is counted and not told

	Delay    time.Duration // longest wait of a span for others to be sent with
	Queue    int           // spans that may wait
	Timeout  time.Duration // longest time of one request over HTTP
	Gzip     bool          // requests over HTTP are packed
	Auth     Auth          // of requests over HTTP
	Limits   Limits        // of spans
	Batch    int           // spans sent at once
	Patience time.Duration // longest time of one sending

	Notes []string // what of the variables cannot be followed, for people
}

// On reports whether anything is traced.
func (s *Settings) On() bool { return len(s.Exporters) > 0 }

// Content says where the texts of requests and answers are told.
type Content struct {
	Span  bool // as attributes of the span
	Event bool // as attributes of an event of the span
}

// ReadSettings reads the OTEL_* variables. The error wraps exchange.ErrUsage for an endpoint that is no URL; any other
// value that cannot be followed leaves the default and a note. Certificates are read with readFile.
func ReadSettings(getenv func(string) string, readFile func(path string) ([]byte, error)) (Settings, error) {
	e := environment{getenv: getenv}
	s := Settings{Metrics: true, Protocol: "http/protobuf"}
	s.Quiet = e.get("OTEL_LOG_LEVEL") == "none"
	if e.disabled() {
		s.Metrics = false
		return s, nil
	}
	e.metrics(&s)
	e.protocol(&s)
	endpoint, err := e.endpoint(s.Protocol)
	if err != nil {
		return s, err
	}
	s.Exporters = e.exporters(endpoint != "")
	s.Endpoint = cmp.Or(endpoint, defaultEndpoint(s.Protocol))
	if !s.On() {
		s.Notes = e.notes
		return s, nil
	}
	s.Propagate = e.propagates()
	s.Sampler = e.sampler()
	s.Content = e.content()
	s.Delay = time.Duration(e.number("OTEL_BSP_SCHEDULE_DELAY", 5000)) * time.Millisecond
	s.Queue = e.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048)
	s.Timeout = e.timeout()
	s.Limits = e.limits()
	if s.Protocol != grpcProtocol {
		s.Gzip = e.gzip()
		s.Auth = Auth{Headers: e.headers(), TLS: e.certificates(readFile)}
	}
	s.Batch = min(e.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), s.Queue)
	s.Patience = time.Duration(e.number("OTEL_BSP_EXPORT_TIMEOUT", 30000)) * time.Millisecond
	s.Notes = e.notes
	return s, nil
}

// environment reads variables and keeps what is to be told of them.
type environment struct {
	getenv func(string) string
	notes  []string
}

func (e *environment) get(name string) string { return strings.TrimSpace(e.getenv(name)) }

func (e *environment) note(format string, args ...any) {
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

// disabled reports whether all of this is switched off. The specification has one word for it, and none but false for the
// contrary.
func (e *environment) disabled() bool {
	const name = "OTEL_SDK_DISABLED"
	v := e.get(name)
	if v != "" && !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
		e.note("%s %q is neither true nor false; it is false", name, v)
	}
	return strings.EqualFold(v, "true")
}

// list are the words of a variable that has several, with commas.
func (e *environment) list(name string) (out []string) {
	for word := range strings.SplitSeq(e.get(name), ",") {
		if word = strings.ToLower(strings.TrimSpace(word)); word != "" && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// maxNumber bounds the numbers of variables: a queue is made for as many spans as one says, and times are in ms.
const maxNumber = 1 << 20

// number is a variable with a number from 1 on.
func (e *environment) number(name string, otherwise int) int {
	v := e.get(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxNumber {
		e.note("%s %q is not a number from 1 to %d; it is %d", name, v, maxNumber, otherwise)
		return otherwise
	}
	return n
}

func (e *environment) metrics(s *Settings) {
	for _, word := range e.list("OTEL_METRICS_EXPORTER") {
		switch word {
		case "none":
			s.Metrics = false
		case "prometheus":
		default:
			e.note("OTEL_METRICS_EXPORTER %q: metrics are not sent; Prometheus fetches them from /metrics of the admin listener", word)
		}
	}
}

// exporters are where spans go. Without a word on it they go to the endpoint, if there is one.
func (e *environment) exporters(endpoint bool) (out []string) {
	words := e.list("OTEL_TRACES_EXPORTER")
	if len(words) == 0 && endpoint {
		return []string{exporterOTLP}
	}
	for _, word := range words {
		switch word {
		case "none":
			return nil
		case exporterOTLP, exporterConsole:
			out = append(out, word)
		default:
			e.note("OTEL_TRACES_EXPORTER %q is not known here; there is otlp, console and none", word)
		}
	}
	return out
}

const (
	exporterOTLP    = "otlp"
	exporterConsole = "console"
)

// propagates reports whether trace context is among the propagators. Baggage passes through as every header does.
func (e *environment) propagates() bool {
	words := e.list("OTEL_PROPAGATORS")
	for _, word := range words {
		switch word {
		case "tracecontext", "baggage", "none":
		default:
			e.note("OTEL_PROPAGATORS %q is not known here; there is tracecontext, baggage and none", word)
		}
	}
	return len(words) == 0 || slices.Contains(words, "tracecontext")
}

func (e *environment) content() Content {
	const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	switch v := e.get(name); strings.ToUpper(v) {
	case "", "NO_CONTENT", "FALSE":
	case "SPAN_ONLY", "TRUE":
		return Content{Span: true}
	case "EVENT_ONLY":
		return Content{Event: true}
	case "SPAN_AND_EVENT":
		return Content{Span: true, Event: true}
	default:
		e.note("%s %q is not known; no content is told", name, v)
	}
	return Content{}
}
