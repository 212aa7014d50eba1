//go:build linux || darwin

package recorder

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeSpace is the number of bytes that this user may still write on the disk of dir.
func freeSpace(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// diskBytes is what a file takes on disk: blocks, for Badger's files are sparse.
func diskBytes(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
