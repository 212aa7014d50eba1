package launch

import (
	"syscall"
	"time"
)

// statusChange is when the system noted the last change of a file, which no program can set.
func statusChange(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctimespec.Unix()) }
