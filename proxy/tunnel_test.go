package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const upgradeRequest = "GET /v1/realtime HTTP/1.1\r\nHost: me\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\n"

const upgradeAnswer = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nConnection: Upgrade\r\n\r\n"

// echo upgrades and sends back what it gets; the first bytes come in one write with the head.
func echo(p *peer, a asked) bool {
	p.send("%shello", upgradeAnswer)
	_, _ = io.Copy(p.Conn, p.br)
	return false
}

func TestTunnel(t *testing.T) {
	for _, overTLS := range []bool{false, true} {
		e := newEngine(t, echo)
		r := newRig(t, e.url(), func(o *rigOptions) { o.tls = overTLS })
		c := r.dial()
		c.send("%s", upgradeRequest+"early")
		if got := c.head(); got != upgradeAnswer {
			t.Fatalf("client got head %q", got)
		}
		if head := e.last(t).Head; !strings.Contains(head, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n") {
			t.Errorf("engine got %q", head)
		}
		want := "helloearly"
		for i := range 50 {
			c.send("\x00\x01%d;", i)
			want += fmt.Sprintf("\x00\x01%d;", i)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c.br, got); err != nil || string(got) != want {
			t.Fatalf("client got %q, %v", got, err)
		}
		leave(c, "half")
		if rest := c.rest(); rest != "" {
			t.Errorf("bytes behind the end: %q", rest)
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		if x.Tunnel == nil || x.Tunnel.ToClient != int64(len(want)) || x.Tunnel.ToEngine != int64(len(want)-len("hello")) || x.Response.Status != 101 {
			t.Errorf("recorded as %+v, status %d", x.Tunnel, x.Response.Status)
		}
		if x.End != exchange.EndEOF {
			t.Errorf("ended as %s %+v", x.End, x.Cause)
		}
	}
}

// TestTunnelOutlivesTheIdleTimeout holds that a session may be silent for longer than a request or a body may stall.
func TestTunnelOutlivesTheIdleTimeout(t *testing.T) {
	e := newEngine(t, echo)
	r := newRig(t, e.url(), func(o *rigOptions) { o.up.IdleTimeout = 200 * time.Millisecond })
	c := r.dial().send("%s", upgradeRequest)
	c.head()
	got := make([]byte, len("hello"))
	for i := range 3 {
		if _, err := io.ReadFull(c.br, got); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		<-time.After(300 * time.Millisecond) // the timeout passes
		c.send("HELLO")
	}
	leave(c, "half")
	if x := r.sink.next(t); x.End != exchange.EndEOF {
		t.Errorf("ended as %s %+v", x.End, x.Cause)
	}
}

func TestTunnelBreaks(t *testing.T) {
	for _, side := range []string{"client", "engine"} {
		broken := make(chan struct{}, 1)
		e := newEngine(t, func(p *peer, a asked) bool {
			p.send("%s", upgradeAnswer)
			if side == "engine" {
				<-broken
				p.reset()
				return false
			}
			p.waitClosed()
			return false
		})
		r := newRig(t, e.url())
		c := r.dial().send("%s", upgradeRequest)
		c.head()
		if side == "client" {
			leave(c, "rst")
			<-e.closed
		} else {
			broken <- struct{}{}
			c.rest()
		}
		x := r.sink.next(t)
		if want := map[string]exchange.End{"client": exchange.EndClientGone, "engine": exchange.EndReset}[side]; x.End != want {
			t.Errorf("%s broke: ended as %s %+v", side, x.End, x.Cause)
		}
	}
}

// TestRefusedUpgrade holds that an engine may answer an upgrade with an ordinary response.
func TestRefusedUpgrade(t *testing.T) {
	e := newEngine(t, func(p *peer, a asked) bool {
		p.send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno")
		return true
	})
	r := newRig(t, e.url())
	c := r.dial().send("%s", upgradeRequest)
	if got := c.ok(426); got != "no" {
		t.Errorf("got %q", got)
	}
	c.post("{}").ok(426)
}

// TestShutdownDrains holds that running streams finish, and that nothing new is taken.
func TestShutdownDrains(t *testing.T) {
	step := make(chan struct{})
	e := newEngine(t, func(p *peer, a asked) bool { <-step; return sse(3)(p, a) })
	r := newRig(t, e.url())
	c := r.dial()
	c.post("{}")
	eventually(t, "it runs", func() bool { return e.served.Load() == 1 })
	done := make(chan error, 1)
	go func() { done <- r.server.Shutdown(context.Background()) }()
	close(step)
	if body := c.ok(200); !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Errorf("client got %q", body)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if x := r.sink.next(t); x.End != exchange.EndEOF {
		t.Errorf("ended as %s", x.End)
	}
}

// TestShutdownCuts holds that the drain has an end: streams, tunnels and waiting requests are cut and sealed.
func TestShutdownCuts(t *testing.T) {
	e := newEngine(t, func(p *peer, a asked) bool {
		switch {
		case strings.Contains(a.Head, "websocket"):
			p.send("%s", upgradeAnswer)
		case a.Body == "stream":
			p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			p.chunk("x")
		}
		p.waitClosed()
		return false
	})
	r := newRig(t, e.url())
	waiting, stream, ws := r.dial().post("waiting"), r.dial().post("stream"), r.dial().send("%s", upgradeRequest)
	old := r.dial().send("POST / HTTP/1.0\r\nContent-Length: 6\r\n\r\nstream")
	stream.head()
	ws.head()
	old.head()
	eventually(t, "all run", func() bool { return e.served.Load() == 4 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := r.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v", err)
	}
	for range 4 {
		x := r.sink.next(t)
		checkRecord(t, x)
		if x.End != exchange.EndShutdown || x.Cause.Side != exchange.SideProxy {
			t.Errorf("%q ended as %s %+v", x.Request.Body.Bytes(), x.End, x.Cause)
		}
		<-e.closed
	}
	if _, code := errorObject(t, waiting.ok(503)); code != "proxy_shutdown" {
		t.Errorf("the client that waited was told %q", code)
	}
	for _, c := range []*raw{stream, ws, old} {
		c.rest()
	}
}

// TestLengthIsNotHeldBack holds that a body with a length reaches the client part by part, not when a buffer is full.
func TestLengthIsNotHeldBack(t *testing.T) {
	for _, overTLS := range []bool{false, true} {
		step := make(chan struct{})
		e := newEngine(t, func(p *peer, a asked) bool {
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
			for _, b := range "hello" {
				p.send("%c", b)
				<-step // only when the client has it
			}
			return true
		})
		r := newRig(t, e.url(), func(o *rigOptions) { o.tls = overTLS })
		c := r.dial()
		c.post("{}")
		c.head()
		for _, want := range "hello" {
			if b, err := c.br.ReadByte(); err != nil || b != byte(want) {
				t.Fatalf("got %q %v", b, err)
			}
			step <- struct{}{}
		}
		if x := r.sink.next(t); len(x.Timeline.Reads) != 5 {
			t.Errorf("%d reads", len(x.Timeline.Reads))
		}
	}
}
