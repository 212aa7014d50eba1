package sim

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inMemory runs f with a bare server of h and a connection to it on which raw was sent, in a bubble.
func inMemory(t *testing.T, h Handler, raw string, f func(t *testing.T, s *Server, conn net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, ln := New(Config{Handler: h, Bare: true}), NewPipeListener()
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ln) }()
		conn, err := ln.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, raw); err != nil {
			t.Fatal(err)
		}
		f(t, s, conn)
		_ = s.Close() // it returns nil
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestCloseIsNoEndOfAnAnswer holds that a server which is closed in the middle of an answer resets the connection where its
// end alone would make the answer whole, and only there.
func TestCloseIsNoEndOfAnAnswer(t *testing.T) {
	never := func(_ context.Context, w io.Writer) Ending {
		_, _ = io.WriteString(w, "HTTP/1.0 200 OK\r\n\r\npart")
		return EndClose
	}
	for name, tc := range map[string]struct {
		script Script
		reset  bool
	}{
		"to the end of the connection": {Script{Framing: FramingClose}, true},
		"raw":                          {Script{Framing: FramingRaw}, true},
		"chunked":                      {Script{Framing: FramingChunked}, false},
		"of stated length":             {Script{Framing: FramingLength}, false},
		"relayed": {Script{Relay: func(ctx context.Context, w io.Writer) Ending {
			end := never(ctx, w)
			<-ctx.Done()
			return end
		}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.script.Steps = []Step{{Data: []byte("HTTP/1.0 200 OK\r\n\r\npart")}, {At: time.Hour, Data: []byte("rest")}}
			inMemory(t, Always(&tc.script), "GET / HTTP/1.1\r\n\r\n", func(t *testing.T, s *Server, conn net.Conn) {
				var got []byte
				buf := make([]byte, 4096)
				for !strings.Contains(string(got), "part") {
					n, err := conn.Read(buf)
					if err != nil {
						t.Fatalf("%q: %v", got, err)
					}
					got = append(got, buf[:n]...)
				}
				_ = s.Close() // it returns nil
				rest, err := io.ReadAll(conn)
				if isReset(err) != tc.reset || strings.Contains(string(rest), "rest") {
					t.Errorf("then %q, %v", rest, err)
				}
			})
		})
	}
}

// TestRelayEnds holds that the connection ends as a relay says.
func TestRelayEnds(t *testing.T) {
	for _, end := range []Ending{EndClose, EndReset} {
		h := Always(&Script{Relay: func(_ context.Context, w io.Writer) Ending {
			_, _ = io.WriteString(w, "HTTP/1.0 200 OK\r\n\r\npart")
			return end
		}})
		inMemory(t, h, "GET / HTTP/1.0\r\n\r\n", func(t *testing.T, _ *Server, conn net.Conn) {
			got, err := io.ReadAll(conn)
			if isReset(err) != (end == EndReset) || !strings.HasSuffix(string(got), "part") {
				t.Errorf("%s: %q, %v", end, got, err)
			}
		})
	}
}

// TestPipeResets holds that closing one side of a connection in memory is a reset for the other only when that was asked for
// last.
func TestPipeResets(t *testing.T) {
	for _, linger := range [][]int{{}, {0}, {0, -1}} {
		a, b := newPipe()
		for _, sec := range linger {
			_ = a.(*pipeConn).SetLinger(sec) // it returns nil
		}
		_ = a.Close()
		_, err := b.Read(make([]byte, 1))
		if want := len(linger) == 1; isReset(err) != want || !want && err != io.EOF {
			t.Errorf("%v: %v", linger, err)
		}
		_ = b.Close()
	}
}
