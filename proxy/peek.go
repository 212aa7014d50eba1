package proxy

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// aliveByDeadline reads one byte under a deadline: only a timeout means that the connection is open and silent.
func aliveByDeadline(c net.Conn) bool {
	if c.SetReadDeadline(clock.Now().Add(peekWait)) != nil {
		return false
	}
	var b [1]byte
	_, err := c.Read(b[:])
	return errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}
