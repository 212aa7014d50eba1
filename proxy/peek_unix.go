//go:build unix

package proxy

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// alive reports whether an unused connection may carry another request: nothing waits to be read, neither the end of
// the connection nor bytes that nobody asked for. It never blocks. A connection that is no socket is asked by its
// deadline, see aliveByDeadline.
func alive(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return aliveByDeadline(c)
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	err = rc.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		silent = err == unix.EAGAIN || err == unix.EWOULDBLOCK
	})
	return err == nil && silent
}

// peekWait is how long aliveByDeadline listens: in-memory connections answer at once.
const peekWait = 0
