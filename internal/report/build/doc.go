// Package build makes a report of evidence: of runs on record, comparisons of runs, cells of a benchmark matrix, gates and an
// older report.
//
// Start at Document. evidence.go says what a report rests on; run.go gathers a run, exchange by exchange; cell.go reads the
// result files of a matrix, also those of other harnesses; ratio.go divides one engine by another; each section_*.go is one
// subject of the report.
//
// Invariants:
//
//   - No metric is defined here: figures come from internal/measure, statistics from internal/stat, ratios of runs and their
//     verdicts from internal/compare.
//   - A side that is missing, failed or partial has a dash or its word and a reason, and no ratio.
//   - Cells are divided only within one source, backend and tensor-parallel degree, and only where their decode rates come
//     from one formula. What is divided in spite of an unknown is told in a footnote.
//   - Where the subject is slower is listed beside where it is faster, in the same form.
//   - Document is a pure function of the evidence.
package build
