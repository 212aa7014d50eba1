package proxy

import (
	"time"
)

// readAhead watches a client where no hub can: it reads one byte ahead of the HTTP library, which gets it back at its
// next read. A client that has a pipelined request pending is not noticed when it leaves.
type readAhead struct {
	done chan struct{} // closed when the watching goroutine has ended; nil when none runs
	have bool          // b was read ahead
	b    [1]byte
}

// startAhead begins to watch; the caller holds c.mu.
func (c *clientConn) startAhead() {
	if c.ahead.have || c.ahead.done != nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Time{}) // the one for reading the request is still set
	done := make(chan struct{})
	c.ahead.done = done
	go c.watchAhead(done)
}

func (c *clientConn) watchAhead(done chan struct{}) {
	defer close(done)
	n, err := c.Conn.Read(c.ahead.b[:])
	c.ahead.have = n == 1
	if ne, ok := err.(interface{ Timeout() bool }); err != nil && !(ok && ne.Timeout()) {
		c.lost()
	}
}

// stopAhead ends the watching goroutine; what it read waits for takeAhead.
func (c *clientConn) stopAhead() {
	if c.ahead.done == nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	<-c.ahead.done
	c.ahead.done = nil
	_ = c.Conn.SetReadDeadline(time.Time{})
}

// takeAhead gives back the byte that was read ahead. It must not be called while the watch runs.
func (c *clientConn) takeAhead(p []byte) int {
	if !c.ahead.have || len(p) == 0 {
		return 0
	}
	c.ahead.have = false
	return copy(p, c.ahead.b[:])
}
