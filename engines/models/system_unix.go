//go:build linux || darwin

package models

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// freeSpace is how many bytes are free for us on the disk of a directory.
func freeSpace(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// lockFile keeps other processes from the file until it is closed, or this process ends.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

func outOfSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

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
