package proxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// goneBudget is the promise: a client that leaves frees the engine within this time. The median of the attempts is
// asserted, and each attempt against slack more: a loaded test machine may stop us for longer than that.
const (
	goneBudget = 100 * time.Millisecond
	goneSlack  = 2 * time.Second
)

// when is the moment at which the client leaves.
type when struct {
	name  string
	ready chan struct{} // the engine has come to that moment
	send  func(p *peer)
	pipe  bool // a second request is pending
}

func moments() []when {
	return []when{
		{name: "prefill", send: func(p *peer) {}},
		{name: "prefill after head", send: func(p *peer) { p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") }},
		{name: "stream", send: func(p *peer) { p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); p.chunk("data: 1\n\n") }},
		{name: "length", send: func(p *peer) { p.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") }},
		{name: "pipelined", send: func(p *peer) {}, pipe: true},
	}
}

// leave ends the client's connection in one of three ways.
func leave(c *raw, how string) {
	tcp := c.Conn
	if t, ok := tcp.(*tls.Conn); ok {
		tcp = t.NetConn()
	}
	switch how {
	case "fin":
		tcp.Close()
	case "rst":
		if t, ok := tcp.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
		tcp.Close()
	case "half":
		_ = tcp.(interface{ CloseWrite() error }).CloseWrite()
	}
}

func TestClientGone(t *testing.T) {
	type transport struct {
		name     string
		network  string
		tls      bool
		fallback bool
	}
	for _, tr := range []transport{{"plain", "tcp", false, false}, {"tls", "tcp", true, false}, {"unix", "unix", false, false},
		{"read ahead", "tcp", false, true}, {"read ahead tls", "tcp", true, true}} {
		for _, m := range moments() {
			if m.pipe && tr.fallback {
				continue // a pending request hides the end from a reader ahead
			}
			for _, how := range []string{"fin", "rst", "half"} {
				t.Run(fmt.Sprintf("%s/%s/%s", tr.name, m.name, how), func(t *testing.T) {
					ready := make(chan struct{}, 1)
					e := newEngine(t, func(p *peer, a asked) bool {
						m.send(p)
						ready <- struct{}{}
						p.waitClosed()
						return false
					})
					r := newRig(t, e.url(), func(o *rigOptions) { o.network, o.tls, o.fallback = tr.network, tr.tls, tr.fallback })
					m.ready = ready
					clientGone(t, r, e, m, how)
				})
			}
		}
	}
}

func clientGone(t *testing.T, r *rig, e *engine, m when, how string) {
	t.Helper()
	fast := 0
	for range 3 {
		c := r.dial()
		c.post("{}")
		if m.pipe {
			c.post("{}")
		}
		<-m.ready
		if m.name == "stream" || m.name == "length" {
			c.head()
			_, _ = c.br.ReadByte()
		}
		left := clock.Now()
		leave(c, how)
		var took time.Duration
		select {
		case at := <-e.closed:
			took = at.Sub(left)
		case <-time.After(patience):
			t.Fatal("the engine's connection was never closed")
		}
		if took <= goneBudget {
			fast++
		}
		if took > goneSlack {
			t.Errorf("the engine's connection was closed after %v", took)
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		if x.End != exchange.EndClientGone || x.Cause.Side != exchange.SideClient || !x.Timeline.ClientDone.Happened() {
			t.Errorf("recorded as %s %+v", x.End, x.Cause)
		}
		c.Close()
	}
	if fast < 2 {
		t.Errorf("%d of 3 within %v", fast, goneBudget)
	}
}

// TestHalfCloseIsTheClients holds that a client that closes its sending side before the answer, and still reads, is told
// that this ended its request, and nothing bad of the engine: no head is before it in the prefill, and behind one the
// answer breaks off.
func TestHalfCloseIsTheClients(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		ready := make(chan struct{}, 1)
		e := newEngine(t, func(p *peer, a asked) bool {
			ready <- struct{}{}
			p.waitClosed()
			return false
		})
		r := newRig(t, e.url(), func(o *rigOptions) { o.fallback = fallback })
		c := r.dial()
		c.post("{}")
		<-ready
		leave(c, "half")
		got := c.ok(400)
		if !strings.Contains(got, `"client_closed"`) || !strings.Contains(got, "keep the connection open") ||
			strings.Contains(got, e.url()) || strings.Contains(got, "engine's log") {
			t.Errorf("the client was told %s", got)
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		if x.End != exchange.EndClientGone || x.Cause.Side != exchange.SideClient || x.Cause.Code != "client_gone" || x.Response.Status != 0 {
			t.Errorf("recorded as %s %+v, status %d", x.End, x.Cause, x.Response.Status)
		}
		c.Close()
	}
}

// TestClientGoneOverTLSUpstream holds the same when the engine's side is TLS.
func TestClientGoneOverTLSUpstream(t *testing.T) {
	server, client := certificate(t)
	ready := make(chan struct{}, 1)
	ln := tls.NewListener(listen(t, "tcp"), server)
	e := newEngineOn(t, ln, func(p *peer, a asked) bool {
		ready <- struct{}{}
		p.waitClosed()
		return false
	})
	r := newRig(t, "https://"+ln.Addr().String(), func(o *rigOptions) { o.up.TLS = client })
	clientGone(t, r, e, when{name: "prefill", ready: ready}, "fin")
}

func TestTLSAndUnixUpstreams(t *testing.T) {
	server, client := certificate(t)
	tl := tls.NewListener(listen(t, "tcp"), server)
	overTLS := newEngineOn(t, tl, sse(3))
	ul := listen(t, "unix")
	overUnix := newEngineOn(t, ul, sse(3))
	for url, e := range map[string]*engine{"https://" + tl.Addr().String(): overTLS, "unix:" + ul.Addr().String(): overUnix} {
		r := newRig(t, url, func(o *rigOptions) { o.up.TLS = client })
		c := r.dial()
		for i := range 5 {
			c.post("{}").ok(200)
			if x := r.sink.next(t); x.End != exchange.EndEOF || x.Timeline.Reused != (i > 0) {
				t.Errorf("%s: request %d ended as %s, reused=%v", url, i, x.End, x.Timeline.Reused)
			}
		}
		if n := e.served.Load(); n != 5 {
			t.Errorf("%s: engine saw %d requests", url, n)
		}
	}
}

// TestStaleTLSConnections holds that what came behind an answer inside TLS, where the socket does not show it, keeps the
// connection from being used again: an answer nobody asked for would go to the next request.
func TestStaleTLSConnections(t *testing.T) {
	for _, behind := range []string{"answer", "goodbye"} {
		server, client := certificate(t)
		tl := tls.NewListener(&corkListener{listen(t, "tcp")}, server)
		e := newEngineOn(t, tl, func(p *peer, a asked) bool {
			tc := p.Conn.(*tls.Conn)
			cork := tc.NetConn().(*corked)
			cork.hold = true
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			if behind == "answer" {
				p.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")
			} else {
				_ = tc.CloseWrite()
			}
			cork.release()
			p.waitClosed()
			return false
		})
		r := newRig(t, "https://"+tl.Addr().String(), func(o *rigOptions) { o.up.TLS = client })
		c := r.dial()
		for range 5 {
			if got := c.post("{}").ok(200); got != "ok" {
				t.Errorf("%s: client got %q", behind, got)
			}
			if x := r.sink.next(t); x.Timeline.Reused {
				t.Errorf("%s: the connection was used again", behind)
			}
		}
		if n := e.served.Load(); n != 5 {
			t.Errorf("%s: engine saw %d requests, want 5", behind, n)
		}
	}
}

// corkListener accepts connections that can hold writes back.
type corkListener struct{ net.Listener }

func (l *corkListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &corked{Conn: c}, nil
}

// corked sends what was written while hold is set in one write.
type corked struct {
	net.Conn
	hold bool
	held []byte
}

func (c *corked) Write(b []byte) (int, error) {
	if !c.hold {
		return c.Conn.Write(b)
	}
	c.held = append(c.held, b...)
	return len(b), nil
}

func (c *corked) release() {
	_ = c.Conn.SetWriteDeadline(time.Time{}) // the goodbye left one
	_, _ = c.Conn.Write(c.held)
	c.hold, c.held = false, nil
}

// TestLeavingAfterTheEndIsNoAbort holds that a client that closes when it has the whole answer left nothing behind.
func TestLeavingAfterTheEndIsNoAbort(t *testing.T) {
	e := newEngine(t, sse(5))
	r := newRig(t, e.url())
	for range 50 {
		c := r.dial()
		c.post("{}").ok(200)
		c.Close()
		if x := r.sink.next(t); x.End != exchange.EndEOF {
			t.Fatalf("ended as %s %+v", x.End, x.Cause)
		}
	}
	if n := e.open.Load(); n != 1 {
		t.Errorf("%d connections to the engine, want 1", n)
	}
}

// TestLongPrefillOutlivesReadTimeout holds that the deadline for reading a request does not end the wait for its answer.
func TestLongPrefillOutlivesReadTimeout(t *testing.T) {
	for _, fallback := range []bool{false, true} {
		release := make(chan struct{})
		e := newEngine(t, func(p *peer, a asked) bool { <-release; return sse(1)(p, a) })
		r := newRig(t, e.url(), func(o *rigOptions) { o.server.ReadTimeout, o.fallback = 50*time.Millisecond, fallback })
		c := r.dial()
		c.post("{}")
		timer := time.AfterFunc(300*time.Millisecond, func() { close(release) })
		c.ok(200)
		timer.Stop()
		if x := r.sink.next(t); x.End != exchange.EndEOF {
			t.Errorf("ended as %s %+v", x.End, x.Cause)
		}
	}
}

// TestReadAheadKeepsPipelining holds that the byte that was read ahead comes back.
func TestReadAheadKeepsPipelining(t *testing.T) {
	step := make(chan struct{})
	e := newEngine(t, func(p *peer, a asked) bool { <-step; return jsonAnswer(a.Body)(p, a) })
	r := newRig(t, e.url(), func(o *rigOptions) { o.fallback = true })
	c := r.dial()
	for i := range 3 {
		c.post(fmt.Sprint(i))
	}
	for i := range 3 {
		step <- struct{}{}
		if got := c.ok(200); got != fmt.Sprint(i) {
			t.Errorf("answer %d is %q", i, got)
		}
	}
}
