package telemetry

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	streamed = `{"model":"sim","stream":true,"stream_options":{"include_usage":true},"max_tokens":8,"temperature":0.5,"messages":[{"role":"user","content":"count to eight"}]}`
	whole    = `{"model":"sim","max_tokens":4,"messages":[{"role":"user","content":"two"}]}`
	theirs   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	engine   = "ttft=20ms; decode=200"
)

// TestJaeger records, replays and validates with a real Jaeger as the collector, and reads back what it has.
func TestJaeger(t *testing.T) {
	j := startJaeger(t)
	sim := startSim(t, "--set", engine)
	r := record(t, sim, j.env("recorded")...)
	chat := r.base + "/v1/chat/completions"
	_, idle := ask(t, "GET", r.admin+"/metrics", "")
	promtool(t, idle) // before the first request
	ask(t, "POST", chat, streamed)
	ask(t, "POST", chat, streamed, "Traceparent", theirs, "Tracestate", "a=1")
	ask(t, "POST", chat, streamed, "Traceparent", "00-nonsense")
	ask(t, "POST", chat, whole, "X-Sim", "reasoning=3")
	ask(t, "POST", chat, streamed, "X-Sim", "fault=error@3")
	ask(t, "POST", chat, streamed, "X-Sim", "fault=reset@3")
	ask(t, "POST", chat, streamed, "X-Sim", "status=503")
	ask(t, "GET", r.base+"/v1/models", "")
	got := engineHeaders(t, sim)
	t.Run("metrics", func(t *testing.T) { checkMetrics(t, r, 8) })
	r.stop(syscall.SIGINT)
	records := shown(t, r.store, "r")
	if len(records) != 8 {
		t.Fatalf("%d records", len(records))
	}
	for i := range records {
		x := &records[i]
		t.Run(fmt.Sprintf("record %d", i+1), func(t *testing.T) { compare(t, j, x) })
		trace, span := x.sent()
		if want := "00-" + trace + "-" + span + "-01"; !slices.Contains(got, want) {
			t.Errorf("the engine never got %s, but %q", want, got)
		}
	}
	if trace, _ := records[1].sent(); trace != theirs[3:35] {
		t.Errorf("the client's trace is gone on with as %s", trace)
	}
	t.Run("replay", func(t *testing.T) { replayed(t, j, sim, r.store, records) })
	t.Run("validate", func(t *testing.T) { validated(t, j, sim) })
	t.Run("serve", func(t *testing.T) { served(t, j, sim, r.store, records) })
	t.Run("bench", func(t *testing.T) { benched(t, j) })
	t.Run("gate", func(t *testing.T) { gated(t, j) })
	t.Run("grpc", func(t *testing.T) { overGRPC(t, j, sim) })
	t.Run("off", func(t *testing.T) { off(t, j, sim) })
}

