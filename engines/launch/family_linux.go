package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// pipeName is how /proc names an open pipe.
func pipeName(f *os.File) string {
	if f == nil {
		return ""
	}
	to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || !strings.HasPrefix(to, "pipe:") {
		return ""
	}
	return to
}

// living are those that live. Who holds the output is looked up only for a deep look: it takes longest.
func (f *family) living(deep bool) []process {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[int]process{}
	own := map[int]bool{}
	for _, pid := range processes() {
		p, ok := readProcess(pid)
		if !ok || p.dead || pid == os.Getpid() {
			continue
		}
		all[pid] = p
		if own[pid] = p.pgrp == f.leader || pid == f.leader || f.seen[pid] == p.start || f.marked(p); !own[pid] && deep {
			own[pid] = f.holdsOutput(pid)
		}
	}
	var out []process
	seen, plain := map[int]string{}, map[int]string{}
	for pid, p := range all {
		if f.descends(p, all, own) {
			out, seen[pid] = append(out, p), p.start
		} else if f.plain[pid] == p.start {
			plain[pid] = p.start
		}
	}
	f.seen, f.plain = seen, plain
	return out
}

// descends reports whether a process, or one that it comes from, is one of the family.
func (f *family) descends(p process, all map[int]process, own map[int]bool) bool {
	for range 64 { // deeper than any tree of processes
		if own[p.pid] {
			return true
		}
		parent, ok := all[p.parent]
		if !ok {
			return false
		}
		p = parent
	}
	return false
}

// marked reports whether a process carries the marker.
func (f *family) marked(p process) bool {
	if f.marker == "" || f.plain[p.pid] == p.start {
		return false
	}
	if carries(p.pid, f.marker) {
		return true
	}
	f.plain[p.pid] = p.start
	return false
}

// holdsOutput reports whether a process has the engine's output open. One of this program itself may be about to become
// another: it has all that is open here until then.
func (f *family) holdsOutput(pid int) bool {
	if f.output == "" || sameProgram(pid) {
		return false
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	fds, err := os.ReadDir(dir)
	if err != nil {
		return false // somebody else's, or gone
	}
	for _, fd := range fds {
		if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == f.output {
			return true
		}
	}
	return false
}

// sameProgram reports whether a process runs the program of this one.
func sameProgram(pid int) bool {
	theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	ours, err2 := os.Readlink("/proc/self/exe")
	return err != nil || err2 != nil || theirs == ours
}
