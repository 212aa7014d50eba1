// Package report renders evidence for people and for other programs. A report is built once, as sections of typed tables,
// and rendered to Markdown, JSON and JUnit XML; a terminal gets the same tables from the command line.
//
// Invariants:
//
//   - It computes no new facts: cells hold what others derived, and every renderer shows the same ones.
//   - An absent number is a dash with its reason in the JSON, never 0.
//   - What a text holds cannot break the form around it: names and reasons come from clients and engines.
//   - Rendering is deterministic: no clock, no map order.
package report
