package proxy

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// clientConn is an accepted connection: it notes when a request begins, keeps a rolling write deadline, and tells the
// running exchange when the client is gone.
type clientConn struct {
	net.Conn
	hub      *hub
	watched  bool   // the hub tells when the peer closes
	id       uint64 // in the hub
	fallback bool   // watch by reading ahead, see watchahead.go

	origin clock.Origin // monotonic zero of stall
	stall  rolling

	began time.Time // first byte of the request that is read now; zero before
	tls   bool      // what is read and written are TLS records: tlsClient does what looks into it
	wait  requestWait

	holding bool    // the next write is a head to be kept back, see holdHead
	head    *[]byte // a head that was kept back; nil when there is none
	ended   bool    // the end of a chunked body is written; the library's is yet to come

	mu     sync.Mutex
	gone   bool   // the peer closed
	onGone func() // of the running exchange
	ahead  readAhead

	linger bool                   // tell the client before closing on it
	owed   atomic.Pointer[func()] // to be done when the connection closes without it
	closed atomic.Bool
}

// arm runs f as soon as the client is gone, at once if it is already. f is called under the connection's lock, so
// that after disarm it neither runs nor will run.
func (c *clientConn) arm(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		f()
		return
	}
	c.onGone = f
	if c.fallback {
		c.startAhead()
	}
}

func (c *clientConn) disarm() {
	c.mu.Lock()
	c.onGone = nil
	c.mu.Unlock()
	if c.fallback {
		c.stopAhead()
	}
}

// lost is the hub's word that the peer closed.
func (c *clientConn) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if f := c.onGone; f != nil {
		c.onGone = nil
		f()
	}
}

// Read notes the first byte of a request.
func (c *clientConn) Read(p []byte) (int, error) {
	n, err := c.takeAhead(p), error(nil)
	if n == 0 {
		n, err = c.receive(p)
	}
	if !c.tls {
		c.note(n)
	}
	return n, err
}

// receive reads what came with the first byte of a request, else from the socket.
func (c *clientConn) receive(p []byte) (int, error) {
	if n := c.wait.take(p); n > 0 {
		return n, nil
	}
	if len(p) == 1 && !c.tls && !c.fallback {
		if n, ok, err := c.wait.firstByte(c, p); ok {
			return n, err
		}
	}
	return c.Conn.Read(p)
}

func (c *clientConn) note(n int) {
	if n > 0 && c.began.IsZero() {
		c.began = clock.Now()
	}
}

// requestBegan is the instant of the first byte of the request that was just read. A pipelined request came with the
// one before it and begins now.
func (c *clientConn) requestBegan() clock.Origin {
	t := c.began
	c.began = time.Time{}
	if t.IsZero() {
		return clock.Start()
	}
	return clock.At(t)
}

// Write fails when the client takes nothing for the stall time.
func (c *clientConn) Write(p []byte) (int, error) {
	if c.holding {
		return c.keepHead(p), nil
	}
	if !c.tls {
		if rest := c.swallow(p); len(rest) < len(p) {
			return len(p), nil
		}
	}
	if c.stall.d > 0 {
		if t, due := c.stall.renew(c.origin.NS()); due {
			_ = c.Conn.SetWriteDeadline(t)
		}
	}
	if c.head != nil {
		return c.writeBehindHead(p)
	}
	return c.Conn.Write(p)
}

// Close unregisters before it closes, so that no event of a later connection with the same descriptor is taken for
// this one.
func (c *clientConn) Close() error {
	if !c.closed.CompareAndSwap(false, true) {
		return net.ErrClosed
	}
	if c.watched {
		c.hub.remove(c)
	}
	c.hub.forget(c)
	c.settle()
	if c.linger {
		c.lingerClose()
	}
	return c.Conn.Close()
}

// owe leaves something to be done when the connection closes, unless settled before.
func (c *clientConn) owe(f func()) { c.owed.Store(&f) }

