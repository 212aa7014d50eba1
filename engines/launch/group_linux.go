package launch

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// seesProcesses says whether the state of other processes can be read here.
const seesProcesses = true

// ownGroup puts the engine into a process group of its own, which the terminal's Ctrl-C does not reach, and has the kernel
// kill it when the thread that starts it ends.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// toolGroup puts a program that ends by itself into a group of its own, so that all of it can be ended.
func toolGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns when the process has ended, and leaves it to be reaped.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &unix.Siginfo{}, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// killGroup kills the process, its group, and whatever else carries the marker.
func killGroup(p *os.Process, marker string) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // there may be none left
	for _, m := range members(p.Pid, marker) {
		killSame(m)
	}
}

// killSame kills a process that was seen a moment ago, and not one that got its number since.
func killSame(m process) {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err != nil {
		return // it has ended
	}
	defer func() { _ = unix.Close(fd) }() // there is nothing to lose
	if now, ok := readProcess(m.pid); ok && now.start == m.start {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // as above
	}
}

// members are the living processes of an engine: those of its group, and those that carry its marker.
func members(pgid int, marker string) []process {
	var out []process
	for _, pid := range processes() {
		m, ok := readProcess(pid)
		if ok && !m.dead && (m.pgrp == pgid || carries(pid, marker)) {
			out = append(out, m)
		}
	}
	return out
}

// belongs reports whether a process is one of an engine's.
func belongs(pid, pgid int, marker string) bool {
	m, ok := readProcess(pid)
	return ok && (m.pgrp == pgid || carries(pid, marker))
}
