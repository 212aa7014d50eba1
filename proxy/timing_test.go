package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// memory is an in-memory network: what one side dials the other accepts.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), done: make(chan struct{})} }

func (m *memory) Dial(ctx context.Context) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case m.conns <- b:
		return a, nil
	case <-m.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *memory) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// inBubble runs a test on a fake clock with an engine in memory. Each instant of it is exact.
func inBubble(t *testing.T, o UpstreamOptions, script func(p *peer, a asked) bool, fn func(t *testing.T, s *Session, u *Upstream)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		e := newEngineOn(t, m, script)
		o.URL, o.Dial = "http://memory", m.Dial
		u, err := NewUpstream(o)
		if err != nil {
			t.Fatal(err)
		}
		fn(t, NewSession(SessionOptions{}), u)
		_ = u.Close()
		e.mu.Lock()
		for c := range e.conns {
			c.Close()
		}
		e.mu.Unlock()
	})
}

func ms(n int64) int64 { return n * int64(time.Millisecond) }

// TestMarksAndStamps holds every instant of an exchange, to the nanosecond.
func TestMarksAndStamps(t *testing.T) {
	script := func(p *peer, a asked) bool {
		time.Sleep(30 * time.Millisecond)
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		time.Sleep(100 * time.Millisecond)
		for range 2 {
			p.chunk("0123456789")
			time.Sleep(20 * time.Millisecond)
		}
		p.send("0\r\n\r\n")
		return true
	}
	inBubble(t, UpstreamOptions{Name: "m"}, script, func(t *testing.T, s *Session, u *Upstream) {
		var got bytes.Buffer
		slow := writerFunc(func(b []byte) (int, error) { time.Sleep(3 * time.Millisecond); return got.Write(b) })
		x := s.Do(t.Context(), u, Call{Method: "POST", Target: "/x", Body: []byte("{}")}, slow)
		checkRecord(t, x)
		want := exchange.Timeline{
			Wall: x.Timeline.Wall, Clock: exchange.ClockRead,
			Accepted: exchange.MarkAt(0), RequestRead: exchange.MarkAt(0), Dialed: exchange.MarkAt(0),
			SendStart: exchange.MarkAt(0), SendDone: exchange.MarkAt(0), HeaderRead: exchange.MarkAt(ms(30)),
			FirstRead: exchange.MarkAt(ms(130)), LastRead: exchange.MarkAt(ms(150)), BodyEnd: exchange.MarkAt(ms(170)),
			ClientDone: exchange.MarkAt(ms(153)),
			Reads:      []exchange.Read{{At: ms(130), Write: ms(3), Size: 10}, {At: ms(150), Write: ms(3), Size: 10}, {At: ms(170)}},
		}
		if diff := cmp.Diff(want, x.Timeline, cmp.AllowUnexported(exchange.Mark{})); diff != "" {
			t.Error(diff)
		}
		if got.String() != "01234567890123456789" || x.End != exchange.EndEOF {
			t.Errorf("got %q, ended as %s", got.String(), x.End)
		}
		if x := s.Do(t.Context(), u, Call{Method: "POST", Target: "/x"}, nil); !x.Timeline.Reused || x.Seq != 2 {
			t.Errorf("second exchange: reused=%v seq %d", x.Timeline.Reused, x.Seq)
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestHeadAndBodyInOneRead holds that body bytes behind the head keep the stamp of that read.
func TestHeadAndBodyInOneRead(t *testing.T) {
	script := func(p *peer, a asked) bool {
		time.Sleep(20 * time.Millisecond)
		return jsonAnswer("{}")(p, a)
	}
	inBubble(t, UpstreamOptions{}, script, func(t *testing.T, s *Session, u *Upstream) {
		x := s.Do(t.Context(), u, Call{Method: "GET", Target: "/"}, nil)
		if diff := cmp.Diff([]exchange.Read{{At: ms(20), Size: 2}}, x.Timeline.Reads); diff != "" {
			t.Error(diff)
		}
	})
}

// TestRollingDeadlines holds that a body lives as long as it keeps coming, and that silence ends it.
func TestRollingDeadlines(t *testing.T) {
	script := func(p *peer, a asked) bool {
		time.Sleep(time.Hour) // prefill: unlimited by default
		p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 100 {
			time.Sleep(900 * time.Millisecond)
			p.chunk("x")
		}
		p.waitClosed()
		return false
	}
	inBubble(t, UpstreamOptions{IdleTimeout: time.Second}, script, func(t *testing.T, s *Session, u *Upstream) {
		x := s.Do(t.Context(), u, Call{Method: "GET", Target: "/"}, nil)
		if x.End != exchange.EndTimeout || x.Cause.Code != "idle_timeout" || x.Response.Body.Size != 100 {
			t.Errorf("ended as %s %+v after %d bytes", x.End, x.Cause, x.Response.Body.Size)
		}
		last, _ := x.Timeline.LastRead.NS()
		end, _ := x.Timeline.BodyEnd.NS()
		if silence := time.Duration(end - last); silence < time.Second || silence > 1125*time.Millisecond {
			t.Errorf("silence of %v ended it, want 1 s and at most an eighth more", silence)
		}
	})
}

func TestHeaderTimeout(t *testing.T) {
	script := func(p *peer, a asked) bool { p.waitClosed(); return false }
	inBubble(t, UpstreamOptions{HeaderTimeout: 5 * time.Second}, script, func(t *testing.T, s *Session, u *Upstream) {
		x := s.Do(t.Context(), u, Call{Method: "GET", Target: "/"}, nil)
		if x.End != exchange.EndTimeout || x.Cause.Code != "header_timeout" {
			t.Errorf("ended as %s %+v", x.End, x.Cause)
		}
	})
}

// TestHeaderTimeoutDoesNotOutliveTheHead holds that it is not a deadline of the body, with and without an idle one.
func TestHeaderTimeoutDoesNotOutliveTheHead(t *testing.T) {
	for _, idle := range []time.Duration{-1, time.Hour} {
		script := func(p *peer, a asked) bool {
			p.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			time.Sleep(time.Minute)
			p.send("ok")
			return true
		}
		inBubble(t, UpstreamOptions{HeaderTimeout: time.Second, IdleTimeout: idle}, script, func(t *testing.T, s *Session, u *Upstream) {
			for range 2 {
				if x := s.Do(t.Context(), u, Call{Method: "GET", Target: "/"}, nil); x.End != exchange.EndEOF {
					t.Errorf("ended as %s %+v", x.End, x.Cause)
				}
			}
		})
	}
}

func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := NewUpstream(UpstreamOptions{URL: "http://m", ConnectTimeout: time.Second, Dial: func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		x := NewSession(SessionOptions{}).Do(t.Context(), u, Call{Method: "GET", Target: "/"}, nil)
		if x.End != exchange.EndConnectFailed || x.Timeline.Dialed.Happened() {
			t.Errorf("ended as %s %+v", x.End, x.Cause)
		}
	})
}

// TestIdleConnectionsExpire holds that unused connections are used for three seconds and closed then.
func TestIdleConnectionsExpire(t *testing.T) {
	inBubble(t, UpstreamOptions{}, jsonAnswer("{}"), func(t *testing.T, s *Session, u *Upstream) {
		do := func() bool { return s.Do(t.Context(), u, Call{Method: "GET", Target: "/"}, nil).Timeline.Reused }
		do()
		time.Sleep(2900 * time.Millisecond)
		if !do() {
			t.Error("a connection of 2.9 s was not used again")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(u.free) != 0 {
			t.Error("a connection of 3 s is still kept")
		}
		if do() {
			t.Error("a connection of 3 s was used again")
		}
	})
}

// TestCancel holds what each way to cancel Do seals, at each stage, and that it takes no time.
func TestCancel(t *testing.T) {
	stages := map[string]func(p *peer, a asked) bool{
		"prefill": func(p *peer, a asked) bool { p.waitClosed(); return false },
		"stream": func(p *peer, a asked) bool {
			p.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			p.chunk("x")
			p.waitClosed()
			return false
		},
	}
	for name, script := range stages {
		for cause, want := range map[error]exchange.End{
			ErrShutdown: exchange.EndShutdown, errors.New("left"): exchange.EndClientGone, context.DeadlineExceeded: exchange.EndTimeout,
		} {
			inBubble(t, UpstreamOptions{}, script, func(t *testing.T, s *Session, u *Upstream) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(cause) })
				x := s.Do(ctx, u, Call{Method: "GET", Target: "/"}, nil)
				if x.End != want {
					t.Errorf("%s, %v: ended as %s %+v", name, cause, x.End, x.Cause)
				}
				if end, ok := x.Timeline.BodyEnd.NS(); ok && end != int64(time.Second) {
					t.Errorf("%s, %v: ended at %v", name, cause, time.Duration(end))
				}
			})
		}
	}
}

func TestCancelWhileDialing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, _ := NewUpstream(UpstreamOptions{URL: "http://m", ConnectTimeout: -1, Dial: func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		x := NewSession(SessionOptions{}).Do(ctx, u, Call{Method: "GET", Target: "/"}, nil)
		if x.End != exchange.EndTimeout || x.Cause.Code != "deadline" {
			t.Errorf("ended as %s %+v", x.End, x.Cause)
		}
	})
}

