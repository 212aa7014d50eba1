//go:build linux || darwin

package launch

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// fileKey names a file in its present state. changed is the later of its two times of change.
func fileKey(path string, info os.FileInfo) (key string, changed time.Time, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", changed, false
	}
	changed = info.ModTime()
	meta := statusChange(st)
	if meta.After(changed) {
		changed = meta
	}
	return fmt.Sprintf("%s %d %d %d %d %d", path, st.Dev, st.Ino, info.Size(), info.ModTime().UnixNano(), meta.UnixNano()), changed, true
}