// engineHeaders are the values of traceparent that the engine got.
func engineHeaders(t *testing.T, sim string) (out []string) {
	t.Helper()
	_, body := ask(t, "GET", sim+"/sim/records", "")
	for _, m := range regexp.MustCompile(`00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]`).FindAllString(body, -1) {
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// compare holds the spans of an exchange in Jaeger against its record, field by field.
func compare(t *testing.T, j *jaeger, x *exchange) {
	trace, own := x.sent()
	spans := j.trace(t, trace, 2)
	var server, client span
	for _, s := range spans {
		switch s.kind() {
		case "server":
			server = s
		case "client":
			client = s
		}
	}
	if client.SpanID != own || client.ParentSpanID != server.SpanID {
		t.Errorf("the client span is %s below %s; the engine got %s, the server span is %s", client.SpanID, client.ParentSpanID, own, server.SpanID)
	}
	parent := ""
	if trace == theirs[3:35] {
		parent = theirs[36:52]
	}
	if server.ParentSpanID != parent {
		t.Errorf("the server span is below %q, want %q", server.ParentSpanID, parent)
	}
	server.same(t, "benchproxy.record.id", x.ID)
	server.same(t, "http.response.status_code", strconv.Itoa(x.Status))
	server.same(t, "http.request.method", x.Method)
	server.same(t, "url.path", x.Path)
	server.same(t, "http.request.body.size", strconv.FormatInt(x.RequestBytes, 10))
	server.same(t, "http.response.body.size", strconv.FormatInt(x.ResponseBytes, 10))
	if got := nanos(t, server.Start); got != x.at(0) {
		t.Errorf("the server span starts %d ns after the origin", got-x.at(0))
	}
	client.same(t, "benchproxy.engine.build", "7")
	compareClient(t, x, &client, "record")
}

// same holds an attribute against the record.
func (s *span) same(t *testing.T, key, want string) {
	t.Helper()
	if got := attr(s.Attributes, key); got != want {
		t.Errorf("%s: %s is %q, the record has %q", s.Name, key, got, want)
	}
}

// compareClient holds the span of the engine's side of an exchange against its record, field by field.
func compareClient(t *testing.T, x *exchange, client *span, mode string) {
	t.Helper()
	for key, want := range map[string]string{
		"benchproxy.record.id": x.ID, "benchproxy.run.id": x.Run, "benchproxy.request.hash": x.Key, "benchproxy.record.state": x.State,
		"benchproxy.outcome": x.Outcome, "benchproxy.mode": mode, "http.response.status_code": strconv.Itoa(x.Status), "benchproxy.cell": x.Cell,
		"benchproxy.wave": x.Wave, "benchproxy.upstream": x.Upstream,
	} {
		client.same(t, key, want)
	}
	if x.Item != nil {
		client.same(t, "benchproxy.item", x.Item.Item)
	}
	if client.kind() != "client" || client.failed() != (x.Outcome != "complete") {
		t.Errorf("kind %s; outcome %s, status %+v", client.kind(), x.Outcome, client.Status)
	}
	if x.Method == "POST" && strings.HasPrefix(x.Path, "/v1/") {
		client.same(t, "gen_ai.request.model", x.Model)
		compareFigures(t, x, client)
	}
	compareTimes(t, x, client)
}

// compareFigures holds the metrics: every one that the record has is in the span, and no other.
func compareFigures(t *testing.T, x *exchange, client *span) {
	t.Helper()
	for key, from := range map[string]struct {
		metric string
		per    float64
	}{
		"benchproxy.ttft": {"ttft_ms", 1e3}, "benchproxy.ttfa": {"answer_ttft_ms", 1e3}, "benchproxy.tpot": {"tpot_ms", 1e3},
		"benchproxy.prefill.rate": {"prefill_tps", 1}, "benchproxy.decode.rate": {"decode_tps", 1}, "benchproxy.chunks": {"token_events", 1},
		"gen_ai.usage.input_tokens": {"prompt_tokens", 1}, "gen_ai.usage.output_tokens": {"completion_tokens", 1},
		"gen_ai.usage.cache_read.input_tokens": {"cached_tokens", 1}, "gen_ai.usage.reasoning.output_tokens": {"reasoning_tokens", 1},
	} {
		got, want := attr(client.Attributes, key), x.Metrics[from.metric]
		if want != nil && strings.HasPrefix(key, "gen_ai.usage") && x.Basis[from.metric] == "estimated" {
			want = nil
		}
		if (got != "") != (want != nil) {
			t.Errorf("%s is %q, the record has %v for %s", key, got, want, from.metric)
			continue
		}
		if v, _ := strconv.ParseFloat(got, 64); want != nil && math.Abs(v-*want/from.per) > 1e-9*math.Abs(v) {
			t.Errorf("%s is %s, the record has %g", key, got, *want/from.per)
		}
	}
	finish := ""
	if x.FinishReason != nil {
		finish = *x.FinishReason
	} else if x.Outcome != "complete" && x.Status == 200 {
		finish = "error"
	}
	if got := attr(client.Attributes, "gen_ai.response.finish_reasons"); (got == "") != (finish == "") || !strings.Contains(got, finish) {
		t.Errorf("finish reasons are %q, the record has %q", got, finish)
	}
}

// compareTimes holds that spans and events stand where the timeline of the record has them, to the nanosecond.
func compareTimes(t *testing.T, x *exchange, client *span) {
	t.Helper()
	tl := &x.Timeline
	if got := nanos(t, client.Start); got != x.at(tl.RequestRead) {
		t.Errorf("the client span starts %d ns beside", got-x.at(tl.RequestRead))
	}
	if tl.BodyEnd != nil && nanos(t, client.End) != x.at(*tl.BodyEnd) {
		t.Errorf("the client span ends %d ns beside", nanos(t, client.End)-x.at(*tl.BodyEnd))
	}
	want := map[string]*int64{"request_sent": tl.SendDone, "response_headers": tl.HeaderRead, "first_byte": tl.FirstRead, "stream_end": tl.BodyEnd}
	for name, metric := range map[string]string{"first_token": "ttft_ms", "last_token": "last_token_ms"} {
		want[name] = nil
		if ms := x.Metrics[metric]; ms != nil && tl.SendStart != nil {
			ns := *tl.SendStart + int64(math.Round(*ms*1e6))
			want[name] = &ns
		}
	}
	got := map[string]int64{}
	for _, e := range client.Events {
		got[strings.TrimPrefix(e.Name, "benchproxy.")] = nanos(t, e.Time)
	}
	for name, ns := range want {
		at, ok := got[name]
		if ok != (ns != nil) || ok && at != x.at(*ns) {
			t.Errorf("event %s: there is %v, off by %d ns", name, ok, at-x.at(0))
		}
	}
	if len(client.Events) > 10 {
		t.Errorf("there are %d events", len(client.Events))
	}
}

// replayed holds the tree of a replay, and that each of its exchanges is linked to the one it repeats.
func replayed(t *testing.T, j *jaeger, sim, store string, records []exchange) {
	_, said := run(t, j.env("replayed"), 0, "replay", "r", "--target", sim, "--store", store, "--run", "again", "--no-identify", "--only-path", "/v1/chat/completions")
	m := regexp.MustCompile(`run again \w+ is trace ([0-9a-f]{32})`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("no trace is named: %s", said)
	}
	again := shown(t, store, "again")
	spans := j.trace(t, m[1], len(again)+1)
	root := spans[slices.IndexFunc(spans, func(s span) bool { return s.kind() == "internal" })]
	if root.Name != "benchproxy replay" || root.ParentSpanID != "" || attr(root.Attributes, "benchproxy.run.id") != again[0].Run {
		t.Errorf("the root is %+v", root)
	}
	recorded := map[string]*exchange{}
	for i := range records {
		recorded[records[i].ID] = &records[i]
	}
	for i := range again {
		x := &again[i]
		trace, own := x.sent()
		k := slices.IndexFunc(spans, func(s span) bool { return s.SpanID == own })
		if trace != m[1] || k < 0 || spans[k].ParentSpanID != root.SpanID || spans[k].kind() != "client" {
			t.Errorf("exchange %s of trace %s is not below the run", x.ID, trace)
			continue
		}
		compareClient(t, x, &spans[k], "replay")
		wantTrace, wantSpan := recorded[x.Origin.Exchange].sent()
		if l := spans[k].Links; len(l) != 1 || l[0].TraceID != wantTrace || l[0].SpanID != wantSpan {
			t.Errorf("exchange %s is linked to %+v, want %s %s", x.ID, l, wantTrace, wantSpan)
		}
	}
}

// validated holds the tree of a validation.
func validated(t *testing.T, j *jaeger, sim string) {
	store := t.TempDir() + "/store"
	// What the scripted engine answers need not pass.
	_, said, _ := runAny(t, j.env("validated"), "validate", "inference", "--target", sim, "--store", store, "--run", "v", "--scenarios", "decode",
		"--concurrency", "1", "--repeats", "1", "--warmup", "1", "--max-tokens", "8", "--no-identify", "--model", "sim")
	m := regexp.MustCompile(`run v \w+ is trace ([0-9a-f]{32})`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("no trace is named: %s", said)
	}
	compareRun(t, j, m[1], shown(t, store, "v"), "benchproxy gate", byCase)
	revalidated(t, j, store)
}

// overGRPC holds that spans that go over gRPC are the same, and packed ones over HTTP too.
func overGRPC(t *testing.T, j *jaeger, sim string) {
	for _, env := range [][]string{
		j.env("over-grpc", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT="+j.grpc),
		j.env("over-gzip", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip"),
	} {
		r := record(t, sim, env...)
		ask(t, "POST", r.base+"/v1/chat/completions", streamed)
		r.stop(syscall.SIGINT)
		records := shown(t, r.store, "r")
		compare(t, j, &records[0])
		if text := r.stderr(); strings.Contains(text, "span") {
			t.Errorf("told was %s", text)
		}
	}
}

// off holds that a program that is told not to trace changes no header and tells nothing.
func off(t *testing.T, j *jaeger, sim string) {
	for name, env := range map[string][]string{
		"disabled": j.env("off-disabled", "OTEL_SDK_DISABLED=true"), "none": j.env("off-none", "OTEL_TRACES_EXPORTER=none"),
		"no endpoint": {"OTEL_SERVICE_NAME=off-nowhere"},
	} {
		r := record(t, sim, env...)
		ask(t, "POST", r.base+"/v1/chat/completions", streamed)
		ask(t, "POST", r.base+"/v1/chat/completions", streamed, "Traceparent", theirs, "Tracestate", "a=1")
		r.stop(syscall.SIGINT)
		for _, x := range shown(t, r.store, "r") {
			if trace, _ := x.sent(); trace != "" {
				t.Errorf("%s: the engine got trace %s", name, trace)
			}
		}
		if text := r.stderr(); strings.Contains(text, "trace") || strings.Contains(text, "span") {
			t.Errorf("%s: something is told of traces: %s", name, text)
		}
	}
	if !slices.Contains(engineHeaders(t, sim), theirs) {
		t.Error("the client's own header did not pass")
	}
	for _, s := range j.services(t) {
		if strings.HasPrefix(s, "off") {
			t.Errorf("Jaeger knows the service %s", s)
		}
	}
}

// promtool holds metrics against Prometheus' own rules.
func promtool(t *testing.T, text string) {
	t.Helper()
	lint := exec.Command(tool(t, "TEST_PROMTOOL"), "check", "metrics")
	lint.Stdin = strings.NewReader(text)
	if out, err := lint.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// checkMetrics fetches the metrics of a recording as Prometheus does, and holds them against what was asked.
func checkMetrics(t *testing.T, r *recording, exchanges int) {
	var text string
	waitFor(t, "the last record", func() bool {
		_, text = ask(t, "GET", r.admin+"/metrics", "")
		return strings.Contains(text, fmt.Sprintf("\nbenchproxy_record_stored_total %d\n", exchanges)) && !strings.Contains(text, "\nbenchproxy_spans_exported_total 0\n")
	})
	for _, want := range []string{"benchproxy_build_info{", "benchproxy_store_size_bytes ", "benchproxy_store_free_bytes ", "benchproxy_record_queue_bytes 0\n",
		"http_server_active_requests 0\n", `benchproxy_record_dropped_total{reason="queue_full"} 0`, "benchproxy_request_write_stall_seconds_count ", "benchproxy_spans_lost_total 0\n",
		`benchproxy_exchanges_total{outcome="stream_error"} 1`, "benchproxy_request_time_to_first_token_seconds_count{"} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("there is no %s", want)
		}
	}
	promtool(t, text)
	if _, open := ask(t, "GET", r.admin+"/metrics", "", "Accept", "application/openmetrics-text"); !strings.Contains(open, `# {`) || !strings.Contains(open, "trace_id=") {
		t.Error("the OpenMetrics form has no exemplars")
	}
}

// TestKinds holds that both spellings of a kind are read.
func TestKinds(t *testing.T) {
	var s span
	for _, word := range []string{`"SPAN_KIND_CLIENT"`, `3`} {
		if err := json.Unmarshal([]byte(`{"kind":`+word+`}`), &s); err != nil || s.kind() != "client" {
			t.Errorf("%s is %q, %v", word, s.kind(), err)
		}
	}
}
