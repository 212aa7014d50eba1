package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	firstBuffer = 4 << 10  // of a new connection: an idle stream holds no more
	fullBuffer  = 64 << 10 // a buffer that reads fill grows up to this
	maxHead     = 1 << 20  // of a response
)

// engineConn is one connection to the engine with its read buffer. One flight owns it at a time; only closeRaw may be
// called by others.
type engineConn struct {
	net.Conn             // what is read and written: plain or TLS
	raw      net.Conn    // the socket beneath
	kernel   *kernelConn // the same, where the kernel stamps what it receives; else nil
	buf      []byte      // buf[r:w] was read and not yet used
	r, w     int
	full     bool      // the last read filled the buffer
	since    time.Time // when it became idle

	last     int64               // newest stamp of this exchange, ns since its origin
	received int64               // newest one of the kernel, Unix ns
	clock    exchange.StampClock // what made its stamps so far
}

func newEngineConn(c, raw net.Conn, kernel *kernelConn) *engineConn {
	return &engineConn{Conn: c, raw: raw, kernel: kernel, buf: make([]byte, firstBuffer)}
}

// closeRaw closes the socket without any goodbye, which unblocks a read or write at once.
func (c *engineConn) closeRaw() { _ = c.raw.Close() }

// alive reports whether an unused connection may carry another request. A TLS connection may hold what the socket does
// not show: records that came with the last answer, such as the engine's goodbye or an answer nobody asked for.
func (c *engineConn) alive() bool {
	if c.kernel != nil {
		if !c.kernel.alive() {
			return false
		}
	} else if !alive(c.raw) {
		return false
	}
	return c.Conn == c.raw || aliveByDeadline(c.Conn)
}

// unread are the bytes that were read and not yet used.
func (c *engineConn) unread() []byte { return c.buf[c.r:c.w] }

func (c *engineConn) use(n int) {
	c.r += n
	if c.r == c.w {
		c.r, c.w = 0, 0
	}
}

// fill reads once from the engine, behind what is unread, and says when the bytes arrived by the clock of stampClock.
// This is the one place where reads are stamped.
func (c *engineConn) fill(o clock.Origin) (at int64, err error) {
	if c.w == len(c.buf) {
		c.makeRoom()
	}
	n, err := c.Conn.Read(c.buf[c.w:])
	at = c.stamp(o, n)
	c.w += n
	c.full = c.w == len(c.buf)
	if n > 0 {
		return at, nil // an error comes again at the next read
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return at, err
}

// stamp is the instant of a read that just returned n bytes: the kernel's receive stamp where there is a sane one, else
// now. Under TLS it is that of the newest segment that was needed to have these bytes.
func (c *engineConn) stamp(o clock.Origin, n int) int64 {
	if c.kernel == nil || n == 0 {
		return c.stamped(o.NS(), n, exchange.ClockRead)
	}
	received, ok := c.kernel.taken()
	if !ok {
		return c.stamped(o.NS(), n, exchange.ClockRead)
	}
	at, now := o.FromUnix(received)
	if at < 0 || at > now || received < c.received { // of another exchange, or the wall clock was set meanwhile
		return c.stamped(now, n, exchange.ClockRead)
	}
	c.received = received
	return c.stamped(max(at, c.last), n, exchange.ClockKernel) // two readings of the clocks differ by some ns
}

// stamped keeps account of which clock stamped the reads of this exchange.
func (c *engineConn) stamped(at int64, n int, by exchange.StampClock) int64 {
	if n > 0 {
		switch c.clock {
		case "", by:
			c.clock = by
		default:
			c.clock = exchange.ClockMixed
		}
		c.last = at
	}
	return at
}

// begin starts the account of a new exchange.
func (c *engineConn) begin() { c.last, c.received, c.clock = 0, 0, "" }

// makeRoom gives fill a place to read to: the front of the buffer, or a larger buffer when one read filled it.
func (c *engineConn) makeRoom() {
	if c.r > 0 {
		c.w = copy(c.buf, c.unread())
		c.r = 0
		return
	}
	bigger := make([]byte, 2*len(c.buf))
	copy(bigger, c.buf)
	c.buf = bigger
}

// grow enlarges an empty buffer that the last read filled, so that a fast body takes fewer reads.
func (c *engineConn) grow() {
	if c.full && c.w == 0 && len(c.buf) < fullBuffer {
		c.buf = make([]byte, 2*len(c.buf))
	}
}

// slim gives a large buffer back before the connection rests in the pool.
func (c *engineConn) slim() {
	if len(c.buf) > 4*firstBuffer {
		c.buf = make([]byte, firstBuffer)
	}
	c.r, c.w = 0, 0
}

// rolling is a deadline that moves with every operation. It is renewed only when an eighth of it has passed: setting
// one costs as much as a small read.
type rolling struct {
	d   time.Duration // 0 is none
	due int64         // ns on the caller's clock from which it must be renewed
}

// renew gives the deadline to set for an operation that starts at ns; ok is false when the one in force still serves.
func (r *rolling) renew(ns int64) (deadline time.Time, ok bool) {
	if r.d == 0 || ns < r.due {
		return time.Time{}, false
	}
	r.due = ns + int64(r.d/8)
	return clock.Now().Add(r.d + r.d/8), true
}

// deadlineIn is the instant d from now.
func deadlineIn(d time.Duration) time.Time { return clock.Now().Add(d) }

// isTimeout reports whether a deadline of ours passed.
func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}
