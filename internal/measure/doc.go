// Package measure is the only home of metric definitions: it reads a sealed exchange and its transcript and derives the
// outcome, the figures and the flags. Reports, gates and pages take their numbers from here and compute none.
//
// Start at Analyze. Every metric is one line of the table in definitions.go and one group of them one file: latency,
// phases (what comes before the first token), tokens, rates, gaps, peak, engine, drafts, cost. outcome.go says what an
// exchange came to, burst.go when a stream is called buffered, flags.go what its remarks mean. The definitions of other
// tools stand apart, each set in a file of its own, and never share a name with ours.
//
// Invariants:
//
//   - Analyze is a pure function of the exchange: no clock, no state, no I/O. Version changes when a result can.
//   - Figures holds every metric of Metrics, each with a value and a basis or without a value and with a Reason of
//     reasons.go. Absent is never 0, and a reported 0 is 0.
//   - Our clock and the engine's never meet in one metric, except where the metric is their difference.
//   - A rate built on a count of events instead of tokens has the basis estimated.
//   - No figure is NaN or infinite.
package measure
