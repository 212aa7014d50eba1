//go:build unix

package proxy

import (
	"io"
	"sync"
	"syscall"
)

// requestBuffers hold what came with the first byte of a request.
var requestBuffers = sync.Pool{New: func() any { b := make([]byte, 4<<10); return &b }}

// requestWait waits for a request without holding a buffer. The library asks for one byte first, so as to need no
// buffer while it waits: it gets that byte, and the rest of what came with it at its next read, for one system call.
type requestWait struct {
	rc      syscall.RawConn
	receive func(fd uintptr) bool // made once for each connection
	buf     *[]byte               // what came and was not yet taken; nil when there is none
	r, w    int
	err     error
}

// firstByte reads at least the first byte of a request. ok is false where the connection has no descriptor.
func (q *requestWait) firstByte(c *clientConn, p []byte) (n int, ok bool, err error) {
	if q.rc == nil {
		sc, socket := c.Conn.(syscall.Conn)
		if !socket {
			return 0, false, nil
		}
		if q.rc, err = sc.SyscallConn(); err != nil {
			return 0, false, nil
		}
		q.receive = q.read
	}
	if err := q.rc.Read(q.receive); err != nil {
		return 0, true, err
	}
	if q.err != nil {
		return 0, true, q.err
	}
	return q.take(p), true, nil
}

// read is one attempt to read; false waits until there is something.
func (q *requestWait) read(fd uintptr) bool {
	buf := requestBuffers.Get().(*[]byte)
	for {
		n, err := syscall.Read(int(fd), *buf)
		if err == syscall.EINTR {
			continue
		}
		q.err = err
		if n > 0 {
			q.buf, q.r, q.w = buf, 0, n
			return true
		}
		requestBuffers.Put(buf)
		if err == nil {
			q.err = io.EOF
		}
		return err != syscall.EAGAIN
	}
}

// take gives out what came with the first byte.
func (q *requestWait) take(p []byte) int {
	if q.buf == nil {
		return 0
	}
	n := copy(p, (*q.buf)[q.r:q.w])
	if q.r += n; q.r == q.w {
		requestBuffers.Put(q.buf)
		q.buf = nil
	}
	return n
}
