package telemetry

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// stateCollector reads, at each fetch, what others count.
type stateCollector struct {
	o                                         MetricsOptions
	active, refused, held                     *prometheus.Desc
	queue, limit, stored, truncated, drops    *prometheus.Desc
	degraded, size, free, exported, spansLost *prometheus.Desc
}

func newStateCollector(o MetricsOptions) *stateCollector {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &stateCollector{
		o:         o,
		active:    d("http_server_active_requests", "Exchanges that run now."),
		refused:   d("benchproxy_requests_refused_total", "Requests that never became an exchange with the engine.", "reason"),
		held:      d("benchproxy_held_bytes", "Memory that running exchanges hold."),
		queue:     d("benchproxy_record_queue_bytes", "Memory of exchanges that wait to be stored."),
		limit:     d("benchproxy_record_queue_limit_bytes", "The bound of it."),
		stored:    d("benchproxy_record_stored_total", "Exchanges that were stored."),
		truncated: d("benchproxy_record_truncated_total", "Stored exchanges whose record was cut at a bound."),
		drops:     d("benchproxy_record_dropped_total", "Exchanges that were not stored.", "reason"),
		degraded:  d("benchproxy_record_degraded", "1 while recording pauses and streams go on."),
		size:      d("benchproxy_store_size_bytes", "What the store takes on its disk."),
		free:      d("benchproxy_store_free_bytes", "What is free there."),
		exported:  d("benchproxy_spans_exported_total", "Spans that the exporter took."),
		spansLost: d("benchproxy_spans_lost_total", "Spans that were never sent, or that the exporter did not take."),
	}
}

// Describe names nothing: what there is shows when it is collected.
func (c *stateCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the state.
func (c *stateCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	if c.o.Proxy != nil {
		p := c.o.Proxy()
		gauge(c.active, p.Active)
		gauge(c.held, p.Held)
		for _, why := range slices.Sorted(maps.Keys(p.Refused)) {
			counter(c.refused, p.Refused[why], why)
		}
	}
	if c.o.Recorder != nil {
		r := c.o.Recorder()
		gauge(c.queue, r.QueueBytes)
		gauge(c.limit, r.QueueLimit)
		counter(c.stored, r.Stored)
		counter(c.truncated, r.Truncated)
		for _, why := range slices.Sorted(maps.Keys(r.Dropped)) {
			counter(c.drops, r.Dropped[why], why)
		}
		degraded := int64(0)
		if r.Degraded {
			degraded = 1
		}
		gauge(c.degraded, degraded)
	}
	if c.o.Store != nil {
		if size, free, err := c.o.Store(); err == nil {
			gauge(c.size, size)
			gauge(c.free, free)
		}
	}
	if c.o.Spans != nil {
		n := c.o.Spans()
		counter(c.exported, n.Exported)
		counter(c.spansLost, n.Lost)
	}
}
