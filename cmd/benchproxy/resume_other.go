//go:build !unix

package main

import "os"

// resumptions tells when the process goes on after it was stopped, which happens nowhere else.
func resumptions() <-chan os.Signal { return nil }
