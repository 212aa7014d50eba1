package telemetry

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func read(t *testing.T, vars string) (Settings, error) {
	t.Helper()
	env := map[string]string{}
	for _, kv := range strings.Fields(vars) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return ReadSettings(func(name string) string { return env[name] }, os.ReadFile)
}

// TestWhereSpansGo holds which variables turn tracing on, and where to.
func TestWhereSpansGo(t *testing.T) {
	const all, traces = "OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="
	for vars, want := range map[string]struct {
		exporters []string
		protocol  string
		endpoint  string
	}{
		"":                                  {nil, "http/protobuf", "http://localhost:4318/v1/traces"},
		"OTEL_TRACES_EXPORTER=otlp":         {[]string{"otlp"}, "http/protobuf", "http://localhost:4318/v1/traces"},
		"OTEL_TRACES_EXPORTER=console,otlp": {[]string{"console", "otlp"}, "http/protobuf", "http://localhost:4318/v1/traces"},
		"OTEL_TRACES_EXPORTER=none " + all + "http://c:1":   {nil, "http/protobuf", "http://c:1/v1/traces"},
		"OTEL_TRACES_EXPORTER=zipkin " + all + "http://c:1": {nil, "http/protobuf", "http://c:1/v1/traces"},
		"OTEL_SDK_DISABLED=TRUE " + all + "http://c:1":      {nil, "http/protobuf", ""},
		all + "http://c:1":                                                                  {[]string{"otlp"}, "http/protobuf", "http://c:1/v1/traces"},
		all + "https://c:1/p/":                                                              {[]string{"otlp"}, "http/protobuf", "https://c:1/p/v1/traces"},
		traces + "http://t:2/x " + all + "http://c:1":                                       {[]string{"otlp"}, "http/protobuf", "http://t:2/x"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc " + all + "http://c:1":                            {[]string{"otlp"}, "grpc", "http://c:1"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc " + all + "c:1":                                   {[]string{"otlp"}, "grpc", "http://c:1"},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc OTEL_TRACES_EXPORTER=otlp":                 {[]string{"otlp"}, "grpc", "http://localhost:4317"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=http/json " + all + "http://c:1":                       {[]string{"otlp"}, "http/protobuf", "http://c:1/v1/traces"},
		"OTEL_SDK_DISABLED=1 " + all + "http://c:1":                                         {[]string{"otlp"}, "http/protobuf", "http://c:1/v1/traces"},
		"OTEL_SDK_DISABLED=False " + all + "http://c:1":                                     {[]string{"otlp"}, "http/protobuf", "http://c:1/v1/traces"},
		all + "http://[::1]:4318":                                                           {[]string{"otlp"}, "http/protobuf", "http://[::1]:4318/v1/traces"},
		all + "https://[fe80::1%25eth0]":                                                    {[]string{"otlp"}, "http/protobuf", "https://[fe80::1%25eth0]/v1/traces"},
		traces + "http://[::1]:4318":                                                        {[]string{"otlp"}, "http/protobuf", "http://[::1]:4318"},
		all + "http://c:1/a/b?tenant=7":                                                     {[]string{"otlp"}, "http/protobuf", "http://c:1/a/b/v1/traces?tenant=7"},
		traces + "http://c:1/a/b?tenant=7":                                                  {[]string{"otlp"}, "http/protobuf", "http://c:1/a/b?tenant=7"},
		all + "unix:///run/otel.sock":                                                       {[]string{"otlp"}, "http/protobuf", "unix:///run/otel.sock"},
		traces + "unix:/run/otel.sock":                                                      {[]string{"otlp"}, "http/protobuf", "unix:///run/otel.sock"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc " + all + "unix:/run/otel.sock":                   {[]string{"otlp"}, "grpc", "unix:///run/otel.sock"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc " + all + "[::1]:4317":                            {[]string{"otlp"}, "grpc", "http://[::1]:4317"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_INSECURE=true " + all + "c:1":  {[]string{"otlp"}, "grpc", "http://c:1"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_INSECURE=false " + all + "c:1": {[]string{"otlp"}, "grpc", "https://c:1"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_INSECURE=true OTEL_EXPORTER_OTLP_TRACES_INSECURE=False " + all + "c:1": {[]string{"otlp"}, "grpc", "https://c:1"},
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_INSECURE=false " + all + "http://c:1":                                  {[]string{"otlp"}, "grpc", "http://c:1"},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf OTEL_EXPORTER_OTLP_PROTOCOL=grpc " + all + "http://c:1":                   {[]string{"otlp"}, "http/protobuf", "http://c:1/v1/traces"},
	} {
		s, err := read(t, vars)
		if err != nil {
			t.Errorf("%s: %v", vars, err)
		}
		if d := cmp.Diff(want.exporters, s.Exporters); d != "" || s.Protocol != want.protocol || s.Endpoint != want.endpoint || s.On() != (len(want.exporters) > 0) {
			t.Errorf("%s: %v by %s to %s", vars, s.Exporters, s.Protocol, s.Endpoint)
		}
	}
	for _, bad := range []string{all + "c:1", all + "ftp://c", traces + "http://", all + "http://%zz", all + ":", all + "unix:", all + "unix://host/x", all + "unix:rel",
		all + "http://:4318", all + "http://[::1", all + "//c:1", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc " + all + "grpc://c:1"} {
		if _, err := read(t, bad); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s gives %v", bad, err)
		}
	}
}

// TestOtherVariables holds the rest, and that what cannot be followed is told and leaves the default.
func TestOtherVariables(t *testing.T) {
	const on = "OTEL_TRACES_EXPORTER=otlp "
	def := Settings{Exporters: []string{"otlp"}, Protocol: "http/protobuf", Endpoint: "http://localhost:4318/v1/traces", Propagate: true, Metrics: true,
		Sampler: Sampler{parent: true, bound: allTraces}, Delay: 5 * time.Second, Queue: 2048, Batch: 512, Patience: 30 * time.Second, Timeout: 10 * time.Second,
		Limits: Limits{Length: -1, Attributes: 128, Events: 128, EventAttributes: 128, Links: 128}}
	set := def
	set.Propagate, set.Metrics, set.Quiet = false, false, true
	set.Delay, set.Queue, set.Batch, set.Patience = 200*time.Millisecond, 10, 10, time.Second
	set.Timeout, set.Gzip, set.Content = 7*time.Second, true, Content{Span: true, Event: true}
	set.Limits = Limits{Length: 9, Attributes: 0, Events: 4, EventAttributes: -1, Links: 2}
	overruled := def
	overruled.Timeout, overruled.Limits.Length, overruled.Limits.Attributes, overruled.Content = 3*time.Second, 5, 6, Content{Span: true}
	for vars, want := range map[string]Settings{on: def,
		on + "OTEL_BSP_SCHEDULE_DELAY=200 OTEL_BSP_MAX_QUEUE_SIZE=10 OTEL_BSP_MAX_EXPORT_BATCH_SIZE=50 OTEL_BSP_EXPORT_TIMEOUT=1000 OTEL_LOG_LEVEL=none " +
			"OTEL_PROPAGATORS=baggage OTEL_METRICS_EXPORTER=none OTEL_EXPORTER_OTLP_TIMEOUT=7000 OTEL_EXPORTER_OTLP_COMPRESSION=gzip " +
			"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=9 OTEL_ATTRIBUTE_COUNT_LIMIT=0 OTEL_SPAN_EVENT_COUNT_LIMIT=4 OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT=-7 OTEL_SPAN_LINK_COUNT_LIMIT=2 " +
			"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_and_event": set,
		on + "OTEL_EXPORTER_OTLP_TIMEOUT=7000 OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=3000 OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=none " +
			"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=9 OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT=5 OTEL_ATTRIBUTE_COUNT_LIMIT=9 OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=6 " +
			"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true": overruled} {
		got, err := read(t, vars)
		if d := cmp.Diff(want, got, cmp.AllowUnexported(Sampler{})); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", vars, err, d)
		}
	}
	for _, bad := range []string{"OTEL_SDK_DISABLED=1", "OTEL_SPAN_LINK_COUNT_LIMIT=few", "OTEL_ATTRIBUTE_COUNT_LIMIT=9e9", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd",
		"OTEL_TRACES_SAMPLER=jaeger_remote", "OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=half", "OTEL_BSP_MAX_QUEUE_SIZE=0", "OTEL_BSP_MAX_QUEUE_SIZE=1000000000", "OTEL_EXPORTER_OTLP_TIMEOUT=soon", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=-1", "OTEL_BSP_SCHEDULE_DELAY=soon", "OTEL_PROPAGATORS=b3,tracecontext", "OTEL_METRICS_EXPORTER=otlp",
		"OTEL_TRACES_SAMPLER=magic", "OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=2", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=some", "OTEL_TRACES_EXPORTER=otlp,jaeger"} {
		vars := bad
		if !strings.Contains(bad, "TRACES_EXPORTER") {
			vars = on + bad
		}
		s, err := read(t, vars)
		name, _, _ := strings.Cut(bad, "=")
		if err != nil || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], name) {
			t.Errorf("%s: notes %q, %v", bad, s.Notes, err)
		}
		if s.Queue != 2048 || !s.Propagate || s.Content != (Content{}) || !s.Metrics {
			t.Errorf("%s is no longer the default: %+v", bad, s)
		}
	}
}

