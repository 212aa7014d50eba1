package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// flight is one running exchange with the engine: begin, then stream, then seal, all from one goroutine. cancel may
// come from any.
type flight struct {
	s    *Session
	up   *Upstream
	call Call
	id   exchange.ID
	seq  uint64

	origin   clock.Origin
	tl       exchange.Timeline
	response exchange.Response
	notes    []exchange.Intervention
	upgrade  bool // a WebSocket was asked for
	conn     *engineConn
	headAt   int64 // stamp of the read that completed the head
	frame    bodyFrame
	idle     rolling // between reads of the body
	rec      record
	filter   Filter // of the body for the client; nil passes it as it comes
	head     atomic.Pointer[published]
	tunnel   *exchange.Tunnel
	end      exchange.End // "" until something ended it
	cause    *exchange.Cause
	sealed   *exchange.Exchange

	makeFilter func() Filter // nil for none
	flushed    bool          // the filter holds nothing any more

	mu    sync.Mutex
	stop  *stopped           // first cancel
	abort context.CancelFunc // ends a dial
	live  *engineConn        // connection to close on cancel; nil when there is none
	done  bool               // too late to cancel
}

// stopped is a cancel: how the exchange ends, and when that was.
type stopped struct {
	end   exchange.End
	cause exchange.Cause
	at    int64
}

// open starts the clock of an exchange and enters it among the running ones.
func (s *Session) open(u *Upstream, c Call, origin clock.Origin) *flight {
	f := &flight{s: s, up: u, call: c, origin: origin}
	f.id, f.seq = exchange.NewID(origin.Wall()), s.seq.Add(1)
	f.tl.Wall, f.tl.Accepted = origin.Wall(), exchange.MarkAt(0)
	f.tl.RequestRead = exchange.MarkAt(origin.NS())
	if !c.Intended.IsZero() {
		f.tl.Intended = exchange.MarkAt(origin.Of(c.Intended))
	}
	f.idle.d = u.idle
	f.rec.init(s, len(c.Body))
	s.add(f)
	return f
}

// cancel ends the exchange from outside: the engine's connection is closed now, whatever it waits for. The first
// cancel counts; after the response is whole it does nothing.
func (f *flight) cancel(end exchange.End, cause exchange.Cause) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done || f.stop != nil {
		return
	}
	f.stop = &stopped{end, cause, f.origin.NS()}
	if f.abort != nil {
		f.abort()
	}
	if f.live != nil {
		f.live.closeRaw()
	}
}

// clientGone is the cancel of a client that left.
func (f *flight) clientGone() {
	f.cancel(exchange.EndClientGone, exchange.Cause{
		Side: exchange.SideClient, Code: "client_gone", Text: "the client closed its connection",
	})
}

// begin sends the request and reads the response head. An error has ended the exchange: only seal is left to do.
func (f *flight) begin(ctx context.Context) error {
	if t := f.s.opts.Tracer; t != nil {
		f.call.trace = t.Trace(f.id, f.call.Cell, f.call.Headers, f.call.server != nil)
	}
	out := buildHead(f.up, &f.call)
	f.notes, f.upgrade = append(slices.Clip(f.call.Notes), out.notes...), out.upgrade
	if err := f.connect(ctx); err != nil {
		return f.fail(err, "connect")
	}
	if err := f.send(out.head.Bytes()); err != nil {
		if !f.answeredEarly() {
			return f.fail(err, "send")
		}
		return nil
	}
	if err := f.readHead(); err != nil {
		return f.fail(err, "header")
	}
	return nil
}

