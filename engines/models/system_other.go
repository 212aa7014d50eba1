//go:build !linux && !darwin

package models

import (
	"errors"
	"os"
	"syscall"
)

// freeSpace is not known here: what does not fit shows when it is written.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

// lockFile does nothing: two processes that download one file make one that its digest contradicts.
func lockFile(*os.File) error { return nil }

// diskFull is ERROR_DISK_FULL.
const diskFull = syscall.Errno(112)

func outOfSpace(err error) bool { return errors.Is(err, diskFull) }
