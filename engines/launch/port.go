package launch

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// portsToTry is how far a busy port moves.
const portsToTry = 20

// owner is the process that listens on a port.
type owner struct {
	pid     int    // 0: it cannot be seen
	command string // "" when it cannot be seen
	user    string // of it, when that is all that can be seen
	ours    bool
}

// String names the process for a person.
func (o owner) String() string {
	switch {
	case o.pid != 0 && o.command != "":
		return fmt.Sprintf("pid %d (%s)", o.pid, o.command)
	case o.pid != 0:
		return fmt.Sprintf("pid %d", o.pid)
	case o.user != "":
		return "a process of user " + o.user
	}
	return "a process that cannot be seen from here"
}

// owner finds out who listens on the engine's port. known is false where that cannot be told.
func (p *Process) owner() (o owner, known bool) {
	o, known = portOwner(p.spec.Host, p.port)
	if !known || o.pid == 0 && o.user == "" {
		return o, false
	}
	o.ours = p.owns(o)
	return o, true
}

// owns reports whether a process belongs to the engine.
func (p *Process) owns(o owner) bool {
	return o.pid == p.pid || o.pid != 0 && p.family.has(o.pid)
}

// choosePort is the port that an engine is started with. Between the choice and the engine's own bind somebody else may
// take it; the ready check finds that out.
func choosePort(s *Spec) (int, error) {
	if s.Port == AnyPort {
		ln, err := net.Listen("tcp", net.JoinHostPort(s.Host, "0"))
		if err != nil {
			return 0, portError(s, s.Host, err, "name an address of this machine")
		}
		port := ln.Addr().(*net.TCPAddr).Port
		return port, ln.Close()
	}
	if s.Port < 1 || s.Port > 65535 {
		return 0, usage("port %d is not from 1 to 65535", s.Port)
	}
	tries := 1
	if s.Busy == engines.BusyNext {
		tries = portsToTry
	}
	for port := s.Port; port < s.Port+tries && port <= 65535; port++ {
		if portFree(s.Host, port) {
			if port != s.Port {
				s.warn(fmt.Sprintf("port %d is in use by %s; %s gets %d", s.Port, holderOf(s.Host, s.Port), s.Engine.ID, port))
			}
			return port, nil
		}
	}
	at := net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	if tries > 1 {
		return 0, portError(s, at, fmt.Errorf("this port and the %d after it are in use, the first by %s", portsToTry-1, holderOf(s.Host, s.Port)), "name a free one")
	}
	return 0, portError(s, at, fmt.Errorf("the port is in use by %s", holderOf(s.Host, s.Port)), "stop that process, name another port, or connect to it by its URL")
}

func portError(s *Spec, object string, cause error, hint string) error {
	return &exchange.Error{Op: "launch " + s.Engine.ID + " on", Object: object, Side: exchange.SideClient, Cause: fmt.Errorf("%w: %w", ErrPortBusy, cause), Hint: hint}
}

// ErrPortBusy is wrapped by the error of a start whose port somebody else has.
var ErrPortBusy = errors.New("no port")

func holderOf(host string, port int) string {
	o, _ := portOwner(host, port)
	return o.String()
}

// portFree reports whether a port could be listened on at this moment.
func portFree(host string, port int) bool {
	ln, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = ln.Close()
	return true
}