// unowe takes the debt back; false means it was settled already.
func (c *clientConn) unowe() bool { return c.owed.Swap(nil) != nil }

func (c *clientConn) settle() {
	if f := c.owed.Swap(nil); f != nil {
		(*f)()
	}
}

const (
	lingerTime  = time.Second
	lingerBytes = 16 << 20
)

// lingerClose lets a client that is still sending read our answer: closing at once would reset the connection and
// take the answer away.
func (c *clientConn) lingerClose() {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); !ok || cw.CloseWrite() != nil {
		return
	}
	_ = c.Conn.SetReadDeadline(clock.Now().Add(lingerTime))
	buf := make([]byte, 16<<10)
	for total := 0; total < lingerBytes; {
		n, err := c.Conn.Read(buf)
		if err != nil {
			return
		}
		total += n
	}
}

// reset closes the connection by a reset: the early end of a body that only the connection's end delimits. It closes the
// socket itself, because the goodbye of TLS would say that the body is whole.
func (c *clientConn) reset() {
	if t, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// tlsClient is a TLS connection over a clientConn.
type tlsClient struct {
	*tls.Conn
	c *clientConn
}

// Read notes the first byte of a request, which the records beneath do not show.
func (t *tlsClient) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.c.note(n)
	return n, err
}

// Write is where the end of a body can be told from other bytes.
func (t *tlsClient) Write(p []byte) (int, error) {
	if rest := t.c.swallow(p); len(rest) < len(p) {
		return len(p), nil
	}
	return t.Conn.Write(p)
}

// clientOf finds the connection beneath what the HTTP library hands out.
func clientOf(c net.Conn) *clientConn {
	switch c := c.(type) {
	case *clientConn:
		return c
	case *tlsClient:
		return c.c
	}
	return nil
}

// hubListener wraps accepted connections.
type hubListener struct {
	net.Listener
	hub      *hub
	tls      *tls.Config
	stall    time.Duration
	fallback bool
	once     sync.Once
}

// Close closes the listener once: the library does it again each time it is told to stop.
func (l *hubListener) Close() (err error) {
	l.once.Do(func() { err = l.Listener.Close() })
	return err
}

// Accept gives a connection that the hub knows.
func (l *hubListener) Accept() (net.Conn, error) {
	raw, err := l.acceptPatiently()
	if err != nil {
		return nil, err
	}
	c := &clientConn{Conn: raw, hub: l.hub, origin: clock.Start(), stall: rolling{d: l.stall}}
	l.hub.enter(c)
	_, socket := raw.(syscall.Conn)
	if socket && !l.fallback {
		c.watched = l.hub.watch(c)
	}
	c.fallback = socket && !c.watched
	if l.tls == nil {
		return c, nil
	}
	c.tls = true
	return &tlsClient{Conn: tls.Server(c, l.tls), c: c}, nil
}

const (
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = 200 * time.Millisecond
)

// acceptPatiently waits out what passes by itself, such as a process that has no descriptor left: the library would end
// the server, and with it every running stream.
func (l *hubListener) acceptPatiently() (net.Conn, error) {
	for pause := firstAcceptPause; ; pause = min(2*pause, lastAcceptPause) {
		c, err := l.Listener.Accept()
		var passing interface{ Temporary() bool }
		if err == nil || !errors.As(err, &passing) || !passing.Temporary() {
			return c, err
		}
		time.Sleep(pause)
	}
}

// registry knows the open client connections, for the hub's events and for the end of the server.
type registry struct {
	mu    sync.Mutex
	next  uint64
	conns map[uint64]*clientConn
}

func (r *registry) enter(c *clientConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	c.id = r.next // never used twice, unlike descriptors
	r.conns[c.id] = c
}

func (r *registry) forget(c *clientConn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c.id)
}

func (r *registry) find(id uint64) *clientConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns[id]
}

func (r *registry) all() []*clientConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*clientConn, 0, len(r.conns))
	for _, c := range r.conns {
		out = append(out, c)
	}
	return out
}
