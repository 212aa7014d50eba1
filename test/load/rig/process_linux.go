package rig

import "syscall"

// dieWithParent has the kernel end the program when the one that started it dies without a goodbye: with a kill, or
// for a program with processes of its own with the signal on which it ends them.
func dieWithParent(tree bool) *syscall.SysProcAttr {
	if tree {
		return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	}
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
