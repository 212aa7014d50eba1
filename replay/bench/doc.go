// Package bench carries out the plan of a benchmark: step by step it has servers opened, asks them the scenarios of their
// cells, and writes a record for each cell as it ends.
//
// A Runner (runner.go) walks the steps of a matrix.Plan. A Place (place.go), which the command gives, knows how a server
// comes to be there and where its exchanges are kept; turn.go asks one cell once by a suite of package replay; sample.go is
// what that came to, record.go what the repeats of a cell come to together, and files.go keeps the records. lack.go is what a
// model was found to lack: it is asked for that once.
//
// Invariants:
//
//   - Every cell of the plan that is not kept or left has a record when Run returns without an error: ok, fail, skipped or
//     unsupported, each of the latter three with its reason. A server that fails takes its own cells along and no others.
//   - A record is written whole or not at all, when its cell has ended. What was measured before a crash is on the disk;
//     a cell that was cut has no record, and is measured again by the next sitting.
//   - Numbers are those of package measure, of exchanges that the record names. Nothing is timed here.
//   - No server is left open: each that was opened is closed, also when the run is ended.
package bench