// TestWriterFails holds that a failing writer of Do ends the exchange as one whose client left, except behind the end.
func TestWriterFails(t *testing.T) {
	inBubble(t, UpstreamOptions{}, sse(3), func(t *testing.T, s *Session, u *Upstream) {
		bad := writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })
		if x := s.Do(t.Context(), u, Call{Method: "GET", Target: "/"}, bad); x.End != exchange.EndClientGone {
			t.Errorf("ended as %s %+v", x.End, x.Cause)
		}
	})
	inBubble(t, UpstreamOptions{}, jsonAnswer("{}"), func(t *testing.T, s *Session, u *Upstream) {
		bad := writerFunc(func([]byte) (int, error) { return 0, io.ErrClosedPipe })
		if x := s.Do(t.Context(), u, Call{Method: "GET", Target: "/"}, bad); x.End != exchange.EndEOF {
			t.Errorf("the whole answer was there, ended as %s %+v", x.End, x.Cause)
		}
	})
}

// TestServerInMemory runs the whole server on a fake clock: what the client sees arrives when the engine sent it.
func TestServerInMemory(t *testing.T) {
	script := func(p *peer, a asked) bool {
		time.Sleep(500 * time.Millisecond)
		p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 5 {
			time.Sleep(200 * time.Millisecond)
			p.chunk("data: x\n\n")
		}
		p.send("0\r\n\r\n")
		return true
	}
	inBubble(t, UpstreamOptions{}, script, func(t *testing.T, s *Session, u *Upstream) {
		srv, err := NewServer(ServerOptions{Session: s, Upstream: u})
		if err != nil {
			t.Fatal(err)
		}
		front := newMemory()
		go func() { _ = srv.Serve(front) }()
		conn, err := front.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := &raw{conn, bufio.NewReader(conn), t}
		c.post("{}")
		origin := clock.Now()
		c.head()
		arrivals := []time.Duration{clock.Now().Sub(origin)}
		for range 5 {
			for range 4 { // size, data, blank, chunk end
				_, _ = c.br.ReadString('\n')
			}
			arrivals = append(arrivals, clock.Now().Sub(origin))
		}
		want := []time.Duration{500 * time.Millisecond, 700 * time.Millisecond, 900 * time.Millisecond, 1100 * time.Millisecond, 1300 * time.Millisecond, 1500 * time.Millisecond}
		if diff := cmp.Diff(want, arrivals); diff != "" {
			t.Errorf("arrivals at the client:\n%s", diff)
		}
		c.Close()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // the library's pool ends
	})
}

