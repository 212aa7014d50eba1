//go:build !unix

package replay

import "os/exec"

// ownGroup does nothing here: what a command starts is not its own group on this platform.
func ownGroup(*exec.Cmd) {}

// killGroup ends a command. What it started ends by itself.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
