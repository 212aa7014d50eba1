//go:build unix

package bench

import (
	"os"
	"syscall"
)

// tryLock takes the lock of a file, which its closing gives back, or fails at once.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
