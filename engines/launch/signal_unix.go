//go:build unix

package launch

import (
	"os"
	"syscall"

	"github.com/benchproxy/benchproxy/engines"
)

// askToEnd asks an engine to end, as its profile says.
func askToEnd(p *os.Process, l *engines.Launch) {
	s := syscall.SIGTERM
	if l != nil && l.Stop == engines.StopInterrupt {
		s = syscall.SIGINT
	}
	_ = p.Signal(s) // it may have ended by itself
}
