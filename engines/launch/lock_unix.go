//go:build unix

package launch

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile waits for the lock of a file, which its closing gives back.
func lockFile(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			return err
		}
	}
}
