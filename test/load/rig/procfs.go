package rig

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is the resident memory of a process.
type Memory struct {
	Now  int64 // bytes
	Peak int64 // bytes, the most since it started
}

// MemoryOf reads /proc/PID/status.
func MemoryOf(pid int) (Memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read memory of process: %w", err)
	}
	var m Memory
	if m.Now, err = kilobytes(b, "VmRSS:"); err != nil {
		return m, err
	}
	m.Peak, err = kilobytes(b, "VmHWM:")
	return m, err
}

func kilobytes(status []byte, name string) (int64, error) {
	for line := range bytes.Lines(status) {
		f := strings.Fields(string(line))
		if len(f) == 3 && f[0] == name && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("read memory of process: there is no %s", name)
}

// Files are the open descriptors of a process by kind: socket, pipe, anon_inode, and file for those with a path.
func Files(pid int) (map[string]int, error) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list descriptors: %w", err)
	}
	kinds := map[string]int{}
	for _, e := range list {
		to, err := os.Readlink(dir + "/" + e.Name())
		if err != nil {
			continue // closed since it was listed
		}
		kind, _, ok := strings.Cut(to, ":")
		if !ok || strings.HasPrefix(to, "/") {
			kind = "file"
		}
		kinds[kind]++
	}
	return kinds, nil
}
