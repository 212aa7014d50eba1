//go:build !linux && !darwin && !windows

package models

import (
	"errors"
	"os"
)

// freeSpace is not known here: what does not fit shows when it is written.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

// lockFile does nothing: two processes that download one file make one that its digest contradicts.
func lockFile(*os.File) error { return nil }

func outOfSpace(error) bool { return false }
