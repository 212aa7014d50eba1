package proxy

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// fixedTracer has the engine get the same headers whatever was asked, and keeps what it was asked.
type fixedTracer struct {
	headers []exchange.Header
	id      exchange.ID
	cell    string
	served  bool
	got     []exchange.Header
}

func (f *fixedTracer) Trace(id exchange.ID, cell string, headers []exchange.Header, served bool) []exchange.Header {
	f.id, f.cell, f.served, f.got = id, cell, served, append([]exchange.Header(nil), headers...)
	return f.headers
}

const (
	theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ours   = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

// TestTraceHeaders holds what the engine gets of a trace, and that the record tells every difference.
func TestTraceHeaders(t *testing.T) {
	set := func(pairs ...string) (hs []exchange.Header) {
		for i := 0; i < len(pairs); i += 2 {
			hs = append(hs, exchange.Header{Name: pairs[i], Value: pairs[i+1]})
		}
		return hs
	}
	note := func(kind, name, from, to string) exchange.Intervention {
		return exchange.Intervention{Kind: kind, Where: exchange.SideEngine, Name: name, From: from, To: to, Reason: "trace_context"}
	}
	cases := map[string]struct {
		client []string // header lines
		tracer []exchange.Header
		engine []string // header lines of a trace
		notes  []exchange.Intervention
	}{
		"nothing of either": {},
		"added":             {nil, set("traceparent", ours), []string{"traceparent: " + ours}, []exchange.Intervention{note("header_added", "traceparent", "", ours)}},
		"changed in its place and case": {[]string{"TraceParent: " + theirs, "tracestate: a=1"}, set("traceparent", ours),
			[]string{"TraceParent: " + ours, "tracestate: a=1"}, []exchange.Intervention{note("header_changed", "TraceParent", theirs, ours)}},
		"the same is no change": {[]string{"traceparent: " + theirs}, set("traceparent", theirs), []string{"traceparent: " + theirs}, nil},
		"left out": {[]string{"tracestate: a=1"}, set("traceparent", ours, "tracestate", ""), []string{"traceparent: " + ours},
			[]exchange.Intervention{note("header_removed", "tracestate", "a=1", ""), note("header_added", "traceparent", "", ours)}},
		"one of two": {[]string{"traceparent: " + theirs, "traceparent: x"}, set("traceparent", ours), []string{"traceparent: " + ours},
			[]exchange.Intervention{note("header_changed", "traceparent", theirs, ours), note("header_removed", "traceparent", "x", "")}},
		"off passes all": {[]string{"traceparent: " + theirs, "tracestate: a=1", "baggage: k=v"}, nil, []string{"traceparent: " + theirs, "tracestate: a=1", "baggage: k=v"}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, stream(chunkedHead, done))
			tracer := &fixedTracer{headers: c.tracer}
			r := newRig(t, e.url(), func(o *rigOptions) { o.session.Tracer = tracer })
			client := r.dial()
			client.post(plainAsk, c.client...)
			client.ok(200)
			x := r.sink.next(t)
			checkRecord(t, x)
			if d := cmp.Diff(c.engine, traceLines(e.last(t).Head)); d != "" {
				t.Errorf("the engine got (-want +got)\n%s", d)
			}
			if d := cmp.Diff(c.notes, traceNotes(x)); d != "" {
				t.Errorf("interventions (-want +got)\n%s", d)
			}
			if tracer.id != x.ID || !tracer.served || len(tracer.got) != len(c.client)+2 {
				t.Errorf("the tracer was asked with %+v", tracer)
			}
			if sent, ok := exchange.SentTrace(x.Interventions); ok != (len(c.notes) > 0) || ok && sent.TraceParent() != ours {
				t.Errorf("the record gives %s as sent, %v", sent.TraceParent(), ok)
			}
		})
	}
}

func traceLines(head string) (out []string) {
	for line := range strings.SplitSeq(head, "\r\n") {
		if name, _, _ := strings.Cut(strings.ToLower(line), ":"); name == "traceparent" || name == "tracestate" || name == "baggage" {
			out = append(out, line)
		}
	}
	return out
}

func traceNotes(x *exchange.Exchange) (out []exchange.Intervention) {
	for _, v := range x.Interventions {
		if v.Reason == traceContext {
			out = append(out, v)
		}
	}
	return out
}

// TestTracerOfACall holds what a tracer is told of an exchange that no client asked for.
func TestTracerOfACall(t *testing.T) {
	e := newEngine(t, stream(chunkedHead, done))
	tracer := &fixedTracer{headers: []exchange.Header{{Name: "traceparent", Value: ours}}}
	r := newRig(t, e.url(), func(o *rigOptions) { o.session.Tracer = tracer })
	x := r.session.Do(context.Background(), r.up, Call{Method: "POST", Target: "/v1/chat/completions", Cell: "cell", Body: []byte(plainAsk)}, nil)
	if tracer.id != x.ID || tracer.served || tracer.cell != "cell" {
		t.Errorf("the tracer was asked with %+v", tracer)
	}
	if d := cmp.Diff([]string{"traceparent: " + ours}, traceLines(e.last(t).Head)); d != "" {
		t.Errorf("the engine got (-want +got)\n%s", d)
	}
}

// panickingTracer is broken.
type panickingTracer struct{}

func (panickingTracer) Trace(exchange.ID, string, []exchange.Header, bool) []exchange.Header {
	panic("no trace")
}

// TestBrokenTracer holds that a tracer that panics costs its exchange and nothing else.
func TestBrokenTracer(t *testing.T) {
	e := newEngine(t, stream(chunkedHead, done))
	r := newRig(t, e.url(), func(o *rigOptions) { o.session.Tracer = panickingTracer{} })
	client := r.dial()
	client.post(plainAsk)
	client.ok(500)
	if x := r.sink.next(t); x.Cause == nil || x.Cause.Code != "panic" {
		t.Errorf("the cause is %+v", x.Cause)
	}
}
