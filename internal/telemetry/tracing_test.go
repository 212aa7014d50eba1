package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// TestOff holds that nothing is made without an endpoint, and that what is not there takes every call.
func TestOff(t *testing.T) {
	s, err := ReadSettings(func(string) string { return "" }, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	off, err := Open(context.Background(), Options{Settings: s})
	if off != nil || err != nil {
		t.Fatalf("got %v, %v", off, err)
	}
	x := wholeAnswer()
	off.Measured(x, measure.Analyze(x))
	off.Stored(&exchange.Summary{ID: x.ID})
	off.Unrecorded(x.ID)
	off.Dropped(x.ID)
	off.Refused(x)
	run := off.NewRun()
	run.End(&exchange.Run{})
	if run != nil || run.TraceID() != "" || off.Span(x.ID) != (exchange.SpanContext{}) || off.Close() != (Counts{}) || off.Counts() != (Counts{}) {
		t.Error("what is off is something")
	}
	var none *Metrics
	none.Observe(x, measure.Analyze(x), exchange.SpanContext{})
}

// TestResource holds who the spans say they are from, and that the environment of the process has the last word.
func TestResource(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=lab")
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	r := newRig(t, nil)
	r.pass(wholeAnswer(), false)
	a := attrsOf(r.spans(t)["client"].Resource.Attributes())
	if a["service.name"] != "mine" || a["service.version"] != "v9" || a["deployment.environment.name"] != "lab" || a["telemetry.sdk.name"] != "opentelemetry" {
		t.Errorf("the resource is %v", a)
	}
}

// TestRecordState holds what spans say became of the record.
func TestRecordState(t *testing.T) {
	for want, end := range map[string]func(r *rig, x *exchange.Exchange){
		"stored": func(r *rig, x *exchange.Exchange) { r.Stored(&exchange.Summary{ID: x.ID, State: exchange.StateStored}) },
		"truncated": func(r *rig, x *exchange.Exchange) {
			r.Stored(&exchange.Summary{ID: x.ID, State: exchange.StateTruncated})
		},
		"off":     func(r *rig, x *exchange.Exchange) { r.Unrecorded(x.ID) },
		"dropped": func(r *rig, x *exchange.Exchange) { r.Dropped(x.ID) },
	} {
		r := newRig(t, nil)
		x := wholeAnswer()
		r.Trace(x.ID, "", nil, true)
		r.Measured(x, measure.Analyze(x))
		end(r, x)
		end(r, x) // a second word on it is none
		if got := attrsOf(r.spans(t)["client"].Attributes)[ourState]; got != want {
			t.Errorf("the state is %q, want %q", got, want)
		}
	}
	r := newRig(t, nil)
	x := wholeAnswer()
	r.Trace(x.ID, "", nil, true)
	r.Dropped(x.ID) // the recorder's word comes before the exchange itself
	r.Refused(x)
	a := attrsOf(r.spans(t)["client"].Attributes)
	if a[ourState] != "dropped" || a[ourTTFT] != "0.04" {
		t.Errorf("a refused exchange is told as %v", a)
	}
}

// TestUnsampled holds that a trace that is not exported still reaches the engine, and tells no span.
func TestUnsampled(t *testing.T) {
	r := newRig(t, nil, "OTEL_TRACES_SAMPLER", "always_off")
	x := wholeAnswer()
	headers := r.pass(x, true)
	if len(headers) != 1 || !strings.HasSuffix(headers[0].Value, "-00") || r.Span(x.ID).Sampled {
		t.Errorf("the engine gets %v", headers)
	}
	if got := r.spans(t); len(got) != 0 {
		t.Errorf("spans were told: %v", got)
	}
}

// TestWithoutPropagation holds that no header is read or written, and that spans are told all the same.
func TestWithoutPropagation(t *testing.T) {
	r := newRig(t, nil, "OTEL_PROPAGATORS", "none")
	x := wholeAnswer()
	x.Request.Headers = append(x.Request.Headers, exchange.Header{Name: "traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if headers := r.pass(x, true); headers != nil {
		t.Errorf("the engine gets %v", headers)
	}
	if got := r.spans(t); len(got) != 2 || got["server"].Parent.IsValid() {
		t.Errorf("spans %v", got)
	}
}

// TestRun holds the tree of a run: run, cells, exchanges, and the link to what is replayed.
func TestRun(t *testing.T) {
	recorded := exchange.SpanContext{Trace: newTraceID(), Span: newSpanID(), Sampled: true}
	known := exchange.NewID(wall())
	r := newRig(t, func(o *Options) {
		o.Link = func(id exchange.ID) (exchange.SpanContext, bool) { return recorded, id == known }
	})
	run := r.NewRun()
	send := func(cell string, tracer interface {
		Trace(exchange.ID, string, []exchange.Header, bool) []exchange.Header
	}, origin *exchange.Origin) exchange.ID {
		x := wholeAnswer()
		x.ID, x.Mode, x.Origin = exchange.NewID(wall()), "replay", origin
		headers := tracer.Trace(x.ID, cell, []exchange.Header{{Name: "tracestate", Value: "old=1"}}, false)
		if len(headers) != 2 || headers[1].Value != "" {
			t.Errorf("the engine gets %v", headers)
		}
		r.Measured(x, measure.Analyze(x))
		r.Stored(&exchange.Summary{ID: x.ID, State: exchange.StateStored})
		return x.ID
	}
	direct := send("", run, &exchange.Origin{Exchange: known})
	inCell := send("a", run, &exchange.Origin{Exchange: exchange.NewID(wall())})
	byTracer := send("", run.Cell("b"), nil)
	run.End(&exchange.Run{ID: "R", Name: "n", Mode: "replay", State: exchange.RunIncomplete, Counts: exchange.RunCounts{Stored: 3, Dropped: 1}})
	r.Close()
	byName, byRecord := map[string]tracetest.SpanStub{}, map[string]tracetest.SpanStub{}
	for _, s := range r.to.GetSpans() {
		byName[s.Name] = s
		byRecord[attrsOf(s.Attributes)[ourRecord]] = s
		if s.SpanContext.TraceID().String() != run.TraceID() {
			t.Errorf("span %s is in trace %s, the run in %s", s.Name, s.SpanContext.TraceID(), run.TraceID())
		}
	}
	root := byName["benchproxy replay"]
	if d := cmp.Diff(map[string]string{"benchproxy.run.id": "R", "benchproxy.run.name": "n", "benchproxy.mode": "replay", "benchproxy.run.state": "incomplete",
		"benchproxy.run.stored": "3", "benchproxy.run.dropped": "1", "benchproxy.exchanges": "3"}, attrsOf(root.Attributes)); d != "" || root.Parent.IsValid() {
		t.Errorf("the run's span (-want +got)\n%s", d)
	}
	for name, id := range map[string]exchange.ID{"benchproxy replay": direct, "cell a": inCell, "cell b": byTracer} {
		if s := byRecord[string(id)]; s.Parent.SpanID() != byName[name].SpanContext.SpanID() {
			t.Errorf("an exchange of %s is below %s", name, s.Parent.SpanID())
		}
	}
	if byName["cell a"].Parent.SpanID() != root.SpanContext.SpanID() || !byName["cell a"].EndTime.Equal(byRecord[string(inCell)].EndTime) {
		t.Errorf("the cell is %+v", byName["cell a"])
	}
	links := byRecord[string(direct)].Links
	if len(links) != 1 || links[0].SpanContext.TraceID().String() != recorded.Trace.String() || links[0].SpanContext.SpanID().String() != recorded.Span.String() {
		t.Errorf("the link is %v", links)
	}
	if len(byRecord[string(inCell)].Links) != 0 {
		t.Error("an unknown origin is linked")
	}
}

// failing is an exporter that takes nothing; it waits for gate, where there is one.
type failing struct {
	gate chan struct{}
}

func (f failing) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
		}
	}
	return errors.New("post http://u:hunter2@collector: connection refused")
}

