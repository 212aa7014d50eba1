// Package report renders evidence for people and for other programs. A report is built once, as sections of typed tables,
// charts and excerpts, and rendered to a page of HTML, to Markdown, CSV, JSON and JUnit XML; a terminal gets the same tables
// from the command line. Package build below makes it of runs, cells and gates.
//
// Invariants:
//
//   - It computes no new facts: cells hold what others derived, and every renderer shows the same ones. Compare tells what
//     moved between two reports by the spreads that their cells carry.
//   - An absent number is a dash, or the word that stands for it, with its reason in the JSON, never 0.
//   - What a text holds cannot break the form around it: names and reasons come from clients and engines.
//   - A page holds all it needs: it loads nothing, reads without its script, and a policy in it forbids the rest.
//   - Rendering is deterministic: no clock, no map order.
package report
