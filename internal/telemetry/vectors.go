package telemetry

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// The buckets of the conventions: durations of inference, sizes in tokens, times to a first and per further token, and
// durations of HTTP, which end at 10 s there and go on here, for an answer takes minutes.
func durationBuckets() []float64 { return prometheus.ExponentialBuckets(0.01, 2, 14) }
func tokenBuckets() []float64    { return prometheus.ExponentialBuckets(1, 4, 14) }
func firstBuckets() []float64 {
	return []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}
}
func perTokenBuckets() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5}
}
func httpBuckets() []float64 {
	return []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120, 300, 600}
}
func overheadBuckets() []float64 {
	return []float64{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1}
}

// labels are the values that tell the series of exchanges apart. None of them is an id.
type labels struct {
	operation, provider, model, answered string
	upstream                             string // URL: its address is read when the series is made
	method, route, status, failure       string
}

// aiLabels and so on are the names, in the order of the values below.
func aiLabels() []string {
	return []string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_response_model", "server_address", "server_port"}
}

// ai are the values of aiLabels.
func (l *labels) ai() []string {
	address, port := l.address()
	return []string{l.operation, l.provider, l.model, l.answered, address, port}
}

// address is that of the engine.
func (l *labels) address() (address, port string) {
	var of attributes
	of.upstream(l.upstream)
	for _, kv := range of {
		if kv.Key == serverAddress {
			address = kv.Value.AsString()
		} else {
			port = kv.Value.String()
		}
	}
	return address, port
}

func labelsOf(x *exchange.Exchange, a *measure.Analysis) labels {
	l := labels{upstream: x.UpstreamURL, method: otherValue, route: routeOf(path(x)), failure: errorOf(x, a)}
	if slices.Contains(methods, x.Request.Method) {
		l.method = x.Request.Method
	}
	if status := answered(x); status != 0 {
		l.status = strconv.Itoa(status)
	}
	if l.operation = operationOf(x, a.Transcript); l.operation != "" {
		l.provider, l.model, l.answered = providerOf(x), nameable(a.Request.Model), nameable(a.Transcript.Model)
	}
	return l
}

// vectors are the metrics of exchanges.
type vectors struct {
	duration, firstChunk, perChunk, inputSize, outputSize *prometheus.HistogramVec
	usage                                                 map[string]*prometheus.CounterVec // by kind of token
	server, client                                        *prometheus.HistogramVec
	ttft, tpot, overhead, stall                           *prometheus.HistogramVec
	outcomes                                              *prometheus.CounterVec
}

// usageKinds are the kinds of tokens that are counted, with the metrics that tell them.
var usageKinds = []struct{ kind, metric string }{
	{"input_tokens", measure.PromptTokens}, {"output_tokens", measure.CompletionTokens},
	{"cache_read_input_tokens", measure.CachedTokens}, {"reasoning_output_tokens", measure.ReasoningTokens},
}

func newVectors() vectors {
	hist := func(name, help string, buckets []float64, names []string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, names)
	}
	ai, failed := aiLabels(), append(aiLabels(), "error_type")
	const client = "gen_ai_client_inference_"
	v := vectors{
		duration:   hist(client+"duration_seconds", "From before a connection was looked for to the end of the answer.", durationBuckets(), failed),
		firstChunk: hist(client+"time_to_first_chunk_seconds", "First event of a stream, from the first request byte.", durationBuckets(), ai),
		perChunk:   hist(client+"time_per_output_chunk_seconds", "Time between events of a stream.", durationBuckets(), ai),
		inputSize:  hist(client+"operation_input_tokens", "Tokens of a prompt, cached ones included, as the engine reports.", tokenBuckets(), ai),
		outputSize: hist(client+"operation_output_tokens", "Tokens of an answer, reasoning included, as the engine reports.", tokenBuckets(), ai),
		usage:      map[string]*prometheus.CounterVec{},
		server: hist("http_server_request_duration_seconds", "From the first byte of a request to the last byte of its answer.", httpBuckets(),
			[]string{"http_request_method", "http_route", "http_response_status_code", "error_type"}),
		client: hist("http_client_request_duration_seconds", "The same towards the engine.", httpBuckets(),
			[]string{"http_request_method", "server_address", "server_port", "http_response_status_code", "error_type"}),
		ttft:     hist("benchproxy_request_time_to_first_token_seconds", "First event with generated content, from the first request byte.", firstBuckets(), ai),
		tpot:     hist("benchproxy_request_time_per_output_token_seconds", "(last token - first token) / (tokens - 1).", perTokenBuckets(), ai),
		overhead: hist("benchproxy_proxy_overhead_seconds", "From the arrival of bytes of the engine to the end of their write to the client.", overheadBuckets(), nil),
		stall: hist("benchproxy_request_write_stall_seconds", "Longest time that the write of an event to its client took, per exchange.", overheadStall(),
			nil),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "benchproxy_exchanges_total", Help: "Measured exchanges by what they came to."}, []string{"outcome"}),
	}
	for _, k := range usageKinds {
		v.usage[k.kind] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: client + "usage_" + k.kind + "_total",
			Help: "Tokens as the engine reports them; none is counted under an unknown modality where it reports nothing."}, append(aiLabels(), "gen_ai_token_modality"))
	}
	return v
}

// overheadStall are the buckets of stalls, which may last as long as a client does not read.
func overheadStall() []float64 { return append(overheadBuckets(), 0.25, 0.5, 1, 2.5, 5, 10, 60) }

func (v *vectors) all() []prometheus.Collector {
	out := []prometheus.Collector{v.duration, v.firstChunk, v.perChunk, v.inputSize, v.outputSize, v.server, v.client, v.ttft, v.tpot, v.overhead, v.stall, v.outcomes}
	for _, k := range usageKinds {
		out = append(out, v.usage[k.kind])
	}
	return out
}
