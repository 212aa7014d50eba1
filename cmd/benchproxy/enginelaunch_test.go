package main

import (
	"regexp"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

var enginePID = regexp.MustCompile(`, pid ([0-9]+)\n`)

// engine_dies NAME CODE kills the engine that a background process has started, waits until the process ends by itself, and
// compares its exit code. Its output is left in NAME.out and NAME.err.
func engineDies(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: engine_dies NAME CODE")
	}
	s := running(ts).running[args[0]]
	m := enginePID.FindStringSubmatch(s.err.String())
	if m == nil {
		ts.Fatalf("%s names no engine:\n%s", args[0], s.err.String())
	}
	pid, err := strconv.Atoi(m[1])
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	s.finish(ts, args[0])
	if got := s.cmd.ProcessState.ExitCode(); strconv.Itoa(got) != args[1] {
		ts.Fatalf("%s ended with code %d, want %s\n%s", args[0], got, args[1], s.err.String())
	}
}
