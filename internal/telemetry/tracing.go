package telemetry

import (
	"context"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
)

const (
	// maxPlaces bounds the traced exchanges whose spans are not told yet.
	maxPlaces = 1 << 16
	// maxSettled bounds those that wait to be turned into spans.
	maxSettled = 1 << 12
	// maxRefused bounds the exchanges that are held to be measured because the recorder did not take them.
	maxRefused = 64
	// flushTime bounds the sending of what is left at the end.
	flushTime = 5 * time.Second
)

// Options of a Tracing.
type Options struct {
	Settings Settings
	Version  string                                               // of benchproxy
	Console  io.Writer                                            // where the exporter console writes
	Trouble  func(text string)                                    // told of the first trouble of an exporter; nil tells nobody
	Link     func(exchange.ID) (exchange.SpanContext, bool)       // the span of a recorded exchange that was replayed; nil knows none
	Exporter func(context.Context) (sdktrace.SpanExporter, error) // replaces those of Settings, for tests
}

// Tracing gives exchanges their place in traces, and tells their spans once they are sealed and measured. It is the Tracer
// of a proxy; a Run has one of its own. A nil Tracing traces nothing. It is safe for concurrent use.
type Tracing struct {
	o      Options
	origin origin
	batch  *batcher
	told   sync.Once

	settled chan settled
	single  chan single
	refused chan *exchange.Exchange
	end     chan struct{}
	ended   sync.WaitGroup

	mu     sync.Mutex
	places map[exchange.ID]*place

	missed atomic.Int64 // spans that never reached the exporter's queue
}

// place is where an exchange stands in a trace.
type place struct {
	parent exchange.SpanContext // the caller's span, or that of the run or cell; zero for the first of a trace
	remote bool                 // parent came with the request
	server exchange.SpanID      // of the exchange as its client sees it; zero where no client asked for it
	client exchange.SpanContext // of the exchange as the engine sees it
	state  string               // tracestate of the trace
	run    *Run                 // nil outside a run
	cell   *cell                // of the run, nil for none
	links  []exchange.SpanContext

	spans *exchangeSpans // once it is measured
}

// settled is an exchange whose spans can be told.
type settled struct {
	p     *place
	state string // of its record
	key   string
}

// single is a span that is told by itself, with its place.
type single struct {
	parent exchange.SpanContext
	remote bool // parent came with a request
	own    exchange.SpanContext
	state  string // tracestate of the trace
	span   span
}

// later tells a span from the goroutine of this Tracing, so that nobody waits for it.
func (t *Tracing) later(s single) {
	select {
	case t.single <- s:
	default:
		t.missed.Add(1)
	}
}

// Open begins tracing; the result is nil where Settings say off.
func Open(ctx context.Context, o Options) (*Tracing, error) {
	if !o.Settings.On() {
		return nil, nil
	}
	open := o.Exporter
	if open == nil {
		open = func(ctx context.Context) (sdktrace.SpanExporter, error) {
			return newExporter(ctx, &o.Settings, o.Console)
		}
	}
	otel.SetLogger(logr.New(sdkLog{o.tell})) // else the SDK prints the values of variables
	exporter, err := open(ctx)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "benchproxy"), attribute.String("service.version", o.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	t := &Tracing{
		o: o, settled: make(chan settled, maxSettled), single: make(chan single, maxSettled), refused: make(chan *exchange.Exchange, maxRefused),
		end: make(chan struct{}), places: map[exchange.ID]*place{},
	}
	if err != nil { // a variable that says only half of what it should; the rest of it holds
		t.trouble(err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(t.trouble)) // else the SDK prints each one
	t.batch = newBatcher(exporter, &t.o.Settings, t.trouble)
	t.origin = origin{resource: about, scope: instrumentation.Scope{Name: "benchproxy", Version: o.Version}}
	t.start()
	return t, nil
}

func (t *Tracing) start() { t.ended.Go(t.run) }

// trouble tells the first error of an exporter. Later ones show in the counter of lost spans.
func (t *Tracing) trouble(err error) {
	t.told.Do(func() {
		t.o.tell("traces: " + nameableTo(redact.Text(err.Error()), maxTold) + "; spans that cannot be sent are counted and lost, nothing else is")
	})
}

// maxTold bounds what is told of an error, in bytes: a collector may answer with anything.
const maxTold = 400

func (o *Options) tell(text string) {
	if !o.Settings.Quiet && o.Trouble != nil {
		o.Trouble(text)
	}
}

// Trace is the place of an exchange that a client asked for: in the trace that its headers name, else in one of its own.
func (t *Tracing) Trace(id exchange.ID, _ string, headers []exchange.Header, served bool) []exchange.Header {
	p := place{}
	if t.o.Settings.Propagate {
		p.parent, p.state = inbound(headers)
		p.remote = p.parent.Valid()
	}
	return t.enter(id, p, served, headers)
}

// enter gives an exchange its spans below the parent of p, and says which headers the engine gets.
func (t *Tracing) enter(id exchange.ID, p place, served bool, headers []exchange.Header) []exchange.Header {
	if p.client.Trace = p.parent.Trace; !p.parent.Valid() {
		p.client.Trace = newTraceID()
	}
	p.client.Span = newSpanID()
	p.client.Sampled = t.o.Settings.Sampler.takes(p.client.Trace, p.parent)
	if served {
		p.server = newSpanID()
	}
	if p.client.Sampled {
		t.keep(id, &p)
	}
	if !t.o.Settings.Propagate {
		return nil
	}
	out := []exchange.Header{{Name: exchange.TraceParentHeader, Value: p.client.TraceParent()}}
	if _, has := exchange.HeaderValue(headers, exchange.TraceStateHeader); has && !p.remote {
		out = append(out, exchange.Header{Name: exchange.TraceStateHeader}) // it belongs to a trace that is not gone on with
	}
	return out
}

// inbound is the span that the headers of a request name as its parent, with the state of its trace. A request that names
// two names none.
func inbound(headers []exchange.Header) (parent exchange.SpanContext, state string) {
	n := 0
	for i := range headers {
		switch h := &headers[i]; {
		case strings.EqualFold(h.Name, exchange.TraceParentHeader):
			n++
			parent, _ = exchange.ParseTraceParent(h.Value)
		case strings.EqualFold(h.Name, exchange.TraceStateHeader) && state == "":
			state = h.Value
		case strings.EqualFold(h.Name, exchange.TraceStateHeader):
			state += "," + h.Value
		}
	}
	if n != 1 || !parent.Valid() {
		return exchange.SpanContext{}, ""
	}
	return parent, state
}

func (t *Tracing) keep(id exchange.ID, p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.places) >= maxPlaces {
		t.missed.Add(p.count())
		return
	}
	t.places[id] = p
}

