package proxy

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// lastChunk is the end of a chunked body without trailers.
const lastChunk = "0\r\n\r\n"

// wireBuffers are scratch space for what goes to a client in one call, so that no stream holds one while it waits.
var wireBuffers = sync.Pool{New: func() any { return new([]byte) }}

// holdHead keeps the next write back: it is the head of a response whose first body bytes are at hand, and goes out in
// one call with them.
func (c *clientConn) holdHead() { c.holding = true }

// releaseHead writes a head that was kept back and is still alone.
func (c *clientConn) releaseHead() error {
	c.holding = false
	if c.head == nil {
		return nil
	}
	_, err := c.writeBehindHead(nil)
	return err
}

// keepHead takes the head instead of writing it.
func (c *clientConn) keepHead(p []byte) int {
	c.holding = false
	c.head = wireBuffers.Get().(*[]byte)
	*c.head = append((*c.head)[:0], p...)
	return len(p)
}

// writeBehindHead writes the head that was kept back and p in one call, and returns how much of p was written.
func (c *clientConn) writeBehindHead(p []byte) (int, error) {
	head := len(*c.head)
	*c.head = append(*c.head, p...)
	n, err := c.Conn.Write(*c.head)
	wireBuffers.Put(c.head)
	c.head = nil
	return max(n-head, 0), err
}

// swallow takes the library's own end of a chunked body off p, once that end was written by chunkWriter.
func (c *clientConn) swallow(p []byte) []byte {
	if c.ended {
		c.ended = false
		p = bytes.TrimPrefix(p, []byte(lastChunk))
	}
	return p
}

// chunkWriter writes the body of one response in chunked coding: each p as one chunk in one call, and the end of the
// body with the last of them. The library would write the end when the exchange is sealed.
type chunkWriter struct {
	w io.Writer
	c *clientConn
	f *flight
	// trailers are to follow, which the library writes with the end of the body
	trailers bool
	err      error // of a write that failed: what is sent behind it would stand in its place
}

// Write sends p as one chunk and returns how much of p was sent.
func (w *chunkWriter) Write(p []byte) (int, error) {
	buf := wireBuffers.Get().(*[]byte)
	out := strconv.AppendInt((*buf)[:0], int64(len(p)), 16)
	out = append(out, "\r\n"...)
	out = append(out, p...)
	out = append(out, "\r\n"...)
	last := w.f.frame.ended() && !w.trailers
	if last {
		out = append(out, lastChunk...)
	}
	_, err := w.w.Write(out)
	*buf = out
	wireBuffers.Put(buf)
	if err != nil {
		w.err = err
		return 0, err
	}
	w.c.ended = last
	return len(p), nil
}

// end writes the end of the body, unless it went out with the last chunk or trailers are to come with it. A body with a
// hole has no end.
func (w *chunkWriter) end() error {
	if w.err != nil {
		return fmt.Errorf("write end of response body: %w", w.err)
	}
	if w.c.ended || w.trailers {
		return nil
	}
	_, err := w.w.Write([]byte(lastChunk))
	w.c.ended = err == nil
	return err
}
