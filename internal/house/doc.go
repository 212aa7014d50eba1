// Package house holds no code: its tests hold the rules of the module that no compiler checks.
//
// They read the source of every package and fail on an import that points up, a library used behind another door than
// its own, a function or file past the length limits, a goroutine nobody owns, package state that changes, a clock or
// a process facility read outside its one place, and a package without a doc.go.
//
// Adding a row to a table in these tests is a reviewed decision.
package house