// connect gets a connection, which cancel can close from then on.
func (f *flight) connect(ctx context.Context) error {
	c, reused := f.up.unused(), true
	if c == nil {
		var err error
		if c, err = f.dial(ctx); err != nil {
			return err
		}
		reused = false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.abort = nil
	if f.stop != nil {
		c.closeRaw()
		return net.ErrClosed
	}
	f.conn, f.live, f.tl.Reused = c, c, reused
	c.begin()
	f.tl.Dialed = exchange.MarkAt(f.origin.NS())
	return nil
}

// dial makes a connection, unless cancel comes first.
func (f *flight) dial(ctx context.Context) (*engineConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.abort = cancel
	stop := f.stop
	f.mu.Unlock()
	if stop != nil {
		return nil, net.ErrClosed
	}
	return f.up.dial(ctx)
}

// readHead waits for the final response head.
func (f *flight) readHead() error {
	if f.up.header > 0 {
		_ = f.conn.SetReadDeadline(clock.Now().Add(f.up.header))
	} else {
		_ = f.conn.SetReadDeadline(time.Time{}) // none
	}
	return f.headBytes()
}

// headBytes reads response heads until the final one. Heads of status 1xx are noted and not passed on.
func (f *flight) headBytes() error {
	seen := 0
	for {
		n := headEnd(f.conn.unread(), seen)
		if n < 0 {
			seen = len(f.conn.unread())
			if seen > maxHead {
				return fmt.Errorf("%w: response head over %d bytes", errMalformed, maxHead)
			}
			at, err := f.conn.fill(f.origin)
			if err != nil {
				return err
			}
			f.headAt = at
			continue
		}
		r, err := parseResponse(append([]byte(nil), f.conn.unread()[:n]...))
		if err != nil {
			return err
		}
		f.conn.use(n)
		seen = 0
		if r.Status >= 200 || r.Status == 101 && f.upgrade {
			return f.takeHead(r)
		}
		if r.Status == 101 {
			return fmt.Errorf("%w: 101 without a request for it", errMalformed)
		}
		f.response.Informational = append(f.response.Informational, r.Status)
		f.notes = append(f.notes, exchange.Intervention{
			Kind: "response_removed", Where: exchange.SideClient, Name: "status", From: fmt.Sprint(r.Status), Reason: "informational",
		})
		if len(f.response.Informational) > 100 {
			return fmt.Errorf("%w: endless informational responses", errMalformed)
		}
	}
}

func (f *flight) takeHead(r exchange.Response) (err error) {
	r.Informational = f.response.Informational
	f.response = r
	f.tl.HeaderRead = exchange.MarkAt(f.headAt)
	f.tl.Clock = f.conn.clock
	frame, err := frameResponse(&f.response, f.call.Method)
	if err != nil {
		return err
	}
	f.frame = newBodyFrame(frame)
	if f.makeFilter != nil {
		f.startFilter()
	}
	if f.idle.d == 0 && f.up.header > 0 {
		_ = f.conn.SetReadDeadline(time.Time{}) // none
	}
	f.head.Store(&published{f.response, f.tl})
	return nil
}

func (f *flight) stopped() *stopped {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stop
}

// fail ends the exchange by err, seen while doing what phase says, and gives err back.
func (f *flight) fail(err error, phase string) error {
	if f.end != "" {
		return err
	}
	if s := f.stopped(); s != nil {
		f.end, f.cause = s.end, &s.cause
		if s.end == exchange.EndClientGone {
			f.tl.ClientDone = exchange.MarkAt(s.at)
		}
	} else {
		f.end, f.cause = classify(err, phase)
		if f.tl.Reused && (phase == "send" || phase == "header") {
			f.up.wary.Store(true)
		}
	}
	f.detach(false)
	return err
}

// classify says how an error on the engine's side ends an exchange.
func classify(err error, phase string) (exchange.End, *exchange.Cause) {
	c := &exchange.Cause{Side: exchange.SideEngine, Text: err.Error()}
	switch {
	case phase == "connect":
		c.Code = "connect"
		return exchange.EndConnectFailed, c
	case isTimeout(err):
		c.Code = phase + "_timeout"
		return exchange.EndTimeout, c
	case errors.Is(err, errMalformed):
		c.Code = "malformed"
		return exchange.EndShort, c
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.Code = "eof"
		if phase == "header" || phase == "send" {
			c.Text = "the engine closed the connection before a response"
		} else {
			c.Text = "the engine closed the connection inside the response body"
		}
		return exchange.EndShort, c
	}
	c.Code = "reset"
	return exchange.EndReset, c
}

// tooLate makes cancel do nothing from now on: the engine has sent all it had. A client may leave as soon as it has the
// end of the body, which goes out with the last write.
func (f *flight) tooLate() {
	f.mu.Lock()
	f.done = true
	f.mu.Unlock()
}

// detach parts the exchange from its connection, which is kept for others or closed.
func (f *flight) detach(keep bool) {
	f.mu.Lock()
	stopped := f.stop != nil
	f.done, f.live = true, nil
	f.mu.Unlock()
	c := f.conn
	if c == nil {
		return
	}
	f.conn, f.tl.Clock = nil, c.clock
	if keep && !stopped && c.r == c.w {
		f.up.put(c)
		return
	}
	c.closeRaw()
}
