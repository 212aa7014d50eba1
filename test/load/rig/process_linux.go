package rig

import "syscall"

// dieWithParent has the kernel kill the program when the one that started it dies without a goodbye.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
