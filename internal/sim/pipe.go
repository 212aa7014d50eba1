package sim

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// PipeListener is a listener in memory. Its connections block a fake clock's bubble durably, so timing can be tested
// with a Server behind it, where sockets would hang the bubble. A write lasts until the other side has read it. As with
// TCP, a connection that is closed after SetLinger(0) is reset: its other side reads an error that is ECONNRESET.
type PipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

// NewPipeListener is a listener that accepts what Dial makes.
func NewPipeListener() *PipeListener {
	return &PipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Dial is a new connection to the listener. It waits until the connection is accepted.
func (l *PipeListener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := newPipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for the next Dial.
func (l *PipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial; open connections stay.
func (l *PipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr is a made-up address.
func (l *PipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// pipeConn is one side of a connection in memory.
type pipeConn struct {
	net.Conn
	reset, peerReset *atomic.Bool // closing this side, or the other one, is a reset
}

func newPipe() (client, server net.Conn) {
	a, b := net.Pipe()
	ra, rb := new(atomic.Bool), new(atomic.Bool)
	return &pipeConn{a, ra, rb}, &pipeConn{b, rb, ra}
}

// SetLinger makes closing a reset when sec is 0, and a proper end otherwise. It returns nil, always.
func (c *pipeConn) SetLinger(sec int) error {
	c.reset.Store(sec == 0)
	return nil
}

// Read implements net.Conn.
func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF && c.peerReset.Load() {
		err = &net.OpError{Op: "read", Net: "pipe", Addr: pipeAddr{}, Err: syscall.ECONNRESET}
	}
	return n, err
}