// count is the number of spans of an exchange.
func (p *place) count() int64 {
	if p.server == (exchange.SpanID{}) {
		return 1
	}
	return 2
}

func (t *Tracing) find(id exchange.ID) *place {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.places[id]
}

// take removes the place of an exchange whose spans are made, nil when there is none.
func (t *Tracing) take(id exchange.ID) *place {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.places[id]
	if p == nil || p.spans == nil {
		return nil
	}
	delete(t.places, id)
	return p
}

// Span is the span of an exchange that is exported: what an exemplar names. The zero value is none.
func (t *Tracing) Span(id exchange.ID) exchange.SpanContext {
	if t == nil {
		return exchange.SpanContext{}
	}
	if p := t.find(id); p != nil {
		return p.client
	}
	return exchange.SpanContext{}
}

// Measured makes the spans of an exchange. They are told once it is known what became of its record: Stored or Dropped.
func (t *Tracing) Measured(x *exchange.Exchange, a *measure.Analysis) {
	if t == nil {
		return
	}
	p := t.find(x.ID)
	if p == nil {
		return
	}
	spans := t.build(x, a)
	if p.run != nil {
		p.run.settle(p, x)
	}
	t.mu.Lock()
	p.spans = spans
	t.mu.Unlock()
}

// Stored tells the spans of a measured exchange whose record is kept under a key.
func (t *Tracing) Stored(row *exchange.Summary) { t.settle(row.ID, string(row.State), row.Key) }

// Unrecorded tells the spans of a measured exchange where nothing is recorded.
func (t *Tracing) Unrecorded(id exchange.ID) { t.settle(id, stateOff, "") }

// Dropped tells the spans of a measured exchange whose record is lost. Of one that was never measured it knows nothing;
// see Refused.
func (t *Tracing) Dropped(id exchange.ID) { t.settle(id, stateDropped, "") }

func (t *Tracing) settle(id exchange.ID, state, key string) {
	if t == nil {
		return
	}
	p := t.take(id)
	if p == nil {
		return
	}
	select {
	case t.settled <- settled{p, state, key}:
	default:
		t.missed.Add(p.count())
	}
}

// Refused takes an exchange that the recorder did not take: it is measured here, behind the stream, and told as dropped.
func (t *Tracing) Refused(x *exchange.Exchange) {
	if t == nil || t.find(x.ID) == nil {
		return
	}
	select {
	case t.refused <- x:
	default: // its place is counted as missed at the end
	}
}

// run turns what is settled into spans until Close, and then what is left.
func (t *Tracing) run() {
	for {
		select {
		case s := <-t.settled:
			t.tell(s)
		case s := <-t.single:
			t.emit(s.parent, s.remote, s.own, s.state, &s.span)
		case x := <-t.refused:
			t.judge(x)
		case <-t.end:
			t.drain()
			return
		}
	}
}

func (t *Tracing) judge(x *exchange.Exchange) {
	t.Measured(x, measure.Analyze(x))
	if p := t.take(x.ID); p != nil {
		t.tell(settled{p, stateDropped, ""})
	}
}

func (t *Tracing) drain() {
	for {
		select {
		case s := <-t.settled:
			t.tell(s)
		case s := <-t.single:
			t.emit(s.parent, s.remote, s.own, s.state, &s.span)
		case x := <-t.refused:
			t.judge(x)
		default:
			return
		}
	}
}

// Counts say what became of the spans.
type Counts struct {
	Exported int64 `json:"exported"` // the exporter took them
	Lost     int64 `json:"lost"`     // never sent, or refused by the exporter
}

// Counts are those of now. What waits to be sent is in neither.
func (t *Tracing) Counts() Counts {
	if t == nil {
		return Counts{}
	}
	return Counts{Exported: t.batch.sent.Load(), Lost: t.batch.lost.Load() + t.batch.overflow.Load() + t.missed.Load()}
}

// Close tells what is settled and sends it, for at most five seconds. Nothing may be traced after. It gives the counts at
// the end.
func (t *Tracing) Close() Counts {
	if t == nil {
		return Counts{}
	}
	close(t.end)
	t.ended.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.batch.Shutdown(ctx); err != nil {
		t.trouble(err)
	}
	t.mu.Lock()
	for _, p := range t.places {
		t.missed.Add(p.count())
	}
	clear(t.places)
	t.mu.Unlock()
	return t.Counts()
}
