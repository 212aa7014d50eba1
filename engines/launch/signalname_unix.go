//go:build unix

package launch

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalOf is the signal that ended a process, "" when none did.
func signalOf(s *os.ProcessState) (name string, number int) {
	ws, ok := s.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return "", 0
	}
	number = int(ws.Signal())
	if name = unix.SignalName(ws.Signal()); name == "" {
		name = fmt.Sprintf("signal %d", number)
	}
	return name, number
}