func (f failing) Shutdown(context.Context) error { return nil }

// TestLostSpans holds that every span is either exported or counted as lost, that the first trouble alone is told, and
// that nothing waits for a stuck exporter.
func TestLostSpans(t *testing.T) {
	gate := make(chan struct{})
	r := newRig(t, func(o *Options) {
		o.Exporter = func(context.Context) (sdktrace.SpanExporter, error) { return failing{gate}, nil }
	}, "OTEL_BSP_MAX_QUEUE_SIZE", "4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2", "OTEL_BSP_SCHEDULE_DELAY", "1")
	const n = 50
	for range n {
		x := wholeAnswer()
		x.ID = exchange.NewID(wall())
		r.pass(x, true)
	}
	never := wholeAnswer()
	never.ID = exchange.NewID(wall())
	r.Trace(never.ID, "", nil, true) // it is never measured
	close(gate)
	if got := r.Close(); got != (Counts{Lost: 2*n + 2}) {
		t.Errorf("counts are %+v", got)
	}
	if len(r.trouble) != 1 || strings.Contains(r.trouble[0], "hunter2") || !strings.Contains(r.trouble[0], "refused") {
		t.Errorf("told was %q", r.trouble)
	}
}

// TestQuiet holds that OTEL_LOG_LEVEL=none tells nobody.
func TestQuiet(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Exporter = func(context.Context) (sdktrace.SpanExporter, error) { return failing{}, nil }
	}, "OTEL_LOG_LEVEL", "none")
	r.pass(wholeAnswer(), true)
	if got := r.Close(); got.Lost != 2 || len(r.trouble) != 0 {
		t.Errorf("counts %+v, told %q", got, r.trouble)
	}
}

