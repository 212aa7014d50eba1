package telemetry

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Run is the trace of a run that sends by itself: replay, validation, benchmark, gate. Below its span stand its cells, and
// below those, or right below it, its exchanges. It is the Tracer of the sessions of the run. A nil Run traces nothing.
type Run struct {
	t     *Tracing
	own   exchange.SpanContext
	start time.Time

	mu     sync.Mutex
	n      int64
	misses int64
	cells  map[string]*cell
}

// cell is the part of a run that measures one cell of a matrix: from its first exchange to its last.
type cell struct {
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
		c := r.cells[cellName]
		if c == nil {
			c = &cell{start: clock.Now().UTC(), own: r.own}
			c.own.Span = newSpanID()
			r.cells[cellName] = c
		}
		c.n++
		p.parent, p.cell = c.own, c
	}
	r.mu.Unlock()
	return r.t.enter(id, p, served, headers)
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

// reach notes that an exchange of a cell ended then: the cell lasts at least as long.
func (r *Run) reach(c *cell, end time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if end.After(c.end) {
		c.end = end
	}
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
	for _, name := range slices.Sorted(maps.Keys(r.cells)) {
		c := r.cells[name]
		if c.end.IsZero() {
			c.end = now
		}
		s := span{name: "cell " + name, kind: trace.SpanKindInternal, start: c.start, end: c.end}
		s.attrs.str(ourCell, name)
		s.attrs.str(ourRun, string(run.ID))
		s.attrs.int(ourExchanges, c.n)
		r.t.emit(r.own, false, c.own, "", &s)
	}
}
