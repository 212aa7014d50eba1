package recorder

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// freeSpace is the number of bytes that this user may still write on the disk of dir.
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

// diskBytes is the length of a file: files are not sparse here.
func diskBytes(info fs.FileInfo) int64 { return info.Size() }
