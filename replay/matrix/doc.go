// Package matrix reads the configuration of a benchmark and plans its cells. It starts nothing and sends nothing.
//
// A file (file.go: its keys; node.go, bind.go: how it is read; schema.go: its JSON Schema) is resolved against the
// built-in registries (builtin.go), the environment and the flags into a Config (config.go, resolve*.go) that knows of
// each value where it came from. A Plan (plan.go) is made of a Config: one Group for each launch of a server (group.go),
// the cells of the group (cell.go), for each that cannot run why not (skip*.go), and the order in which all is measured
// (steps.go). Existing results leave cells out (resume.go). A Record (record.go) is what becomes of one cell. What a
// runner needs besides stands in context.go, retry.go and warmup.go as pure functions.
//
// Invariants:
//
//   - The same file, environment, flags and facts give the same plan, byte for byte; its hash covers what is measured and
//     how, and no path, port or address of a machine.
//   - A key or id that is not known is an error with its line, the nearest known one, and all that there are. Keys that
//     begin with an underscore are comments on every level and reach nothing.
//   - Every combination that was asked for is in the plan: as a cell to run, or skipped with the reason. None vanishes.
//   - Names of cells, result files and logs are a function of the cell alone, and tell apart any two cells of one plan.
//   - A result counts as that of a cell only when it was made by the same definition.
package matrix