// TestExporterThatCannotBeMade holds the error of Open.
func TestExporterThatCannotBeMade(t *testing.T) {
	broken := errors.New("no")
	_, err := Open(context.Background(), Options{Settings: settingsOf(t), Exporter: func(context.Context) (sdktrace.SpanExporter, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestExporters holds that the real exporters reach a collector, or count what they cannot send; the console writes lines.
func TestExporters(t *testing.T) {
	var mu sync.Mutex
	paths := map[string]int{}
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if len(body) > 0 {
			paths[r.URL.Path]++
		}
	}))
	defer collector.Close()
	var console strings.Builder
	both := newRig(t, func(o *Options) { o.Exporter, o.Console = nil, &console }, "OTEL_TRACES_EXPORTER", "otlp,console", "OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	both.pass(wholeAnswer(), true)
	if got := both.Close(); got != (Counts{Exported: 2}) || paths["/v1/traces"] != 1 || strings.Count(console.String(), "\n") != 2 {
		t.Errorf("counts %+v, asked %v, console %q", got, paths, console.String())
	}
	collector.Close()
	dead := newRig(t, func(o *Options) { o.Exporter = nil }, "OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	dead.pass(wholeAnswer(), true)
	if got := dead.Close(); got != (Counts{Lost: 2}) || len(dead.trouble) != 1 {
		t.Errorf("counts %+v, told %q", got, dead.trouble)
	}
	grpc := newRig(t, func(o *Options) { o.Exporter = nil }, "OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_BSP_EXPORT_TIMEOUT", "50")
	grpc.pass(wholeAnswer(), true)
	if got := grpc.Close(); got != (Counts{Lost: 2}) || len(grpc.trouble) != 1 {
		t.Errorf("counts %+v, told %q", got, grpc.trouble)
	}
}

// TestPlacesAreBounded holds that exchanges that never end cost no more than a bound.
func TestPlacesAreBounded(t *testing.T) {
	r := newRig(t, nil)
	for i := range maxPlaces + 10 {
		r.Trace(exchange.ID(fmt.Sprint(i)), "", nil, false)
	}
	if n := len(r.places); n != maxPlaces {
		t.Errorf("%d places are held", n)
	}
	if got := r.Close(); got.Lost != maxPlaces+10 {
		t.Errorf("counts %+v", got)
	}
}

// BenchmarkTrace is what tracing costs the measured path.
func BenchmarkTrace(b *testing.B) {
	r := newRig(b, nil)
	defer r.Close()
	headers := []exchange.Header{{Name: "Host", Value: "h"}, {Name: "Content-Type", Value: "application/json"}, {Name: "traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	id := exchange.NewID(time.Unix(0, 0))
	b.ReportAllocs()
	for b.Loop() {
		r.Trace(id, "", headers, true)
	}
}

// BenchmarkSpans is what the spans of an exchange cost behind it.
func BenchmarkSpans(b *testing.B) {
	r := newRig(b, func(o *Options) {
		o.Exporter = func(context.Context) (sdktrace.SpanExporter, error) { return failing{}, nil }
	})
	defer r.Close()
	x := wholeAnswer()
	a := measure.Analyze(x)
	b.ReportAllocs()
	for b.Loop() {
		r.Trace(x.ID, "", nil, true)
		r.Measured(x, a)
		p := r.take(x.ID)
		r.tell(settled{p, "stored", "h1:0"})
	}
}
