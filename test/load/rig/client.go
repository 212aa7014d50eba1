package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Patience bounds one read of an answer, so that a target that went silent fails a run instead of holding it.
const Patience = 60 * time.Second

// Client sends requests over one connection, one after the other, and makes another when the target closed it. It is
// for one goroutine.
type Client struct {
	addr string
	conn net.Conn // nil when there is none
	buf  []byte   // of one read
	body body
	ans  Answer
}

// Answer is what came back. It is valid until the next Send.
type Answer struct {
	Status int
	Sent   int64 // Unix ns before the first byte of the request was written
	Body   []byte
	Reads  []Read // those that brought body bytes
	Whole  bool   // the framing said that the body is at its end
}

// Read is one read of an answer.
type Read struct {
	At   int64 // Unix ns when it returned
	Body int   // bytes of the body that were there with it
}

// Arrival is when byte number n of the body (from 1) was there; ok is false when it never was.
func (a *Answer) Arrival(n int) (at int64, ok bool) {
	for _, r := range a.Reads {
		if r.Body >= n {
			return r.At, true
		}
	}
	return 0, false
}

// NewClient makes a client of the server at addr (host:port). Close frees its connection.
func NewClient(addr string) *Client { return &Client{addr: addr, buf: make([]byte, 32<<10)} }

// Close closes the connection, whatever runs on it.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// Dial connects when there is no connection. Send does it too.
func (c *Client) Dial() error {
	if c.conn != nil {
		return nil
	}
	conn, err := net.DialTimeout("tcp", c.addr, Patience)
	if err != nil {
		return fmt.Errorf("dial target: %w", err)
	}
	c.conn = conn
	return nil
}

// Do sends a request and reads its answer to the end. An answer that was cut is there as far as it came.
func (c *Client) Do(request []byte) (*Answer, error) {
	err := c.Send(request)
	for err == nil {
		var done bool
		if done, err = c.Read(); done {
			return &c.ans, nil
		}
	}
	return &c.ans, err
}

// Send writes a request.
func (c *Client) Send(request []byte) error {
	if err := c.Dial(); err != nil {
		return err
	}
	c.ans = Answer{Body: c.ans.Body[:0], Reads: c.ans.Reads[:0]}
	c.body = body{head: c.body.head[:0]}
	c.ans.Sent = time.Now().UnixNano()
	if _, err := c.conn.Write(request); err != nil {
		return c.fail(fmt.Errorf("write request: %w", err))
	}
	return nil
}

// Read reads once; done says that the answer is whole.
func (c *Client) Read() (done bool, err error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		return false, c.fail(err)
	}
	n, err := c.conn.Read(c.buf)
	at := time.Now().UnixNano()
	before := len(c.ans.Body)
	c.ans.Body, done, err = c.take(c.buf[:n], err)
	c.ans.Status = c.body.status
	if len(c.ans.Body) > before {
		c.ans.Reads = append(c.ans.Reads, Read{at, len(c.ans.Body)})
	}
	if err != nil {
		return false, c.fail(fmt.Errorf("read answer: %w", err))
	}
	c.ans.Whole = done
	if done && c.body.closes {
		c.Close()
	}
	return done, nil
}

// take adds what a read brought to the body.
func (c *Client) take(b []byte, readErr error) (body []byte, done bool, err error) {
	body, done, err = c.body.add(c.ans.Body, b)
	switch {
	case err != nil || done || readErr == nil:
		return body, done, err
	case errors.Is(readErr, io.EOF) && c.body.untilClose:
		return body, true, nil
	case errors.Is(readErr, io.EOF):
		return body, false, io.ErrUnexpectedEOF
	}
	return body, false, readErr
}

// Answer is the answer as far as it came.
func (c *Client) Answer() *Answer { return &c.ans }

func (c *Client) fail(err error) error {
	c.Close()
	return err
}

