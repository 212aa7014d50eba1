package telemetry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

const (
	theirTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	theirSpan  = "00f067aa0ba902b7"
)

func theirs(flags string) []exchange.Header {
	return []exchange.Header{{Name: "TraceParent", Value: "00-" + theirTrace + "-" + theirSpan + "-" + flags}, {Name: "tracestate", Value: "a=1"}}
}

// byName ends the rig and gives its spans by their names.
func (r *rig) byName(t testing.TB) map[string]tracetest.SpanStub {
	t.Helper()
	r.Close()
	out := map[string]tracetest.SpanStub{}
	for _, s := range r.to.GetSpans() {
		if _, twice := out[s.Name]; twice {
			t.Fatalf("two spans are called %s", s.Name)
		}
		out[s.Name] = s
	}
	return out
}

// TestMisses holds the spans of a stand-in's misses: one each below the run, bounded, and counted there.
func TestMisses(t *testing.T) {
	r := newRig(t, nil)
	run := r.NewRun()
	long := strings.Repeat("x", 1<<17)
	run.Miss(Miss{Method: "POST", Target: "/v1/chat/completions?k=***", Key: "h1:1", Why: "not_recorded", Text: "a\x1b[2Jb", Nearest: "N", Differs: []string{"$.a", "$.b"}})
	run.Miss(Miss{Method: long, Target: "/" + long, Key: long, Why: long, Text: long, Differs: slices.Repeat([]string{long}, 100)})
	run.End(&exchange.Run{Mode: "serve", State: exchange.RunComplete})
	spans := r.byName(t)
	miss, root, odd := spans["miss POST /v1/chat/completions"], spans["benchproxy serve"], spans["miss HTTP"]
	want := map[string]string{httpMethod: "POST", httpRoute: "/v1/chat/completions", urlPath: "/v1/chat/completions", urlQuery: "k=***", ourHash: "h1:1",
		errorType: "replay_miss", ourMiss: "not_recorded", ourNearest: "N", ourDiffers: `["$.a","$.b"]`, ourMode: "serve"}
	if d := cmp.Diff(want, attrsOf(miss.Attributes)); d != "" || miss.Status.Description != "a_[2Jb" {
		t.Errorf("%q (-want +got)\n%s", miss.Status.Description, d)
	}
	if miss.Parent.SpanID() != root.SpanContext.SpanID() || attrsOf(root.Attributes)[ourMisses] != "2" || attrsOf(root.Attributes)[ourExchanges] != "2" {
		t.Errorf("below %s; the run tells %v", miss.Parent.SpanID(), attrsOf(root.Attributes))
	}
	for _, kv := range odd.Attributes {
		if len(kv.Value.String()) > 20*maxValue {
			t.Errorf("%s has %d bytes", kv.Key, len(kv.Value.String()))
		}
	}
}

// TestServed holds the span of a recorded answer that is given again: when, of what, and linked to the recorded exchange.
func TestServed(t *testing.T) {
	r := newRig(t, nil)
	run := r.NewRun()
	recorded := exchange.SpanContext{Trace: newTraceID(), Span: newSpanID(), Sampled: true}
	at := wall().Add(time.Second)
	run.Served(Served{Method: "POST", Target: "/v1/completions", Key: "h1:2", Recorded: "X", Span: recorded, Status: 200, Start: at, Took: 5 * time.Millisecond, Sent: 77})
	run.Served(Served{Method: "GET", Target: "/v1/models", Status: 503, Start: at})
	run.Served(Served{Method: "GET", Target: "/health", Start: at, Cut: true})
	run.End(&exchange.Run{Mode: "serve"})
	spans := r.byName(t)
	s, root := spans["POST /v1/completions"], spans["benchproxy serve"]
	want := map[string]string{httpMethod: "POST", httpRoute: "/v1/completions", urlPath: "/v1/completions", ourHash: "h1:2", httpStatus: "200", ourSent: "77",
		ourMode: "serve", ourReplayed: "X"}
	if d := cmp.Diff(want, attrsOf(s.Attributes)); d != "" || !s.StartTime.Equal(at) || s.EndTime.Sub(s.StartTime) != 5*time.Millisecond || s.SpanKind.String() != "server" {
		t.Errorf("%s %s to %s (-want +got)\n%s", s.SpanKind, s.StartTime, s.EndTime, d)
	}
	if len(s.Links) != 1 || s.Links[0].SpanContext.SpanID().String() != recorded.Span.String() || s.Links[0].SpanContext.TraceID().String() != recorded.Trace.String() {
		t.Errorf("it is linked to %v", s.Links)
	}
	if s.Parent.SpanID() != root.SpanContext.SpanID() || attrsOf(root.Attributes)[ourExchanges] != "3" || attrsOf(root.Attributes)[ourMisses] != "" {
		t.Errorf("below %s; the run tells %v", s.Parent.SpanID(), attrsOf(root.Attributes))
	}
	if f := spans["GET /v1/models"]; f.Status.Code.String() != "Error" || len(f.Links) != 0 {
		t.Errorf("a recorded failure has %+v, links %v", f.Status, f.Links)
	}
	if c := spans["GET /health"]; c.Status.Code.String() != "Unset" || attrsOf(c.Attributes)[errorType] != errClient || attrsOf(c.Attributes)[httpStatus] != "" {
		t.Errorf("an answer whose client left has %+v, %v", c.Status, attrsOf(c.Attributes))
	}
}

