package launch

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// limits are what cannot be told or done here.
const limits = ""

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

// killGroup kills the process and its group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // there may be none left
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
