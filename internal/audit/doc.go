// Package audit asks of what somebody is about to publish whether the evidence bears it: the numbers of runs, the ratios of
// comparisons, and the files that lie beside them.
//
// Start at Audit. run.go gathers the numbers of a run, trace.go asks where they come from, ceiling.go whether they are
// possible, baseline.go whether they are held against the right build, gates.go whether that very build was judged,
// document.go reads the files that other commands write, remade.go holds them against the same made again of the record.
//
// Invariants:
//
//   - Nothing is believed that cannot be followed to an exchange on record. A file that states a number without one is
//     told so, and each number and verdict of it is held against the exchanges measured and judged again. What no record
//     tells is named as what the file says.
//   - A verdict stands for its gate, case, policy and question, and only while its evidence is on record and gives it.
//   - Every question is in the result with its answer, also where the answer is ok or the question does not arise.
//   - What is not known is a warning, never ok.
//   - Audit is a pure function of its input: whoever calls it reads the files and the store.
package audit
