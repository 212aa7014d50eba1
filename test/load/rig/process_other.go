//go:build !linux

package rig

import "syscall"

// dieWithParent is a promise that only Linux can keep.
func dieWithParent() *syscall.SysProcAttr { return nil }
