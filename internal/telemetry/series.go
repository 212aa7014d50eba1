package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// series are the metrics of exchanges of one set of labels, looked up once.
type series struct {
	generates             bool
	served                prometheus.Observer
	sent                  prometheus.Observer
	duration, firstChunk  prometheus.Observer
	perChunk, ttft, tpot  prometheus.Observer
	inputSize, outputSize prometheus.Observer
	overhead, stall       prometheus.Observer
	outcomes              *prometheus.CounterVec
	usage                 []usageSeries
}

// usageSeries count tokens of one kind.
type usageSeries struct {
	metric       string
	known, empty prometheus.Counter
}

func (v *vectors) with(l labels) *series {
	address, port := l.address()
	s := &series{
		generates: l.operation != "",
		served:    v.server.WithLabelValues(l.method, l.route, l.status, l.failure),
		sent:      v.client.WithLabelValues(l.method, address, port, l.status, l.failure),
		overhead:  v.overhead.WithLabelValues(), stall: v.stall.WithLabelValues(), outcomes: v.outcomes,
	}
	if !s.generates {
		return s
	}
	ai := l.ai()
	s.duration = v.duration.WithLabelValues(append(l.ai(), l.failure)...)
	s.firstChunk, s.perChunk = v.firstChunk.WithLabelValues(ai...), v.perChunk.WithLabelValues(ai...)
	s.ttft, s.tpot = v.ttft.WithLabelValues(ai...), v.tpot.WithLabelValues(ai...)
	s.inputSize, s.outputSize = v.inputSize.WithLabelValues(ai...), v.outputSize.WithLabelValues(ai...)
	for _, k := range usageKinds {
		s.usage = append(s.usage, usageSeries{k.metric, v.usage[k.kind].WithLabelValues(append(l.ai(), "text")...),
			v.usage[k.kind].WithLabelValues(append(l.ai(), "unknown")...)})
	}
	return s
}

// exemplarOf is what leads from a number to the trace it came from, nil for none.
func exemplarOf(span exchange.SpanContext) prometheus.Labels {
	if !span.Sampled {
		return nil
	}
	return prometheus.Labels{"trace_id": span.Trace.String(), "span_id": span.Span.String()}
}

func observe(to prometheus.Observer, seconds float64, exemplar prometheus.Labels) {
	if with, ok := to.(prometheus.ExemplarObserver); ok && exemplar != nil {
		with.ObserveWithExemplar(seconds, exemplar)
		return
	}
	to.Observe(seconds)
}

// figure observes a figure in another unit; an absent one is none.
func figure(to prometheus.Observer, f exchange.Figure, per float64, exemplar prometheus.Labels) {
	if f.Present() {
		observe(to, f.Value/per, exemplar)
	}
}

func (s *series) observe(x *exchange.Exchange, a *measure.Analysis, exemplar prometheus.Labels) {
	start, end := bounds(x)
	took := end.Sub(start).Seconds()
	observe(s.served, float64(lastMark(&x.Timeline))/1e9, exemplar)
	observe(s.sent, took, exemplar)
	s.outcomes.WithLabelValues(string(a.Outcome)).Inc()
	for i := range x.Timeline.Reads {
		if w := x.Timeline.Reads[i].Write; w > 0 {
			s.overhead.Observe(float64(w) / 1e9)
		}
	}
	fs := a.Figures
	figure(s.stall, fs[measure.WriteStallMS], 1e3, exemplar)
	if !s.generates {
		return
	}
	observe(s.duration, took, exemplar)
	figure(s.ttft, fs[measure.TTFTMS], 1e3, exemplar)
	figure(s.tpot, fs[measure.TPOTMS], 1e3, exemplar)
	s.chunks(x, a, exemplar)
	s.tokens(fs)
}

// chunks observes the pace of a stream.
func (s *series) chunks(x *exchange.Exchange, a *measure.Analysis, exemplar prometheus.Labels) {
	if !a.Figures[measure.TokenEvents].Present() {
		return // no stream
	}
	figure(s.firstChunk, a.Figures[measure.FirstEventMS], 1e3, exemplar)
	reads, last := x.Timeline.Reads, int64(-1)
	for i := range a.Transcript.Events {
		read := a.Transcript.Events[i].Read
		if read < 0 || read >= len(reads) {
			return
		}
		if last >= 0 {
			s.perChunk.Observe(float64(reads[read].At-last) / 1e9)
		}
		last = reads[read].At
	}
}

// tokens counts what the engine reported.
func (s *series) tokens(fs exchange.Figures) {
	count := func(metric string) (float64, bool) {
		f := fs[metric]
		return f.Value, f.Present() && f.Basis != exchange.BasisEstimated
	}
	for _, u := range s.usage {
		if n, ok := count(u.metric); ok {
			u.known.Add(max(n, 0))
		} else {
			u.empty.Add(0)
		}
	}
	if n, ok := count(measure.PromptTokens); ok {
		s.inputSize.Observe(n)
	}
	if n, ok := count(measure.CompletionTokens); ok {
		s.outputSize.Observe(n)
	}
}
