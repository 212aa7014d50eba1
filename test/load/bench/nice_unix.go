//go:build unix

package main

import "syscall"

// yieldProcessor has everything else go before this process.
func yieldProcessor() error { return syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19) }
