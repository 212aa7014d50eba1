package telemetry

import (
	"net/http"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// MetricsOptions say what else than exchanges the metrics are of. A nil function leaves its metrics out.
type MetricsOptions struct {
	Version  string // of benchproxy
	Proxy    func() ProxyState
	Recorder func() RecorderState
	Store    func() (size, free int64, err error) // bytes on disk, and bytes free there
	Spans    func() Counts
}

// ProxyState is what the metrics show of the measured path.
type ProxyState struct {
	Active  int64            // exchanges that run
	Refused map[string]int64 // requests that never became an exchange, by reason
	Held    int64            // bytes that running exchanges hold
}

// RecorderState is what the metrics show of the recorder.
type RecorderState struct {
	QueueBytes, QueueLimit int64
	Stored, Truncated      int64
	Dropped                map[string]int64 // by reason
	Degraded               bool             // recording pauses
}

// Metrics are the numbers that Prometheus fetches. A nil Metrics counts nothing. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	of       vectors

	mu     sync.Mutex
	series map[labels]*series
	models words
}

// NewMetrics makes metrics of no exchange.
func NewMetrics(o MetricsOptions) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), of: newVectors(), series: map[labels]*series{}, models: words{limit: maxModels}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry.MustRegister(m.of.all()...)
	m.registry.MustRegister(newStateCollector(o))
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "benchproxy_build_info", Help: "Always 1; the labels say which build this is."},
		[]string{"version", "goversion", "os", "arch"})
	build.WithLabelValues(o.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH).Set(1)
	m.registry.MustRegister(build)
	return m
}

// Handler answers with all metrics: as text, or in the OpenMetrics form with exemplars to who asks for it. What cannot be
// read of the store is left out.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError})
}

// maxSeries bounds the sets of labels. Exchanges of further ones are counted under otherValue.
const maxSeries = 512

// maxModels bounds the models that labels name: their names are the clients' to choose.
const maxModels = 64

// otherValue stands for every value beyond a bound.
const otherValue = "_OTHER"

// words are the values of a label that were seen.
type words struct {
	limit int
	seen  map[string]bool
}

// take gives a word, or otherValue for one beyond the bound.
func (w *words) take(word string) string {
	if word == "" || w.seen[word] {
		return word
	}
	if len(w.seen) >= w.limit {
		return otherValue
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[word] = true
	return word
}

// find gives the series of an exchange, which it makes when it is the first one of its labels.
func (m *Metrics) find(l labels) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	l.model, l.answered = m.models.take(l.model), m.models.take(l.answered)
	s := m.series[l]
	if s == nil {
		if len(m.series) >= maxSeries {
			l = labels{operation: l.operation, provider: otherValue, method: l.method, status: class(l.status)}
			if s = m.series[l]; s != nil {
				return s
			}
		}
		s = m.of.with(l)
		m.series[l] = s
	}
	return s
}

// class is a status as its class: there are hundreds of the one and few of the other.
func class(status string) string {
	if len(status) != 3 {
		return status
	}
	return status[:1] + "xx"
}

// Observe counts a measured exchange. span is what exemplars name, zero for none.
func (m *Metrics) Observe(x *exchange.Exchange, a *measure.Analysis, span exchange.SpanContext) {
	if m == nil {
		return
	}
	s := m.find(labelsOf(x, a))
	s.observe(x, a, exemplarOf(span))
}
