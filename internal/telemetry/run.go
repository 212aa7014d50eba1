package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Run is the trace of a run that sends by itself: replay, validation, benchmark, gate. Below its span stand its cells, or the
// cases of a gate, and below those, or right below it, its exchanges. It is the Tracer of the sessions of the run. A nil Run traces nothing.
type Run struct {
	t     *Tracing
	own   exchange.SpanContext
	start time.Time

	mu     sync.Mutex
	n      int64
	misses int64
	cells  map[string]*cell // by the names of their spans
}

// cell is the part of a run that measures one cell of a matrix, or asks one case of a gate: from its first exchange to its
// last.
type cell struct {
	attr  string // that names it
	name  string
	own   exchange.SpanContext
	start time.Time
	end   time.Time // latest end seen
	n     int64
}

// NewRun begins the trace of a run.
func (t *Tracing) NewRun() *Run {
	if t == nil {
		return nil
	}
	r := &Run{t: t, start: clock.Now().UTC(), cells: map[string]*cell{}}
	r.own = exchange.SpanContext{Trace: newTraceID(), Span: newSpanID()}
	r.own.Sampled = t.o.Settings.Sampler.takes(r.own.Trace, exchange.SpanContext{})
	return r
}

// TraceID is the trace of the run, "" when it is not exported.
func (r *Run) TraceID() string {
	if r == nil || !r.own.Sampled {
		return ""
	}
	return r.own.Trace.String()
}

// Trace is the place of an exchange of the run: below its cell, or below the run where it has none. What trace its request
// was in when it was recorded does not matter.
func (r *Run) Trace(id exchange.ID, cellName string, headers []exchange.Header, served bool) []exchange.Header {
	r.mu.Lock()
	r.n++
	p := place{parent: r.own, run: r}
	if cellName != "" {
		p.cell = r.enter("cell ", ourCell, cellName, clock.Now().UTC())
		p.parent = p.cell.own
	}
	r.mu.Unlock()
	return r.t.enter(id, p, served, headers)
}

// enter counts an exchange of a cell, which begins no later than at. The caller holds the lock.
func (r *Run) enter(kind, attr, name string, at time.Time) *cell {
	c := r.cells[kind+name]
	if c == nil {
		c = &cell{attr: attr, name: name, start: at, own: r.own}
		c.own.Span = newSpanID()
		r.cells[kind+name] = c
	}
	if at.Before(c.start) {
		c.start = at
	}
	c.n++
	return c
}

// settle gives an exchange that was measured its last place: one of a gate stands below its case, by which its place was
// not yet told when it was sent. The engine knows only the exchange's own span.
func (r *Run) settle(p *place, x *exchange.Exchange) {
	start, end := bounds(x)
	r.mu.Lock()
	defer r.mu.Unlock()
	if name := caseOf(x); p.cell == nil && name != "" {
		p.cell = r.enter("case ", ourCase, name, start)
		p.parent = p.cell.own
	}
	if c := p.cell; c != nil && end.After(c.end) {
		c.end = end
	}
}

// maxTitle bounds the name of the span of a cell, in bytes.
const maxTitle = 256

// caseOf is the case of a gate that an exchange is asked for, "" for none.
func caseOf(x *exchange.Exchange) string {
	if x.Mode != "gate" || x.Item == nil || x.Item.Warmup {
		return ""
	}
	return cmp.Or(x.Item.Conversation, x.Item.Item)
}

// Cell is a Tracer for sessions whose calls do not name their cell.
func (r *Run) Cell(name string) *CellTracer { return &CellTracer{run: r, name: name} }

// CellTracer places every exchange of a session in one cell of a run.
type CellTracer struct {
	run  *Run
	name string
}

// Trace is the place of an exchange below the cell.
func (c *CellTracer) Trace(id exchange.ID, _ string, headers []exchange.Header, served bool) []exchange.Header {
	return c.run.Trace(id, c.name, headers, served)
}

// End tells the spans of the run and its cells, once the last of its exchanges is stored. run is as it was closed. Nothing
// of the run may be traced after.
func (r *Run) End(run *exchange.Run) {
	if r == nil || !r.own.Sampled {
		return
	}
	now := clock.Now().UTC()
	s := span{name: strings.TrimSpace("benchproxy " + run.Mode), kind: trace.SpanKindInternal, start: r.start, end: now}
	s.attrs.str(ourRun, string(run.ID))
	s.attrs.str(ourRunName, run.Name)
	s.attrs.str(ourMode, run.Mode)
	s.attrs.str(ourRunState, string(run.State))
	s.attrs.int(ourStored, run.Counts.Stored)
	s.attrs.int(ourDropped, run.Counts.Dropped)
	r.mu.Lock()
	defer r.mu.Unlock()
	s.attrs.int(ourExchanges, r.n)
	if r.misses > 0 {
		s.attrs.int(ourMisses, r.misses)
	}
	if s.failed = run.State == exchange.RunIncomplete; s.failed {
		s.why = "the run is incomplete"
	}
	r.t.emit(exchange.SpanContext{}, false, r.own, "", &s)
	for _, title := range slices.Sorted(maps.Keys(r.cells)) {
		c := r.cells[title]
		if c.end.IsZero() {
			c.end = now
		}
		s := span{name: nameableTo(title, maxTitle), kind: trace.SpanKindInternal, start: c.start, end: c.end}
		s.attrs.str(c.attr, c.name)
		s.attrs.str(ourRun, string(run.ID))
		s.attrs.int(ourExchanges, c.n)
		r.t.emit(r.own, false, c.own, "", &s)
	}
}
