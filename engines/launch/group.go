package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// process is what is known of a process.
type process struct {
	pid    int
	parent int
	pgrp   int
	name   string
	start  string // tells it from a later one of the same number
	dead   bool   // it has ended and is not reaped
}

// processList names processes for a person.
func processList(list []process) string {
	var parts []string
	for _, p := range list {
		parts = append(parts, fmt.Sprintf("pid %d (%s)", p.pid, commandOf(p.pid)))
	}
	return strings.Join(parts, ", ")
}

// startedSince reports whether a process was started after an instant, both as the system tells. It is false where they
// cannot be compared.
func startedSince(pid int, instant string) bool {
	start, ok := startOf(pid)
	n, err := strconv.ParseUint(start, 10, 64)
	since, err2 := strconv.ParseUint(instant, 10, 64)
	return ok && err == nil && err2 == nil && n >= since
}