// body finds head and body in the bytes of a response.
type body struct {
	head       []byte
	status     int // 0 until the head is whole
	closes     bool
	untilClose bool  // the end of the connection is the end of the body
	chunked    bool  // or else left counts
	left       int64 // of the body, or of the chunk with its line end
	line       []byte
	last       bool // the last chunk was seen: lines up to a blank one follow
}

// add appends the body bytes among b to dst; done says that the body is whole.
func (d *body) add(dst, b []byte) (out []byte, done bool, err error) {
	if d.status == 0 {
		d.head = append(d.head, b...)
		end := bytes.Index(d.head, []byte("\r\n\r\n"))
		if end < 0 {
			return dst, false, nil
		}
		b = bytes.Clone(d.head[end+4:])
		if err := d.parse(string(d.head[:end])); err != nil {
			return dst, false, err
		}
	}
	switch {
	case d.chunked:
		return d.chunks(dst, b)
	case d.untilClose:
		return append(dst, b...), false, nil
	}
	if int64(len(b)) > d.left {
		return dst, false, fmt.Errorf("%d bytes after the body", int64(len(b))-d.left)
	}
	d.left -= int64(len(b))
	return append(dst, b...), d.left == 0, nil
}

func (d *body) parse(head string) error {
	lines := strings.Split(head, "\r\n")
	status := strings.Fields(lines[0])
	if len(status) < 2 {
		return fmt.Errorf("status line %q", lines[0])
	}
	code, err := strconv.Atoi(status[1])
	if err != nil || code < 200 || code > 599 {
		return fmt.Errorf("status line %q", lines[0])
	}
	d.left = -1
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			if d.left, err = strconv.ParseInt(value, 10, 64); err != nil || d.left < 0 {
				return fmt.Errorf("header %q", l)
			}
		case "transfer-encoding":
			d.chunked = strings.EqualFold(value, "chunked")
		case "connection":
			d.closes = strings.EqualFold(value, "close")
		}
	}
	d.status = code
	if d.chunked {
		d.left = 0
	}
	d.untilClose = !d.chunked && d.left < 0
	d.closes = d.closes || d.untilClose
	return nil
}

// chunks undoes chunked coding, in whatever pieces it comes.
func (d *body) chunks(dst, b []byte) (out []byte, done bool, err error) {
	for len(b) > 0 {
		if d.left > 2 { // the line end of a chunk is counted and dropped
			n := min(d.left-2, int64(len(b)))
			dst, b, d.left = append(dst, b[:n]...), b[n:], d.left-n
			continue
		}
		if d.left > 0 {
			b, d.left = b[1:], d.left-1
			continue
		}
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			d.line = append(d.line, b...)
			return dst, false, nil
		}
		d.line = append(d.line, b[:i+1]...)
		b = b[i+1:]
		if done, err := d.chunkLine(bytes.TrimRight(d.line, "\r\n")); done || err != nil {
			return dst, done, err
		}
		d.line = d.line[:0]
	}
	return dst, false, nil
}

// chunkLine takes a size line, or a line after the last chunk.
func (d *body) chunkLine(line []byte) (done bool, err error) {
	if d.last {
		return len(line) == 0, nil
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	size = bytes.TrimSpace(size)
	n := int64(0)
	for _, c := range size {
		digit := bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
		if digit < 0 || n > 1<<40 {
			return false, fmt.Errorf("chunk size %q", line)
		}
		n = n<<4 | int64(digit)
	}
	switch {
	case len(size) == 0:
		return false, fmt.Errorf("chunk size %q", line)
	case n == 0:
		d.last = true
	default:
		d.left = n + 2
	}
	return false, nil
}

// BodyOf is the body of a response that was sent as raw. With an error it is the part before the place of the error: a
// response that is cut short gives io.ErrUnexpectedEOF.
func BodyOf(raw []byte) ([]byte, error) {
	var d body
	out, done, err := d.add(nil, raw)
	if err == nil && !done && (d.status == 0 || !d.untilClose) {
		err = io.ErrUnexpectedEOF
	}
	return out, err
}
