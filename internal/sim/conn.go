package sim

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// conn is one connection of a client.
type conn struct {
	srv *Server
	nc  net.Conn
	br  *bufio.Reader
	rec *ConnRecord

	untold atomic.Bool // only the end of the connection tells the end of what is sent now
	once   sync.Once   // closing nc
}

func newConn(s *Server, nc net.Conn) *conn {
	return &conn{srv: s, nc: nc, br: bufio.NewReaderSize(nc, 16<<10), rec: s.journal.accepted()}
}

// serve answers one request after the other until either side is done.
func (c *conn) serve() {
	defer c.abandon()
	for {
		req, err := readRequest(c.br, c.srv.cfg.MaxBody, c.proceed)
		if err != nil {
			c.refuse(err)
			return
		}
		if c.reserved(req) {
			if req.wantsClose() {
				c.close("server", nil)
				return
			}
			continue
		}
		if !c.exchange(req) {
			return
		}
	}
}

// proceed tells a client that waits for it to send its body.
func (c *conn) proceed() error {
	_, err := io.WriteString(c.nc, "HTTP/1.1 100 Continue\r\n\r\n")
	return err
}

// refuse ends the connection when reading a request stopped, with a 400 for what is no request.
func (c *conn) refuse(err error) {
	if errors.Is(err, errMalformed) {
		// The connection ends here, whether the client takes the answer or not.
		_, _ = c.nc.Write(plainResponse(errorScript(400, "invalid_request_error", err.Error()), true))
		c.drain()
		c.close("server", err)
		return
	}
	if err == io.EOF {
		err = nil
	}
	c.close("client", err)
}

// The bounds of drain.
const (
	drainTime  = time.Second
	drainBytes = 16 << 20
)

// drain reads on for a while where the client may still be sending: closing at once would reset the connection and take
// the refusal away.
func (c *conn) drain() {
	cw, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || cw.CloseWrite() != nil || c.nc.SetReadDeadline(clock.Now().Add(drainTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.nc, drainBytes) // its end, whatever it is, is what is waited for
}

// exchange answers one request and reports whether the connection may carry another.
func (c *conn) exchange(req Request) bool {
	read := clock.Now()
	rec := c.srv.journal.began(c.rec, req, read)
	req.Seq = rec.Seq
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	w := &watch{c: c, gone: make(chan struct{}), done: make(chan struct{}), ctx: ctx, leave: leave}
	w.Open()
	defer w.Close()
	p := &player{conn: c, rec: rec, read: read, watch: w}
	opts, script := c.srv.script(req)
	p.deaf, p.done = opts.Deaf, script.Done
	if !p.takeSlot() {
		return p.finish(EndTruncate)
	}
	defer p.freeSlot()
	c.srv.journal.change(func() { rec.Usage = script.Usage })
	if script.Relay != nil {
		return p.relay(script.Relay)
	}
	if script.FromRead {
		p.slot = 0
	}
	pl := compile(script, req, opts)
	c.untold.Store(pl.untold)
	defer c.untold.Store(false)
	return p.play(pl)
}

// close closes the connection once and enters who did.
func (c *conn) close(by string, err error) {
	c.once.Do(func() {
		c.nc.Close()
		c.srv.journal.closed(c.rec, by, err)
	})
}

// abandon closes the connection for the server.
func (c *conn) abandon() { c.close("server", nil) }

// interrupt closes the connection in the middle of whatever is sent, so that nobody takes it for whole.
func (c *conn) interrupt() {
	if c.untold.Load() {
		c.cut(true)
		return
	}
	c.abandon()
}

// cut closes the connection without the farewell of its protocol: FIN alone, or RST.
func (c *conn) cut(reset bool) {
	raw := c.nc
	if t, ok := raw.(*tls.Conn); ok {
		raw = t.NetConn()
	}
	if t, ok := raw.(interface{ SetLinger(int) error }); ok && reset {
		_ = t.SetLinger(0) // fails on a closed socket only
	}
	c.once.Do(func() {
		raw.Close()
		c.srv.journal.closed(c.rec, "server", nil)
	})
}

// watch reads ahead while an answer is played, so that the end of the client is known at once. Its goroutine runs from
// Open to Close.
type watch struct {
	c    *conn
	at   time.Time     // when the client was found gone; to be read after gone is closed
	gone chan struct{} // closed when the client left
	done chan struct{} // closed when the goroutine ends

	ctx   context.Context // ends with gone
	leave context.CancelFunc
}

// Open starts reading ahead.
func (w *watch) Open() { go w.read() }

// read looks for an end behind whatever the client has sent already: a next request may wait in the buffer.
func (w *watch) read() {
	defer close(w.done)
	for n := 1; n <= w.c.br.Size(); n = w.c.br.Buffered() + 1 {
		if _, err := w.c.br.Peek(n); err != nil {
			var ne net.Error
			if !errors.As(err, &ne) || !ne.Timeout() {
				w.at = clock.Now()
				close(w.gone)
				w.leave()
			}
			return
		}
	}
}

// Close stops reading ahead; what was read stays in the buffer.
func (w *watch) Close() {
	// A deadline cannot be set on a closed connection, whose read has ended anyway.
	_ = w.c.nc.SetReadDeadline(time.Unix(1, 0))
	<-w.done
	_ = w.c.nc.SetReadDeadline(time.Time{})
}
