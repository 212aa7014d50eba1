package proxy

import (
	"errors"
	"net"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	// sendStep is the part of a large request that is written at once.
	sendStep = 256 << 10
	// stallLook is how long the engine may take nothing of a request before we look for an answer.
	stallLook = 500 * time.Millisecond
	// earlyWait is how long a response is waited for after the engine stopped taking the request.
	earlyWait = time.Second
)

// send writes the request: head and the first part of the body in one call.
func (f *flight) send(head []byte) error {
	f.tl.SendStart = exchange.MarkAt(f.origin.NS())
	body := f.call.body()
	n := min(len(body), sendStep)
	parts := net.Buffers{head, body[:n]}
	if n == 0 {
		parts = parts[:1] // not every connection takes an empty write for nothing
	}
	for rest := body[n:]; ; rest = rest[n:] {
		if err := f.write(parts); err != nil {
			return err
		}
		if len(rest) == 0 {
			break
		}
		n = min(len(rest), sendStep)
		parts = net.Buffers{rest[:n]}
	}
	f.tl.SendDone = exchange.MarkAt(f.origin.NS())
	return nil
}

// write writes parts as long as the engine takes some of them within the idle bound. Where it takes nothing it may have
// refused the request without reading it: then waiting would be for nothing. A TLS connection does not survive a write
// that was broken off, so there only the bound holds.
func (f *flight) write(parts net.Buffers) error {
	bound, step := f.up.idle, f.up.idle
	plain := f.conn.Conn == f.conn.raw
	if plain && (bound == 0 || bound > stallLook) {
		step = stallLook
	}
	for stalled := time.Duration(0); ; stalled += step {
		if step > 0 {
			_ = f.conn.SetWriteDeadline(deadlineIn(step))
		}
		n, err := parts.WriteTo(f.conn.Conn)
		if err == nil || !plain || !isTimeout(err) {
			return err
		}
		if n > 0 {
			stalled = -step // it took some at the end of this step, for all we know
		} else if bound > 0 && stalled+step >= bound {
			return err
		}
		if err := f.lookForRefusal(); err != nil {
			return err
		}
	}
}

var errRefusedUnread = errors.New("the engine answered before it had read the request")

// lookForRefusal reads what the engine has sent already. It fails when that is an error response, or the end: an answer
// of success may well be written while the request is still read.
func (f *flight) lookForRefusal() error {
	if len(f.conn.unread()) > maxHead {
		return nil
	}
	_ = f.conn.SetReadDeadline(deadlineIn(time.Millisecond))
	at, err := f.conn.fill(f.origin)
	switch {
	case isTimeout(err):
		return nil
	case err != nil:
		return err
	}
	f.headAt = at
	if isRefusal(f.conn.unread()) {
		return errRefusedUnread
	}
	return nil
}

// isRefusal reports whether b begins with an error response, behind any informational ones.
func isRefusal(b []byte) bool {
	for {
		n := headEnd(b, 0)
		if n < 0 {
			return false
		}
		r, err := parseResponse(b[:n])
		if err != nil || r.Status >= 400 {
			return true
		}
		if r.Status >= 200 {
			return false
		}
		b = b[n:]
	}
}

// answeredEarly takes the response of an engine that refused the request before it had read all of it. The connection
// is not used again.
func (f *flight) answeredEarly() bool {
	if f.stopped() != nil {
		return false
	}
	_ = f.conn.SetReadDeadline(deadlineIn(earlyWait))
	ok := f.headBytes() == nil
	_ = f.conn.SetReadDeadline(time.Time{}) // none; that of the body is set by its first read
	f.frame.persist = false
	return ok
}
