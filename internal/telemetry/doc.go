// Package telemetry tells other tools what was measured: traces by OpenTelemetry, and metrics for Prometheus. Both are
// made of sealed exchanges, behind the measured path.
//
// A trace begins on that path with two span ids and nothing else: Tracing, and Run for the exchanges of a run, decide on
// the ids and say which headers the engine gets. The spans are made whole when the exchange is sealed and measured, with
// those ids and the instants of its timeline. They go to the SDK's exporters, or are written straight into OTLP over HTTP
// (otlp.go): the SDK's spans, which begin and grow under a lock, and the structures of its protocol's library would be most
// of what tracing costs. Spans and metrics use the names of the OpenTelemetry conventions where there are some (names.go),
// and benchproxy.* elsewhere.
//
// Invariants:
//
//   - No stream waits for an exporter, and no error of one reaches it. Lost spans are counted, and trouble is told once.
//   - Without an endpoint there is no tracing: no header is touched and nothing is sent.
//   - A request keeps the trace it came with; one that came with none, or with an invalid one, begins a trace.
//   - What a span says of an exchange is what its record says: figures come from internal/measure, absent ones are absent.
//   - Texts of requests and answers are in a span only if asked for, and cut at a bound.
//   - No label of a metric has an id or a value a client is free to choose without a bound on how many there can be.
package telemetry
