// Command benchproxy is the one instrument for LLM inference engines: it stands between a client and an engine, passes
// every byte through, stamps every read, keeps the whole exchange, and derives every number later from what it kept.
//
// This package is flags, precedence of settings, wiring and exit codes, one file a command. It is the only place that
// touches the process: arguments, environment, standard streams, signals and the exit code.
//
// Invariants: stdout carries the result and nothing else; stderr the rest. Every failure has an exit code of the table in
// exit.go. A flag works before and after arguments.
package main
