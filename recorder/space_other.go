//go:build !linux && !darwin && !windows

package recorder

import (
	"errors"
	"io/fs"
)

// freeSpace cannot tell on this system.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

// diskBytes is the length of a file.
func diskBytes(info fs.FileInfo) int64 { return info.Size() }