// TestSlowClientWriteDeadline holds that a client that takes nothing is given up, and that a slow one is not.
func TestSlowClientWriteDeadline(t *testing.T) {
	inBubble(t, UpstreamOptions{}, sse(3), func(t *testing.T, s *Session, u *Upstream) {
		sink := newCollector()
		s.opts.Sink = sink
		srv, _ := NewServer(ServerOptions{Session: s, Upstream: u, WriteTimeout: time.Second})
		front := newMemory()
		go func() { _ = srv.Serve(front) }()
		conn, _ := front.Dial(t.Context())
		c := &raw{conn, bufio.NewReader(conn), t}
		c.post("{}")
		c.head()
		x := <-sink.got // nothing is read any more
		if x.End != exchange.EndTimeout || x.Cause.Code != "write_timeout" || x.Cause.Side != exchange.SideClient {
			t.Errorf("ended as %s %+v", x.End, x.Cause)
		}
		c.Close()
		_ = srv.Close()
		time.Sleep(time.Minute)
	})
}

// hoarder is a filter that gives everything out at the end.
type hoarder struct{ all []byte }

func (h *hoarder) Feed(b []byte) []byte           { h.all = append(h.all, b...); return nil }
func (h *hoarder) End(bool) []byte                { return h.all }
func (h *hoarder) Notes() []exchange.Intervention { return nil }

// TestClientStallsAtTheEnd holds that a client that takes nothing in the middle of the last write gets no more when it
// reads again: what was lost would be made up by bytes that are not of the body.
func TestClientStallsAtTheEnd(t *testing.T) {
	filtered := func(*Call, exchange.Identity) Rewrite {
		return Rewrite{Body: []byte("{}"), Answer: func() Filter { return &hoarder{} }}
	}
	for _, tc := range []struct {
		head, body string
		rewrite    func(*Call, exchange.Identity) Rewrite
	}{
		{chunkedHead, "b\r\nhello world\r\n0\r\n\r\n", nil},
		{chunkedHead, "b\r\nhello world\r\n0\r\n\r\n", filtered},
		{"X-A: ends by close", "hello world", filtered},
	} {
		script := func(p *peer, a asked) bool {
			p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n\r\n", tc.head)
			time.Sleep(time.Millisecond)
			p.send("%s", tc.body)
			return tc.head == chunkedHead
		}
		inBubble(t, UpstreamOptions{}, script, func(t *testing.T, s *Session, u *Upstream) {
			srv, _ := NewServer(ServerOptions{Session: s, Upstream: u, WriteTimeout: time.Second, Rewrite: tc.rewrite})
			front := newMemory()
			go func() { _ = srv.Serve(front) }()
			conn, _ := front.Dial(t.Context())
			c := &raw{conn, bufio.NewReader(conn), t}
			c.post("{}")
			c.head()
			var got [5]byte
			_, _ = io.ReadFull(conn, got[:])
			time.Sleep(2 * time.Second)
			_ = conn.SetReadDeadline(clock.Now().Add(time.Minute))
			rest, err := io.ReadAll(conn)
			if string(got[:]) != "b\r\nhe" || len(rest) > 0 || err != nil {
				t.Errorf("client got %q, then %q, %v; want the connection's end after the first part", got, rest, err)
			}
			c.Close()
			_ = srv.Close()
			time.Sleep(time.Minute)
		})
	}
}
