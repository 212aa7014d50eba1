package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// Tree are the ids of a process and of all that it started and that still run, itself first.
func Tree(pid int) ([]int, error) {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		if err != nil || len(lists) == 0 && i == 0 {
			return nil, fmt.Errorf("list processes of %d: %w", pid, errors.Join(err, os.ErrNotExist))
		}
		for _, l := range lists {
			b, err := os.ReadFile(l)
			if err != nil {
				continue // the thread ended since it was listed
			}
			for _, f := range strings.Fields(string(b)) {
				child, err := strconv.Atoi(f)
				if err != nil {
					return nil, fmt.Errorf("list processes of %d: %w", pid, err)
				}
				all = append(all, child)
			}
		}
	}
	return all, nil
}
