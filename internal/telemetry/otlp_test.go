package telemetry

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// spansOfTests are spans as ours are, and with all that a span can have.
func spansOfTests(t testing.TB) []sdktrace.ReadOnlySpan {
	t.Helper()
	r := newRig(t, nil)
	run := r.NewRun()
	run.Miss(Miss{Method: "POST", Trace: theirs("01"), Text: "none"})
	r.pass(wholeAnswer(), true)
	run.End(&exchange.Run{Mode: "serve"})
	r.Close()
	var out []sdktrace.ReadOnlySpan
	for _, s := range r.to.GetSpans() {
		s.InstrumentationScope = instrumentation.Scope{Name: "benchproxy", Version: "v9"}
		out = append(out, s.Snapshot())
	}
	from := &origin{resource: resource.NewWithAttributes("https://schema.example/1", attribute.String("service.name", "s"), attribute.Int64("n", 7)),
		scope: instrumentation.Scope{Name: "benchproxy", Version: "v9"}}
	state, err := trace.ParseTraceState("a=1,b=2")
	if err != nil {
		t.Fatal(err)
	}
	place := func(remote bool) trace.SpanContext {
		id, span := newTraceID(), newSpanID()
		return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(id), SpanID: trace.SpanID(span), TraceFlags: 1, TraceState: state, Remote: remote})
	}
	all := attributes{attribute.String("empty", ""), attribute.String("text", "é\x00 <b>"), attribute.Bool("no", false), attribute.Bool("yes", true), attribute.Int64("zero", 0),
		attribute.Int64("less", math.MinInt64), attribute.Float64("f", -0.25), attribute.Float64("f0", 0), attribute.StringSlice("none", nil), attribute.StringSlice("list", []string{"", "x"}),
		attribute.String("long", strings.Repeat("y", 70_000))}
	full := &span{name: "all", kind: trace.SpanKindProducer, start: time.Unix(0, 1), end: time.Unix(1, 0), attrs: all, failed: true, why: "because",
		events: []sdktrace.Event{{Name: "e", Time: time.Unix(0, 5), Attributes: all, DroppedAttributeCount: 3}, {Time: time.Unix(-5, 0)}}}
	bare := &span{start: time.Unix(-1, 0), end: time.Unix(-1, 0)}
	return append(out,
		&told{from: from, own: place(false), parent: place(true), span: full, dropped: dropped{1, 2, 3},
			links: []sdktrace.Link{{SpanContext: place(true), Attributes: all, DroppedAttributeCount: 4}, {SpanContext: place(false)}}},
		&told{from: from, own: place(false), span: bare})
}

// TestMessagesAreThoseOfTheProtocolsLibrary holds our form of spans against that of OpenTelemetry's own exporter, byte for
// byte.
func TestMessagesAreThoseOfTheProtocolsLibrary(t *testing.T) {
	var theirs []byte
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { theirs, _ = io.ReadAll(r.Body) }))
	defer collector.Close()
	library, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(collector.URL+"/v1/traces"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := library.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for _, s := range spansOfTests(t) {
		list := []sdktrace.ReadOnlySpan{s, s}
		if err := library.ExportSpans(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		var ours protobuf
		ours.spans(list)
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s: ours\n%q\ntheirs\n%q", s.Name(), cut(string(ours), 2000), cut(string(theirs), 2000))
		}
	}
}

// TestNumbers holds kinds and states that no span of ours has.
func TestNumbers(t *testing.T) {
	for k, want := range map[trace.SpanKind]int{trace.SpanKindUnspecified: 0, trace.SpanKindConsumer: 5, 99: 0} {
		if got := kindNumber(k); got != want {
			t.Errorf("kind %v is %d", k, got)
		}
	}
	if statusNumber(codes.Ok) != 1 || statusNumber(codes.Unset) != 0 {
		t.Error("states have other numbers")
	}
	var p protobuf
	p.value(attribute.IntSliceValue([]int{1, 2}))
	if want := append([]byte{1<<3 | wireBytes, 5}, "[1,2]"...); !bytes.Equal(p, want) {
		t.Errorf("a value of another kind is %q", p)
	}
}

// TestAnswersOfCollectors holds what is read of them.
func TestAnswersOfCollectors(t *testing.T) {
	var some protobuf
	at := some.open(1)
	some.varint(1, 3)
	some.text(2, "too old")
	some.close(at)
	some.varint(9, 1) // of a later version
	some.fixed64(10, 1)
	some.tag(11, wireFixed32)
	some = binary.LittleEndian.AppendUint32(some, 1)
	if p, ok := readPartial(some); !ok || p != (partial{3, "too old"}) {
		t.Errorf("%+v, %v", p, ok)
	}
	for _, broken := range [][]byte{{0xff}, {8}, {9, 1}, {10, 5, 1}, {10, 0xff}, {13, 1}, {11}, {10, 2, 8, 0xff}} {
		if p, ok := readPartial(broken); ok {
			t.Errorf("%x is read as %+v", broken, p)
		}
	}
	if p, ok := readPartial(nil); !ok || p != (partial{}) {
		t.Errorf("nothing is read as %+v, %v", p, ok)
	}
	var status protobuf
	status.varint(1, 14)
	status.text(2, "no room")
	if readStatus(status) != "no room" || readStatus([]byte{0xff}) != "" {
		t.Error("a status is read as another")
	}
}

// FuzzFields holds that what was written is read, whatever the values, and that nothing a collector answers is read beyond
// its end.
func FuzzFields(f *testing.F) {
	f.Add(uint64(3), "why", []byte{10, 2, 8, 1})
	f.Add(uint64(math.MaxUint64), "", []byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, rejected uint64, why string, garbage []byte) {
		var p protobuf
		at := p.open(1)
		p.varint(1, rejected)
		p.text(2, why)
		p.close(at)
		if got, ok := readPartial(p); !ok || got != (partial{int64(rejected), why}) {
			t.Errorf("%+v, %v", got, ok)
		}
		readPartial(garbage)
		readStatus(slices.Concat(garbage, p))
	})
}

// BenchmarkMessages is what a batch of spans costs to be written, for each exchange of two spans.
func BenchmarkMessages(b *testing.B) {
	r := newRig(b, nil)
	r.pass(wholeAnswer(), true)
	r.Close()
	var list []sdktrace.ReadOnlySpan
	for range 256 {
		for _, s := range r.to.GetSpans() {
			list = append(list, s.Snapshot())
		}
	}
	var p protobuf
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(list) / 2 {
		p = p[:0]
		p.spans(list)
	}
}
