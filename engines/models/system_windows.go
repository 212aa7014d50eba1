package models

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// freeSpace is how many bytes are free for us on the disk of a directory.
func freeSpace(dir string) (int64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, err
	}
	return int64(free), nil
}

// lockedByte is far behind the end of any file, since Windows lets nobody read or write what is locked.
const lockedByte = 1 << 30

// lockFile keeps other processes from the file until it is closed, or this process ends.
func lockFile(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{OffsetHigh: lockedByte})
}

func outOfSpace(err error) bool { return errors.Is(err, syscall.Errno(windows.ERROR_DISK_FULL)) }

// renameOpen closes a file and renames it: Windows renames no open file.
func renameOpen(f *os.File, from, to string) error {
	if err := f.Close(); err != nil {
		return fmt.Errorf("close part: %w", err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("rename part: %w", err)
	}
	return nil
}
