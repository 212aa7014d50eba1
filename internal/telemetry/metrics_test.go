package telemetry

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// fetch is what Prometheus gets; open asks for the OpenMetrics form.
func fetch(t *testing.T, m *Metrics, open bool) string {
	t.Helper()
	req := httptest.NewRequest("GET", "/metrics", nil)
	if open {
		req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, req)
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func fullOptions() MetricsOptions {
	return MetricsOptions{
		Version: "v9",
		Proxy:   func() ProxyState { return ProxyState{Active: 2, Held: 77, Refused: map[string]int64{"key": 3}} },
		Recorder: func() RecorderState {
			return RecorderState{QueueBytes: 5, QueueLimit: 6, Stored: 7, Truncated: 1, Dropped: map[string]int64{"queue_full": 4}, Degraded: true}
		},
		Store: func() (int64, int64, error) { return 1000, 2000, nil },
		Spans: func() Counts { return Counts{Exported: 8, Lost: 9} },
	}
}

func TestMetrics(t *testing.T) {
	m := NewMetrics(fullOptions())
	x := wholeAnswer()
	m.Observe(x, measure.Analyze(x), exchange.SpanContext{})
	got := fetch(t, m, false)
	const ai = `gen_ai_operation_name="chat",gen_ai_provider_name="llama_cpp",gen_ai_request_model="asked",gen_ai_response_model="served"`
	const at = `server_address="10.1.2.3",server_port="8080"`
	for _, want := range []string{
		`gen_ai_client_inference_duration_seconds_count{error_type="",` + ai + `,` + at + `} 1`,
		`gen_ai_client_inference_duration_seconds_sum{error_type="",` + ai + `,` + at + `} 0.083`,
		`gen_ai_client_inference_time_to_first_chunk_seconds_sum{` + ai + `,` + at + `} 0.03`,
		`gen_ai_client_inference_time_per_output_chunk_seconds_count{` + ai + `,` + at + `} 5`,
		`gen_ai_client_inference_usage_input_tokens_total{` + ai + `,gen_ai_token_modality="text",` + at + `} 11`,
		`gen_ai_client_inference_usage_output_tokens_total{` + ai + `,gen_ai_token_modality="text",` + at + `} 5`,
		`gen_ai_client_inference_operation_input_tokens_sum{` + ai + `,` + at + `} 11`,
		`gen_ai_client_inference_operation_output_tokens_sum{` + ai + `,` + at + `} 5`,
		`benchproxy_request_time_to_first_token_seconds_sum{` + ai + `,` + at + `} 0.04`,
		`benchproxy_request_time_per_output_token_seconds_sum{` + ai + `,` + at + `} 0.005`,
		`http_server_request_duration_seconds_count{error_type="",http_request_method="POST",http_response_status_code="200",http_route="/v1/chat/completions"} 1`,
		`http_client_request_duration_seconds_count{error_type="",http_request_method="POST",http_response_status_code="200",` + at + `} 1`,
		`benchproxy_proxy_overhead_seconds_count 6`, `benchproxy_request_write_stall_seconds_count 1`, `benchproxy_exchanges_total{outcome="complete"} 1`,
		`http_server_active_requests 2`, `benchproxy_held_bytes 77`, `benchproxy_requests_refused_total{reason="key"} 3`,
		`benchproxy_record_queue_bytes 5`, `benchproxy_record_queue_limit_bytes 6`, `benchproxy_record_stored_total 7`, `benchproxy_record_truncated_total 1`,
		`benchproxy_record_dropped_total{reason="queue_full"} 4`, `benchproxy_record_degraded 1`, `benchproxy_store_size_bytes 1000`, `benchproxy_store_free_bytes 2000`,
		`benchproxy_spans_exported_total 8`, `benchproxy_spans_lost_total 9`,
	} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("there is no %s", want)
		}
	}
	if !regexp.MustCompile(`benchproxy_build_info\{arch="\w+",goversion="go[^"]+",os="\w+",version="v9"\} 1`).MatchString(got) {
		t.Error("the build is not told")
	}
	for _, id := range []string{string(x.ID), string(x.Run)} {
		if strings.Contains(got, id) {
			t.Errorf("%s is a label", id)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestExemplars holds that numbers lead to the trace they came from, in the form that has a place for it.
func TestExemplars(t *testing.T) {
	m := NewMetrics(MetricsOptions{Version: "v9"})
	x := wholeAnswer()
	span := exchange.SpanContext{Trace: newTraceID(), Span: newSpanID(), Sampled: true}
	m.Observe(x, measure.Analyze(x), span)
	for _, name := range []string{"gen_ai_client_inference_duration_seconds", "http_server_request_duration_seconds", "benchproxy_request_time_to_first_token_seconds"} {
		found := regexp.MustCompile(name + `_bucket\{[^}]*\} 1 # (\{[^}]*\})`).FindStringSubmatch(fetch(t, m, true))
		if found == nil || !strings.Contains(found[1], `trace_id="`+span.Trace.String()+`"`) || !strings.Contains(found[1], `span_id="`+span.Span.String()+`"`) {
			t.Errorf("%s has no exemplar", name)
		}
	}
	if strings.Contains(fetch(t, m, false), span.Trace.String()) {
		t.Error("the plain form has exemplars")
	}
	unsampled := NewMetrics(MetricsOptions{Version: "v9"})
	span.Sampled = false
	unsampled.Observe(x, measure.Analyze(x), span)
	if strings.Contains(fetch(t, unsampled, true), span.Trace.String()) {
		t.Error("an exemplar names a trace that is not exported")
	}
}

// TestAbsentIsNotCounted holds that an answer without usage counts no tokens and no request without a stream its pace.
func TestAbsentIsNotCounted(t *testing.T) {
	m := NewMetrics(MetricsOptions{Store: func() (int64, int64, error) { return 0, 0, errors.New("gone") }})
	x := streamed(`{"model":"m","stream":true}`, delta(`{"content":"a"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
	m.Observe(x, measure.Analyze(x), exchange.SpanContext{})
	models := streamed("")
	models.Request.Method, models.Request.Target = "GET", "/v1/models"
	m.Observe(models, measure.Analyze(models), exchange.SpanContext{})
	got := fetch(t, m, false)
	for _, want := range []string{"operation_output_tokens_count{[^}]*} 0", `usage_output_tokens_total{[^}]*modality="text"[^}]*} 0`, `usage_output_tokens_total{[^}]*modality="unknown"[^}]*} 0`,
		"time_to_first_token_seconds_count{[^}]*} 1", `http_server_request_duration_seconds_count{[^}]*http_route="/v1/models"} 1`} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, never := range []string{"benchproxy_store_size_bytes", "benchproxy_record_stored_total", "http_server_active_requests"} {
		if strings.Contains(got, "\n"+never) {
			t.Errorf("there is %s of nothing", never)
		}
	}
}

// TestLabelsAreBounded holds that no client makes series without end, by names of models, methods or paths.
func TestLabelsAreBounded(t *testing.T) {
	m := NewMetrics(MetricsOptions{})
	x := streamed(`{"model":"m","stream":true}`, delta(`{"content":"a"}`))
	a := measure.Analyze(x)
	const each = 2500
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range each {
				x, a, tr := *x, *a, *a.Transcript
				a.Request.Model, tr.Model = fmt.Sprintf("m-%d-%d", worker, i), fmt.Sprintf("s-%d", i)
				a.Transcript = &tr
				x.UpstreamURL = fmt.Sprintf("http://10.0.%d.%d:80", worker, i%250)
				x.Request.Target = fmt.Sprintf("/%d/v1/chat/completions", i)
				x.Request.Method = "POST"
				m.Observe(&x, &a, exchange.SpanContext{})
			}
		})
	}
	all.Wait()
	got := fetch(t, m, false)
	if n := strings.Count(got, "gen_ai_client_inference_duration_seconds_count"); n > maxSeries+10 {
		t.Errorf("there are %d series", n)
	}
	if n := len(m.models.seen); n != maxModels {
		t.Errorf("%d models are named", n)
	}
	total := 0
	for _, match := range regexp.MustCompile(`gen_ai_client_inference_duration_seconds_count\{[^}]*\} (\d+)`).FindAllStringSubmatch(got, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	if total != 4*each {
		t.Errorf("%d of %d are counted", total, 4*each)
	}
}

// BenchmarkObserve is what counting an exchange costs behind it.
func BenchmarkObserve(b *testing.B) {
	m := NewMetrics(MetricsOptions{})
	x := wholeAnswer()
	a := measure.Analyze(x)
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(x, a, exchange.SpanContext{})
	}
}