// TestServedInAClientsTrace holds that what a client asks a stand-in goes on with the trace of the client, by its decision,
// and leads to the run by a link; without propagation no header counts.
func TestServedInAClientsTrace(t *testing.T) {
	for name, x := range map[string]struct {
		flags string
		vars  []string
		here  bool // in the client's trace
		told  int  // spans of the three requests; a passed on one has two
	}{
		"sampled":             {"01", nil, true, 4},
		"not sampled":         {"00", nil, true, 0},
		"without propagation": {"01", []string{"OTEL_PROPAGATORS", "none"}, false, 4},
	} {
		r := newRig(t, nil, x.vars...)
		run := r.NewRun()
		run.Served(Served{Method: "GET", Target: "/health", Trace: theirs(x.flags), Start: wall()})
		run.Miss(Miss{Method: "GET", Trace: theirs(x.flags)})
		passed := wholeAnswer()
		passed.Request.Headers = append(passed.Request.Headers, theirs(x.flags)...)
		run.Clients().Trace(passed.ID, "", passed.Request.Headers, true)
		r.Measured(passed, measure.Analyze(passed))
		r.Unrecorded(passed.ID)
		r.Close()
		spans := r.to.GetSpans()
		if len(spans) != x.told {
			t.Errorf("%s: %d spans are told", name, len(spans))
		}
		for _, s := range spans {
			if got := s.SpanContext.TraceID().String(); (got == theirTrace) != x.here || !x.here && got != run.TraceID() {
				t.Errorf("%s: %s is in trace %s", name, s.Name, got)
			}
			if got := s.Parent.SpanID().String(); s.SpanKind.String() == "server" && (got == theirSpan) != x.here {
				t.Errorf("%s: %s is below %s", name, s.Name, got)
			}
			if attrsOf(s.Attributes)[ourRecord] != "" && s.SpanKind.String() == "server" {
				continue // the span of the engine's side has the link
			}
			if linked := len(s.Links) == 1 && s.Links[0].SpanContext.TraceID().String() == run.TraceID(); linked != x.here {
				t.Errorf("%s: the links of %s are %v", name, s.Name, s.Links)
			}
		}
	}
}

// TestServedWithoutATrace holds that a stand-in that is not traced, or not sampled, tells nothing.
func TestServedWithoutATrace(t *testing.T) {
	var none *Run
	none.Miss(Miss{})
	none.Served(Served{})
	off := newRig(t, nil, "OTEL_TRACES_SAMPLER", "always_off")
	run := off.NewRun()
	run.Miss(Miss{})
	run.Served(Served{})
	below := wholeAnswer()
	run.Clients().Trace(below.ID, "", nil, true)
	if off.Close(); len(off.to.GetSpans()) != 0 {
		t.Error("an unsampled run tells spans")
	}
}

// TestSinglesAreBounded holds that spans that find no room are counted, and that nobody waits.
func TestSinglesAreBounded(t *testing.T) {
	stuck := &Tracing{single: make(chan single, 2)}
	stuck.o.Settings = settingsOf(t)
	run := stuck.NewRun()
	for range 9 {
		run.Miss(Miss{})
	}
	if got := stuck.missed.Load(); got != 7 {
		t.Errorf("%d are counted", got)
	}
}
