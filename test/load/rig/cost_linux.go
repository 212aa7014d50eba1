package rig

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the processor time that a process has used, user and system, to the nanosecond: the clock behind the utime
// and stime of /proc/PID/stat, which shows it in hundredths of a second only.
func CPU(pid int) (time.Duration, error) {
	var t unix.Timespec
	clock := int32(^pid<<3 | 2) // what clock_getcpuclockid makes of a process
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("read processor time of %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
