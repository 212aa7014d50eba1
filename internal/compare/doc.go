// Package compare sets two runs beside each other: which exchanges belong together, what candidate / reference is for each
// metric, whether that is more than noise, where the answers part, and which comparisons the evidence does not bear.
//
// Start at Compare. pair.go says which exchanges belong together, audit.go asks what must be the same in both runs,
// exclude.go what must be the same within a pair, verdict.go turns the rest into ratios and verdicts, text.go and
// difflib.go compare what was answered, load.go how busy the engines were and how many requests met a bound, bound.go is
// what a CI job may hold the result to.
//
// Invariants:
//
//   - A ratio is always candidate / reference, of every metric. Whether more is better is said beside it.
//   - Evidence or no claim: what forbids a comparison is a Reason with the metric, never a silently smaller sample, and a
//     caller lifts it only by its name, which the report then tells.
//   - Every question of the audit is answered in the report, also where the answer is "the same" or "unknown".
//   - Both sides are derived by the same rules: entries are made of the recorded bytes, not of rows of older versions.
//   - Compare is a pure function of its input; the texts it asks for are those of recorded exchanges.
package compare
