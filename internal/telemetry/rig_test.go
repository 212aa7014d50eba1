package telemetry

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = int64(time.Millisecond)

// wall is the origin of the exchanges of these tests.
func wall() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func delta(text string) string {
	return `{"id":"c-1","model":"served","choices":[{"index":0,"delta":` + text + `}]}`
}

// streamed is a sealed exchange whose answer came as these events, the first 30 ms after t0 and each next 10 ms later.
func streamed(body string, events ...string) *exchange.Exchange {
	x := &exchange.Exchange{
		ID: exchange.NewID(wall()), Run: exchange.NewID(wall()), Upstream: "engine", UpstreamURL: "http://10.1.2.3:8080/base", Mode: "record",
		Identity: exchange.Identity{Engine: "llamacpp", Version: "b4711", Basis: "probe"},
		Request: exchange.Request{Method: "POST", Target: "/v1/chat/completions?trace=***", Proto: "HTTP/1.1", Body: exchange.NewBody([]byte(body)),
			Headers: []exchange.Header{{Name: "Host", Value: "proxy.local:8090"}, {Name: "User-Agent", Value: "agent/1"}}},
		Response: exchange.Response{Status: 200, Proto: "HTTP/1.1", Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}}},
		End:      exchange.EndEOF, State: exchange.StateStored, Masked: true,
	}
	at := func(v int64) exchange.Mark { return exchange.MarkAt(v * ms) }
	x.Timeline = exchange.Timeline{Wall: wall(), Clock: exchange.ClockRead, Accepted: at(0), RequestRead: at(1), Dialed: at(2), SendStart: at(3), SendDone: at(4), HeaderRead: at(20)}
	var text strings.Builder
	for i, e := range events {
		block := "data: " + e + "\n\n"
		text.WriteString(block)
		stamp := (33 + 10*int64(i)) * ms
		x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: stamp, Write: 50_000, Size: len(block)})
		x.Timeline.LastRead = exchange.MarkAt(stamp)
	}
	if len(events) > 0 {
		x.Timeline.FirstRead = at(33)
	}
	last, _ := x.Timeline.LastRead.NS()
	x.Timeline.BodyEnd, x.Timeline.ClientDone = exchange.MarkAt(last+ms), exchange.MarkAt(last+2*ms)
	x.Response.Body = exchange.NewBody([]byte(text.String()))
	return x
}

const askBody = `{"model":"asked","stream":true,"max_tokens":9,"temperature":0.5,"top_p":0.9,"top_k":40,"frequency_penalty":0.1,"presence_penalty":0.2,` +
	`"seed":7,"stop":"END","reasoning_effort":"low","response_format":{"type":"json_object"},"n":2,` +
	`"messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"my key is sk-aaaaaaaaaaaaaaaaaaaaaaaa"},{"type":"image_url"}]}]}`

// answered is a whole answer: role, thinking, text, finish with usage, end.
func wholeAnswer() *exchange.Exchange {
	return streamed(askBody, delta(`{"role":"assistant"}`), delta(`{"reasoning_content":"hm"}`), delta(`{"content":"a"}`), delta(`{"content":"b"}`),
		`{"id":"c-1","model":"served","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":5,`+
			`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":1}}}`, "[DONE]")
}

// rig is a Tracing with an exporter in memory.
type rig struct {
	*Tracing
	to      *tracetest.InMemoryExporter
	mu      sync.Mutex
	trouble []string
}

// keeping is the in-memory exporter without its forgetting at the end.
type keeping struct{ *tracetest.InMemoryExporter }

func (keeping) Shutdown(context.Context) error { return nil }

func settingsOf(t testing.TB, pairs ...string) Settings {
	t.Helper()
	env := map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	s, err := ReadSettings(func(name string) string { return env[name] }, os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newRig(t testing.TB, edit func(*Options), pairs ...string) *rig {
	t.Helper()
	r := &rig{to: tracetest.NewInMemoryExporter()}
	o := Options{Settings: settingsOf(t, pairs...), Version: "v9",
		Trouble: func(text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.trouble = append(r.trouble, text)
		},
		Exporter: func(context.Context) (sdktrace.SpanExporter, error) { return keeping{r.to}, nil }}
	if edit != nil {
		edit(&o)
	}
	var err error
	if r.Tracing, err = Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	return r
}

// pass takes an exchange through tracing as a proxy and a recorder do.
func (r *rig) pass(x *exchange.Exchange, served bool) (headers []exchange.Header) {
	headers = r.Trace(x.ID, x.Cell, x.Request.Headers, served)
	r.Measured(x, measure.Analyze(x))
	r.Stored(&exchange.Summary{ID: x.ID, State: x.State, Key: "h1:0123456789abcdef"})
	return headers
}

// spans ends the rig and gives what it told, by kind of span.
func (r *rig) spans(t testing.TB) map[string]tracetest.SpanStub {
	t.Helper()
	r.Close()
	out := map[string]tracetest.SpanStub{}
	for _, s := range r.to.GetSpans() {
		name := s.SpanKind.String()
		if _, twice := out[name]; twice {
			t.Fatalf("two spans are %s", name)
		}
		out[name] = s
	}
	return out
}

// attrsOf are attributes as text.
func attrsOf(list []attribute.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		out[string(kv.Key)] = kv.Value.String()
	}
	return out
}
