package main

import (
	"os"
	"syscall"
)

// diesWithUs has the kernel kill a helper when we die without a goodbye, and keeps the terminal's Ctrl-C from it: when it
// ends is for us to say.
func diesWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// interruptProcess asks a helper to end; gentle says that it can do so by itself.
func interruptProcess(p *os.Process) (gentle bool, err error) { return true, p.Signal(os.Interrupt) }
