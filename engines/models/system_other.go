//go:build !linux && !darwin && !windows

package models

import (
	"errors"
	"fmt"
	"os"
)

// freeSpace is not known here: what does not fit shows when it is written.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

// lockFile does nothing: two processes that download one file make one that its digest contradicts.
func lockFile(*os.File) error { return nil }

func outOfSpace(error) bool { return false }

// renameOpen renames an open file and closes it: the lock is held until it has its name.
func renameOpen(f *os.File, from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return errors.Join(fmt.Errorf("rename part: %w", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("close part: %w", err)
	}
	return nil
}
