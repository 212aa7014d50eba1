package sim

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// bare runs f with a bare server of h, and a connection to it, in a bubble.
func bare(t *testing.T, h Handler, f func(t *testing.T, ask func(raw string) string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, ln := New(Config{Handler: h, Bare: true}), NewPipeListener()
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ln) }()
		f(t, func(raw string) string {
			conn, err := ln.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, raw); err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(conn)
			if err != nil {
				t.Error(err)
			}
			return string(b)
		})
		_ = s.Close() // it returns nil
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestBareLeavesAllToTheHandler holds that neither X-Sim nor a reserved path means anything to a bare server, and that it has
// no engine.
func TestBareLeavesAllToTheHandler(t *testing.T) {
	h := func(r Request) *Script {
		if r.Path() == "/v1/chat/completions" {
			return nil
		}
		return BodyScript(200, "text/plain", FramingLength, []byte("of "+r.Path()), 0)
	}
	bare(t, h, func(t *testing.T, ask func(string) string) {
		if got := ask("GET /sim/records HTTP/1.1\r\nX-Sim: status=500\r\nConnection: close\r\n\r\n"); !strings.HasSuffix(got, "of /sim/records") {
			t.Errorf("got %q", got)
		}
		if got := ask("POST /v1/chat/completions HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 404") {
			t.Errorf("got %q", got)
		}
	})
}

// TestFromReadCountsFromTheRequest holds that what making a script takes is no delay of its later writes, and that Done is
// told of them.
func TestFromReadCountsFromTheRequest(t *testing.T) {
	told := make(chan Record, 1)
	h := func(Request) *Script {
		time.Sleep(3 * time.Millisecond) // as long as it takes to read a record
		return &Script{FromRead: true, JoinEnd: true, Steps: []Step{{Data: []byte("a")}, {At: 10 * time.Millisecond, Data: []byte("b")}},
			Done: func(r Record) { told <- r }}
	}
	bare(t, h, func(t *testing.T, ask func(string) string) {
		start := clock.Now()
		got := ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
		if d := clock.Since(start); d != 10*time.Millisecond || !strings.HasSuffix(got, "1\r\nb\r\n0\r\n\r\n") {
			t.Errorf("%q after %v", got, d)
		}
		r := <-told
		var late []time.Duration
		for _, w := range r.Writes {
			late = append(late, time.Duration(w.At-w.Plan))
		}
		if len(late) != 3 || late[0] != 3*time.Millisecond || late[2] != 0 || r.Ended != EndedSent {
			t.Errorf("late by %v, ended %s", late, r.Ended)
		}
	})
}

// TestJoinEndLeavesTheHeadAlone holds that the end of a body without steps does not write into a head that scripts share.
func TestJoinEndLeavesTheHeadAlone(t *testing.T) {
	head := append(make([]byte, 0, 200), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"...)
	s := &Script{RawHead: head, JoinEnd: true, Steps: []Step{{}}}
	for range 2 {
		if got := string(s.Bytes(Request{Method: "GET", Proto: "HTTP/1.1"})); got != string(head)+"0\r\n\r\n" {
			t.Errorf("got %q", got)
		}
	}
	if rest := head[len(head):cap(head)]; !bytes.Equal(rest, make([]byte, len(rest))) {
		t.Errorf("behind the head stands %q", rest)
	}
}

// TestRelay holds that what a relay writes is what the client gets, and that its context ends when the client leaves.
func TestRelay(t *testing.T) {
	h := func(Request) *Script {
		return &Script{Relay: func(_ context.Context, w io.Writer) Ending {
			_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\nfirst ") // read at once
			_, _ = io.WriteString(w, "second")
			return EndClose
		}}
	}
	bare(t, h, func(t *testing.T, ask func(string) string) {
		if got := ask("GET / HTTP/1.1\r\n\r\n"); got != "HTTP/1.1 200 OK\r\n\r\nfirst second" {
			t.Errorf("got %q", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		left := make(chan error, 1)
		s, ln := New(Config{Bare: true, Handler: func(Request) *Script {
			return &Script{Relay: func(ctx context.Context, w io.Writer) Ending {
				<-ctx.Done()
				_, err := w.Write([]byte("too late"))
				left <- err
				return EndClose
			}}
		}}), NewPipeListener()
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ln) }()
		conn, err := ln.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		if err := <-left; err == nil {
			t.Error("a client that left took a write")
		}
		_ = s.Close() // it returns nil
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if r := s.Records(); len(r) != 1 || r[0].Ended != EndedGone {
			t.Errorf("%+v", r)
		}
	})
}

// TestErrorScript holds the form of errors by the end of a path.
func TestErrorScript(t *testing.T) {
	for target, want := range map[string]string{
		"/v1/chat/completions": `{"error":{"code":404`, "/gate/v1/messages": `{"type":"error"`, "/api/chat": `{"error":"`, "/api/show": `{"error":"`,
		"/v1beta/models/m:generateContent": `{"error":{"code":404,`, "*": `{"error":{"code":404`, "": `{"error":{"code":404`, "http://h/v1/messages?x=1": `{"type":"error"`,
	} {
		s := ErrorScript(Request{Method: "POST", Target: target}, 404, "not_found_error", "no")
		if body := string(s.Steps[0].Data); s.Status != 404 || !strings.HasPrefix(body, want) {
			t.Errorf("%q: %d %s", target, s.Status, body)
		}
		if v, _ := exchange.HeaderValue(s.Headers, "Content-Type"); v != mimeJSON {
			t.Errorf("%q: %s", target, v)
		}
	}
}
