//go:build unix && !linux

package launch

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// limits are what cannot be told or done here.
const limits = "an engine goes on when this program is killed; the next start finds it, but not what it started; who holds a port cannot be told"

// ownGroup puts the engine into a process group of its own. That it dies with us is a promise only Linux can keep.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// toolGroup puts a program that ends by itself into a group of its own, so that all of it can be ended.
func toolGroup() *syscall.SysProcAttr { return ownGroup() }

// awaitExit returns when the process has ended. It reaps it; a second Wait gives an error, which nobody reads.
func awaitExit(cmd *exec.Cmd) { _ = cmd.Wait() }

// killGroup kills the process and its group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // there may be none left
}

// killSame kills a process that was seen a moment ago, and not one that got its number since.
func killSame(m process) {
	if start, ok := startOf(m.pid); ok && start == m.start {
		_ = syscall.Kill(m.pid, syscall.SIGKILL) // it may have ended
	}
}

// pipeName is known only on Linux.
func pipeName(*os.File) string { return "" }

func carries(int, string) bool { return true } // nobody is told by anything but the group

// living are those of the group, as far as they can be told: one that stands for all.
func (f *family) living(bool) []process {
	if f.leader <= 0 || syscall.Kill(-f.leader, 0) != nil {
		return nil // the marker cannot be seen
	}
	start, _ := startOf(f.leader)
	return []process{{pid: f.leader, pgrp: f.leader, start: start}}
}

// readProcess reads what ps says about a process.
func readProcess(pid int) (process, bool) {
	start, ok := startOf(pid)
	return process{pid: pid, name: commandOf(pid), start: start}, ok
}

// startOf is when a process started, as ps tells it.
func startOf(pid int) (string, bool) {
	out, err := exec.Command("ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	start := strings.TrimSpace(string(out))
	return start, err == nil && start != ""
}

func commandOf(pid int) string {
	out, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// portOwner is known only on Linux.
func portOwner(string, int) (owner, bool) { return owner{}, false }

// residentBytes is the memory of a process that is in RAM.
func residentBytes(pid int) (int64, bool) {
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	kib, convErr := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return kib << 10, err == nil && convErr == nil
}
