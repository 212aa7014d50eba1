//go:build !linux

package main

import (
	"os"
	"runtime"
	"syscall"
)

// diesWithUs is a promise that only Linux can keep.
func diesWithUs() *syscall.SysProcAttr { return nil }

// interruptProcess asks a helper to end; gentle says that it can do so by itself. Windows can only end it.
func interruptProcess(p *os.Process) (gentle bool, err error) {
	if runtime.GOOS == "windows" {
		return false, p.Kill()
	}
	return true, p.Signal(os.Interrupt)
}