// TestEndpointsAreToldWithoutCredentials holds that an endpoint that is refused shows no password.
func TestEndpointsAreToldWithoutCredentials(t *testing.T) {
	for _, bad := range []string{"ftp://me:hunter2@c", "me:hunter2@c:1", "http://me:hunter2@c:%zz", "http://me:hun@ter2@%zz"} {
		_, err := read(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+bad)
		if !errors.Is(err, exchange.ErrUsage) || strings.Contains(err.Error(), "hun") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%s gives %v", bad, err)
		}
	}
}

// TestSampler holds who decides on a trace, and that a share is kept and everyone's.
func TestSampler(t *testing.T) {
	yes := exchange.SpanContext{Trace: newTraceID(), Span: newSpanID(), Sampled: true}
	no := exchange.SpanContext{Trace: newTraceID(), Span: newSpanID()}
	for vars, want := range map[string][3]bool{ // without a parent, below a sampled one, below another
		"": {true, true, false},
		"OTEL_TRACES_SAMPLER=ParentBased_Always_On":                              {true, true, false},
		"OTEL_TRACES_SAMPLER_ARG=0":                                              {true, true, false},
		"OTEL_TRACES_SAMPLER=always_on":                                          {true, true, true},
		"OTEL_TRACES_SAMPLER=always_off":                                         {false, false, false},
		"OTEL_TRACES_SAMPLER=parentbased_always_off":                             {false, true, false},
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=0": {false, true, false},
		"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=1":             {true, true, true},
		"OTEL_TRACES_SAMPLER=traceidratio":                                       {true, true, true},
	} {
		s, err := read(t, "OTEL_TRACES_EXPORTER=otlp "+vars)
		if err != nil {
			t.Fatal(err)
		}
		got := [3]bool{s.Sampler.takes(newTraceID(), exchange.SpanContext{}), s.Sampler.takes(yes.Trace, yes), s.Sampler.takes(no.Trace, no)}
		if got != want {
			t.Errorf("%s: %v, want %v", vars, got, want)
		}
	}
	s, _ := read(t, "OTEL_TRACES_EXPORTER=otlp OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0.25")
	taken := 0
	for range 10_000 {
		if s.Sampler.takes(newTraceID(), exchange.SpanContext{}) {
			taken++
		}
	}
	if taken < 2200 || taken > 2800 {
		t.Errorf("a share of 0.25 takes %d of 10000", taken)
	}
}
