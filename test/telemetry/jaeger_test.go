package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// jaeger is a real Jaeger, on loopback alone.
type jaeger struct {
	*process
	otlp, grpc, query string
}

// jaegerConfig opens these four ports and no other one.
const jaegerConfig = `
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], processors: [batch], exporters: [jaeger_storage_exporter]}
  telemetry: {metrics: {level: none}}
extensions:
  jaeger_query: {storage: {traces: mem}, http: {endpoint: "127.0.0.1:%[1]d"}, grpc: {endpoint: "127.0.0.1:%[2]d"}}
  jaeger_storage: {backends: {mem: {memory: {max_traces: 10000}}}}
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:%[3]d"}, http: {endpoint: "127.0.0.1:%[4]d"}}}
processors: {batch: {timeout: 50ms}}
exporters: {jaeger_storage_exporter: {trace_storage: mem}}
`

func startJaeger(t *testing.T) *jaeger {
	t.Helper()
	query, queryGRPC, grpc, otlp := freePort(t), freePort(t), freePort(t), freePort(t)
	file := filepath.Join(t.TempDir(), "jaeger.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, jaegerConfig, query, queryGRPC, grpc, otlp), 0o600); err != nil {
		t.Fatal(err)
	}
	j := &jaeger{process: start(t, nil, tool(t, "TEST_JAEGER"), "--config", file),
		otlp: fmt.Sprintf("http://127.0.0.1:%d", otlp), grpc: fmt.Sprintf("127.0.0.1:%d", grpc), query: fmt.Sprintf("http://127.0.0.1:%d", query)}
	waitFor(t, "Jaeger", func() bool {
		code, _ := j.get("/api/v3/services")
		return code == 200
	})
	t.Cleanup(func() { j.stop(syscall.SIGTERM) })
	return j
}

func (j *jaeger) get(path string) (int, []byte) {
	resp, err := http.Get(j.query + path)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, b
}

// env are the variables of a program that is traced under a name.
func (j *jaeger) env(service string, more ...string) []string {
	return append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + j.otlp, "OTEL_SERVICE_NAME=" + service, "OTEL_BSP_SCHEDULE_DELAY=100"}, more...)
}

// span is a span as Jaeger gives it back.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                any
	Start                               string `json:"startTimeUnixNano"`
	End                                 string `json:"endTimeUnixNano"`
	Attributes                          []keyValue
	Events                              []struct {
		Name       string
		Time       string `json:"timeUnixNano"`
		Attributes []keyValue
	}
	Links  []struct{ TraceID, SpanID string }
	Status struct {
		Code    any
		Message string
	}
}

type keyValue struct {
	Key   string
	Value map[string]any
}

// attr is an attribute as text, "" for none.
func attr(list []keyValue, key string) string {
	for _, kv := range list {
		if kv.Key != key {
			continue
		}
		for _, v := range kv.Value {
			switch v := v.(type) {
			case map[string]any: // a list
				b, _ := json.Marshal(v["values"])
				return string(b)
			case float64:
				return strconv.FormatFloat(v, 'g', -1, 64)
			default:
				return fmt.Sprint(v)
			}
		}
	}
	return ""
}

func nanos(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// kind is the kind of a span in a word: the number and the name stand for the same.
func (s *span) kind() string {
	word := strings.ToLower(strings.TrimPrefix(fmt.Sprint(s.Kind), "SPAN_KIND_"))
	return map[string]string{"1": "internal", "2": "server", "3": "client"}[word] + map[string]string{"internal": word, "server": word, "client": word}[word]
}

// failed reports whether a span has the status error.
func (s *span) failed() bool {
	code := fmt.Sprint(s.Status.Code)
	return code == "2" || code == "STATUS_CODE_ERROR"
}

// trace waits for a trace of so many spans.
func (j *jaeger) trace(t *testing.T, id string, spans int) []span {
	t.Helper()
	var out []span
	waitFor(t, "trace "+id, func() bool {
		code, body := j.get("/api/v3/traces/" + id)
		if code != 200 {
			return false
		}
		var doc struct {
			Result struct {
				ResourceSpans []struct {
					ScopeSpans []struct{ Spans []span }
				}
			}
		}
		if err := json.Unmarshal(body, &doc); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		out = nil
		for _, r := range doc.Result.ResourceSpans {
			for _, s := range r.ScopeSpans {
				out = append(out, s.Spans...)
			}
		}
		return len(out) >= spans
	})
	if len(out) != spans {
		t.Fatalf("trace %s has %d spans, want %d", id, len(out), spans)
	}
	slices.SortFunc(out, func(a, b span) int { return strings.Compare(a.Start, b.Start) })
	return out
}

// services are the names that Jaeger has seen.
func (j *jaeger) services(t *testing.T) []string {
	t.Helper()
	code, body := j.get("/api/v3/services")
	var doc struct{ Services []string }
	if err := json.Unmarshal(body, &doc); code != 200 || err != nil {
		t.Fatalf("services: status %d, %v: %s", code, err, body)
	}
	return doc.Services
}

// at is an instant of a record on the wall clock.
func (x *exchange) at(ns int64) int64 { return x.Timeline.Wall.Add(time.Duration(ns)).UnixNano() }
