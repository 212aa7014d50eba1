package telemetry

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// TestHostileVariables holds that what the SDK cannot follow of its own variables is told by name, never with a value that
// may be a key.
func TestHostileVariables(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS":         "authorization Bearer hunter2",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":  "api\x1b[2Jkey=hunter2",
		"OTEL_EXPORTER_OTLP_CERTIFICATE":     "nowhere.pem",
		"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "hunter2",
	} {
		for _, protocol := range []string{"http/protobuf", "grpc"} {
			t.Setenv(name, value)
			r := newRig(t, func(o *Options) { o.Exporter = nil }, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1",
				"OTEL_EXPORTER_OTLP_PROTOCOL", protocol, name, value)
			r.Close()
			told := strings.Join(append(r.trouble, r.o.Settings.Notes...), "\n")
			if strings.Contains(told, "hunter2") || strings.Contains(told, "\x1b") {
				t.Errorf("told was %q", told)
			}
			if strings.Contains(name, "METRICS") {
				continue // not of traces
			}
			if !strings.Contains(told, "OTEL_EXPORTER_OTLP") {
				t.Errorf("nobody is told: %q", told)
			}
			if value == "nowhere.pem" && !strings.Contains(told, value) {
				t.Errorf("the file is not named: %q", told)
			}
		}
	}
	quiet := newRig(t, func(o *Options) { o.Exporter = nil }, "OTEL_LOG_LEVEL", "none")
	sdkLog{quiet.o.tell}.Error(os.ErrNotExist, "read", "file", "x")
	quiet.Close()
	if len(quiet.trouble) != 0 {
		t.Errorf("told %q", quiet.trouble)
	}
}

// TestHostileCollectors holds that whatever a collector answers costs spans at most, is counted right, is told in one short
// line, and is not followed elsewhere.
func TestHostileCollectors(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"found": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) },
		"moved for now": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, strings.Repeat("\x1b[2J\n<script>Bearer sk-aaaaaaaaaaaaaaaaaaaaaaaa ", 20_000))
		},
		"damaged": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			_, _ = io.WriteString(w, "\xff\xff\xff\xff")
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"never answers": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client left
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			collector := httptest.NewServer(answer)
			defer collector.Close()
			r := newRig(t, func(o *Options) { o.Exporter = nil }, "OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL,
				"OTEL_EXPORTER_OTLP_TIMEOUT", "100", "OTEL_BSP_EXPORT_TIMEOUT", "200")
			r.pass(wholeAnswer(), true)
			if got := r.Close(); got != (Counts{Lost: 2}) || len(r.trouble) != 1 {
				t.Fatalf("counts %+v, told %.300q", got, r.trouble)
			}
			if told := r.trouble[0]; len(told) > 2*maxTold || strings.ContainsAny(told, "\x1b\n") || strings.Contains(told, "sk-aaaa") {
				t.Errorf("told %d bytes: %.300q", len(told), told)
			}
		})
	}
	if n := elsewhere.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// TestHostileTraceContext holds that a request's trace headers at most begin a new trace.
func TestHostileTraceContext(t *testing.T) {
	const id, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for _, parent := range []string{"", "00", strings.Repeat("0", 10_000), "00-" + id + "-" + span, "ff-" + id + "-" + span + "-01", "00-" + strings.Repeat("0", 32) + "-" + span + "-01",
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01", "00-" + strings.ToUpper(id) + "-" + span + "-01", "00-" + id + "-" + span + "-0x", "00-" + id + "-" + span + "-01-more",
		"00-" + id + "-" + span + "-01\x00", "\xff\xfe", "00-" + id[:31] + "\u202e-" + span + "-01"} {
		r := newRig(t, nil)
		x := wholeAnswer()
		x.Request.Headers = append(x.Request.Headers, exchange.Header{Name: "TraceParent", Value: parent},
			exchange.Header{Name: "tracestate", Value: strings.Repeat("a=\x00,", 5_000)})
		out := r.pass(x, true)
		if got, ok := exchange.HeaderValue(out, "traceparent"); !ok || strings.Contains(got, id) || len(got) != 55 {
			t.Errorf("%.60q goes on as %q", parent, got)
		}
		for kind, s := range r.spans(t) {
			if s.SpanContext.TraceID().String() == id || s.SpanContext.TraceState().Len() != 0 {
				t.Errorf("%.60q: the %s span is in trace %s with state %s", parent, kind, s.SpanContext.TraceID(), s.SpanContext.TraceState())
			}
		}
	}
}

// TestSpansAreBounded holds that nothing a client or an engine sends makes a span large.
func TestSpansAreBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<17)
	x := streamed(fmt.Sprintf(`{"model":%q,"stop":[%q,%q],"reasoning_effort":%q,"conversation":%q}`, long, long, long, long, long),
		fmt.Sprintf(`{"id":%q,"model":%q,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":%q}]}`, long, long, long), `{"error":{"message":"`+long+`"}}`)
	x.Request.Target = "/" + long + "?q=" + long
	x.Request.Method = long
	x.Request.Headers = []exchange.Header{{Name: "Host", Value: long}, {Name: "User-Agent", Value: long}}
	chat := wholeAnswer()
	chat.Request.Body, chat.Response.Body, chat.Timeline = x.Request.Body, x.Response.Body, x.Timeline
	for _, x := range []*exchange.Exchange{x, chat} {
		r := newRig(t, nil)
		r.pass(x, true)
		for kind, s := range r.spans(t) {
			size := len(s.Name) + len(s.Status.Description)
			for _, kv := range s.Attributes {
				size += len(kv.Key) + len(kv.Value.String())
			}
			for _, e := range s.Events {
				for _, kv := range e.Attributes {
					size += len(kv.Key) + len(kv.Value.String())
				}
			}
			if size > 32<<10 {
				t.Errorf("the %s span has %d bytes", kind, size)
			}
		}
	}
}

// TestStatusesAreBounded holds that an engine with a status of its own for each answer makes no series of its own for each.
func TestStatusesAreBounded(t *testing.T) {
	m := NewMetrics(MetricsOptions{})
	n := 0
	for _, route := range append([]string{"/other"}, routes...) {
		for status := 100; status < 1000; status += 9 {
			x := wholeAnswer()
			x.Request.Method, x.Request.Target, x.Response.Status = methods[n%len(methods)], route, status
			m.Observe(x, measure.Analyze(x), exchange.SpanContext{})
			n++
		}
	}
	if got := len(m.series); got > maxSeries+200 {
		t.Errorf("%d series", got)
	}
	total := 0
	for _, match := range regexp.MustCompile(`http_server_request_duration_seconds_count\{[^}]*\} (\d+)`).FindAllStringSubmatch(fetch(t, m, false), -1) {
		k, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		total += k
	}
	if total != n {
		t.Errorf("%d of %d are counted", total, n)
	}
}
