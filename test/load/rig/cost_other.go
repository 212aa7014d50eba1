//go:build !linux

package rig

import (
	"errors"
	"time"
)

// CPU is the processor time that a process has used.
func CPU(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
