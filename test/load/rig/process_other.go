//go:build !linux

package rig

import "syscall"

// dieWithParent is a promise that only Linux can keep.
func dieWithParent(bool) *syscall.SysProcAttr { return nil }
