package main

import (
	"context"
	"iter"
	"maps"
	"net/http"
	"os"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/telemetry"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
	"github.com/benchproxy/benchproxy/replay"
)

// telling is what a command tells other tools of its exchanges, as the OTEL_* variables say. The zero value tells nothing.
type telling struct {
	tracing *telemetry.Tracing
	metrics *telemetry.Metrics
	note    func(format string, args ...any)
	named   bool // traces of runs are named also where nothing else is told
}

// naming is the same, whose traces are named also where nothing else is told.
func (t telling) naming(named bool) telling {
	t.named = named
	return t
}

// openTelling begins to tell. note is for what a person must know; link knows the spans of recorded exchanges, nil for none.
func openTelling(e env, note func(format string, args ...any), link func(exchange.ID) (exchange.SpanContext, bool)) (telling, error) {
	t := telling{note: note}
	settings, err := telemetry.ReadSettings(e.Getenv, os.ReadFile)
	if err != nil {
		return t, err
	}
	for _, n := range settings.Notes {
		note("%s", n)
	}
	t.tracing, err = telemetry.Open(context.Background(), telemetry.Options{
		Settings: settings, Version: version(), Console: e.Stderr, Link: link,
		Trouble: func(text string) { note("%s", text) },
	})
	return t, err
}

// sink lets the tracing know of exchanges that next does not take.
func (t *telling) sink(next proxy.Sink) proxy.Sink {
	if t.tracing == nil {
		return next
	}
	return tracedSink{next: next, tracing: t.tracing}
}

type tracedSink struct {
	next    proxy.Sink
	tracing *telemetry.Tracing
}

// Offer is the next sink's.
func (s tracedSink) Offer(x *exchange.Exchange) bool {
	taken := s.next.Offer(x)
	if !taken {
		s.tracing.Refused(x)
	}
	return taken
}

// tracer is the Tracer of a session that clients ask through, nil for none.
func (t *telling) tracer() proxy.Tracer {
	if t.tracing == nil {
		return nil
	}
	return t.tracing
}

// tracerOf is that of the sessions of a run, nil for none.
func tracerOf(r *telemetry.Run) proxy.Tracer {
	if r == nil {
		return nil
	}
	return r
}

// measured takes what was derived of an exchange.
func (t *telling) measured(x *exchange.Exchange, a *measure.Analysis) {
	t.metrics.Observe(x, a, t.tracing.Span(x.ID))
	t.tracing.Measured(x, a)
}

// Close sends what is left and tells what was lost.
func (t *telling) Close() {
	if lost := t.tracing.Close().Lost; lost > 0 {
		t.note("%s could not be sent; nothing else is missing", countOf(int(lost), "span"))
	}
}

// openTelling begins to tell of a capture's exchanges.
func (c *capture) openTelling() (err error) {
	settings, err := telemetry.ReadSettings(c.env.Getenv, os.ReadFile)
	if err != nil {
		return err
	}
	if c.telling, err = openTelling(c.env, c.board.Note, nil); err != nil {
		return err
	}
	if c.adminLn != nil && settings.Metrics {
		c.telling.metrics = telemetry.NewMetrics(c.metricsOptions())
	}
	return nil
}

// metricsOptions are what the metrics show beside exchanges. They are asked for when the capture runs.
func (c *capture) metricsOptions() telemetry.MetricsOptions {
	o := telemetry.MetricsOptions{Version: version(), Proxy: func() telemetry.ProxyState { return proxyState(c.session.Stats()) }}
	if c.telling.tracing != nil {
		o.Spans = c.telling.tracing.Counts
	}
	if c.s.store != "" {
		o.Store = func() (size, free int64, err error) { return c.store.Space() }
		o.Recorder = c.recorderState
	}
	return o
}

func proxyState(s proxy.Stats) telemetry.ProxyState {
	return telemetry.ProxyState{Active: s.Running, Held: s.Held, Refused: map[string]int64{
		"key": s.RefusedKey, "malformed": s.RefusedMalformed, "too_large": s.RefusedTooLarge, "busy": s.RefusedBusy, "slow": s.RefusedSlow,
	}}
}

func (c *capture) recorderState() telemetry.RecorderState {
	h := c.writer.Health()
	dropped := map[string]int64{ // there from the start, so that a first one shows as a change
		string(recorder.DropQueueFull): 0, string(recorder.DropNoSpace): 0, string(recorder.DropStoreError): 0,
	}
	maps.Copy(dropped, h.DropWhy)
	return telemetry.RecorderState{QueueBytes: h.QueueBytes, QueueLimit: h.QueueLimit, Stored: h.Stored, Truncated: h.Truncated,
		Dropped: dropped, Degraded: h.Degraded != ""}
}

// metricsHandler is what /metrics answers with, nil for nothing.
func (c *capture) metricsHandler() http.Handler {
	if c.telling.metrics == nil {
		return nil
	}
	return c.telling.metrics.Handler()
}

// linkedSource is a source of recorded exchanges that keeps what spans they had.
type linkedSource struct {
	replay.Source
	spans map[exchange.ID]exchange.SpanContext
}

// Summaries are the source's.
func (l linkedSource) Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for row, err := range l.Source.Summaries(run) {
			if err == nil {
				if span, ok := exchange.SentTrace(row.Interventions); ok {
					l.spans[row.ID] = span
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// linked is a source whose spans the exchanges that repeat it are linked to.
func (r *replaying) linked(src replay.Source) replay.Source {
	if r.telling.tracing == nil {
		return src
	}
	return linkedSource{src, r.recorded}
}

// openTelling begins to tell of what a replay or a suite sends.
func (r *replaying) openTelling() (err error) {
	r.recorded = map[exchange.ID]exchange.SpanContext{}
	r.telling, err = openTelling(r.env, func(format string, args ...any) { note(r.notes(), format, args...) },
		func(id exchange.ID) (exchange.SpanContext, bool) {
			span, ok := r.recorded[id] // whole before anything is sent
			return span, ok
		})
	return err
}

// endTrace tells the span of a target's run, as it was closed.
func (r *replaying) endTrace(t *replayTarget, run *exchange.Run) {
	t.trace.End(run)
	if id := t.trace.TraceID(); id != "" && !r.s.json && (r.telling.named || !r.s.quiet) {
		note(r.env.Stderr, "run %s is trace %s", runName(*run), id)
	}
}
