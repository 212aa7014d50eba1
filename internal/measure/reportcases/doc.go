// Package reportcases reads the acceptance cases drawn from field reports on measuring: for each the bytes a server
// sends and when, and the figures and the outcome a right instrument shows. It is for tests only.
//
// The same cases run twice: as frames on a timeline, exact (Variant.Exchange), and live through a scripted server and the
// proxy, where times have a bound.
//
// Invariants: no case and no expectation is dropped silently. An unknown key anywhere is an error; expectations that no
// single timeline can settle are kept under Live, and cases of which that holds wholly say where they belong.
package reportcases
