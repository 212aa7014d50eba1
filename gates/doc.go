// Package gates judges recorded evidence: one gate a file, each with an id, a version and a rule that a person can read
// with `gate explain`.
//
// Invariants:
//
//   - Judging is pure and deterministic: no clock, no network, no disk, no map order. The same case judged twice by the
//     same version gives the same verdict, byte for byte, today or from the recording in a year.
//   - A gate that cannot judge says why: incomparable, unsupported, not_run or skipped. Only evidence makes ok.
//   - Of an answer only the content channel counts; what stands in the reasoning never satisfies a gate.
//   - The lenient reading stands beside the verdict and changes nothing else.
//   - A gate whose rule changes gets a new version. Old verdicts name the version that made them.
package gates
