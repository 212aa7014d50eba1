//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// resumptions tells when the process goes on after it was stopped.
func resumptions() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCONT)
	return signals
}
