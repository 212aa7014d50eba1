package main

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/telemetry"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/replay"
)

// openTelling begins to tell of what a stand-in does: of its answers, of its misses, and of what those came to where they
// are passed on.
func (v *serving) openTelling() (err error) {
	v.telling, err = openTelling(v.env, func(format string, args ...any) { note(v.env.Stderr, format, args...) }, nil)
	v.trace = v.telling.tracing.NewRun()
	return err
}

// tracer is that of misses that are passed on, nil for none.
func (v *serving) tracer() proxy.Tracer {
	if v.trace == nil {
		return nil
	}
	return v.trace.Clients()
}

// traceOnly measures what is passed on, where it is traced and nothing is kept of it.
func (v *serving) traceOnly(so *proxy.SessionOptions) {
	if v.trace == nil {
		return
	}
	v.meter = newMeter(func(x *exchange.Exchange) exchange.Summary {
		a := measure.Analyze(x)
		v.telling.measured(x, a)
		return measure.Summarize(x, a)
	}, func(row exchange.Summary) { v.telling.tracing.Unrecorded(row.ID) })
	so.Sink = v.telling.sink(v.meter)
}

// endTrace tells the span of all that was served; run is that of the recorded misses, or stands for it.
func (v *serving) endTrace(run exchange.Run) {
	run.Mode = "serve"
	v.trace.End(&run)
	v.telling.Close()
	if id := v.trace.TraceID(); id != "" && v.standIn != nil && !v.s.json && !v.s.quiet {
		note(v.env.Stderr, "what was served is trace %s", id)
	}
}

// missed takes a miss.
func (v *serving) missed(m replay.Miss) {
	v.misses.add(m)
	told := telemetry.Miss{Method: m.Method, Target: m.Target, Trace: m.Trace, Key: m.Key, Why: string(m.Why), Text: m.Text()}
	if n := m.Nearest; n != nil {
		told.Nearest = n.Exchange
		for _, d := range n.Differs {
			told.Differs = append(told.Differs, d.Path)
		}
	}
	v.trace.Miss(told)
}

// given takes recorded answers that were given, nil where nobody wants to know.
func (v *serving) given() func(replay.Given) {
	if v.trace == nil {
		return nil
	}
	return func(g replay.Given) {
		v.trace.Served(telemetry.Served{Method: g.Method, Target: g.Target, Trace: g.Trace, Key: g.Key, Recorded: g.Recorded, Span: g.Span,
			Status: g.Status, Start: g.Read, Took: g.Took, Sent: g.Sent, Cut: g.Cut})
	}
}
