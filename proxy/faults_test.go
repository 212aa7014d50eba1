package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// errorObject reads the error object of our own answers.
func errorObject(t *testing.T, body string) (message, code string) {
	t.Helper()
	var v struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.Error.Message == "" || v.Error.Type == "" {
		t.Fatalf("not an error object: %q: %v", body, err)
	}
	return v.Error.Message, v.Error.Code
}

func TestEngineDown(t *testing.T) {
	ln := listen(t, "tcp")
	addr := ln.Addr().String()
	ln.Close()
	r := newRig(t, "http://"+addr)
	c := r.dial()
	for range 2 { // the client's connection stays usable
		msg, code := errorObject(t, c.post("{}").ok(502))
		if code != "engine_unreachable" || !strings.Contains(msg, `"eng"`) || !strings.Contains(msg, addr) || !strings.Contains(msg, "refused") {
			t.Errorf("error %q %q does not name engine and cause", code, msg)
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		if x.End != exchange.EndConnectFailed || x.Cause.Side != exchange.SideEngine || x.Response.Status != 0 || string(x.Request.Body.Bytes()) != "{}" {
			t.Errorf("recorded as %s %+v status %d", x.End, x.Cause, x.Response.Status)
		}
	}
}

// TestPostIsSentOnce holds that no POST is sent twice, whatever state the engine's connections are in.
func TestPostIsSentOnce(t *testing.T) {
	t.Run("stale", func(t *testing.T) {
		gone := make(chan struct{}, 100)
		e := newEngine(t, func(p *peer, a asked) bool {
			jsonAnswer("{}")(p, a)
			p.Close() // says keep-alive and closes all the same
			gone <- struct{}{}
			return false
		})
		r := newRig(t, e.url())
		c := r.dial()
		for range 20 {
			c.post("{}").ok(200)
			<-gone
			if x := r.sink.next(t); x.Timeline.Reused {
				t.Error("a dead connection was used again")
			}
		}
		if n := e.served.Load(); n != 20 {
			t.Errorf("engine saw %d requests, want 20", n)
		}
	})
	t.Run("crash", func(t *testing.T) {
		for _, rst := range []bool{false, true} {
			e := newEngine(t, func(p *peer, a asked) bool {
				if rst {
					p.reset()
				}
				return false
			})
			r := newRig(t, e.url())
			c := r.dial()
			for range 10 {
				errorObject(t, c.post("{}").ok(502))
				x := r.sink.next(t)
				if want := map[bool]exchange.End{false: exchange.EndShort, true: exchange.EndReset}[rst]; x.End != want {
					t.Errorf("reset=%v ended as %s %+v", rst, x.End, x.Cause)
				}
			}
			if n := e.served.Load(); n != 10 {
				t.Errorf("engine saw %d requests, want 10", n)
			}
		}
	})
	t.Run("dies on reuse", func(t *testing.T) {
		e := newEngine(t, func(p *peer, a asked) bool {
			if p.n > 1 {
				return false // the request arrived, then the engine closed
			}
			return jsonAnswer("{}")(p, a)
		})
		r := newRig(t, e.url())
		c := r.dial()
		c.post("{}").ok(200)
		c.post("{}").ok(502)
		if n := e.served.Load(); n != 2 {
			t.Errorf("engine saw %d requests, want 2", n)
		}
	})
}

// TestEarlyEndIsVisible holds that a body that ends early never looks whole, and that nothing is appended to it.
func TestEarlyEndIsVisible(t *testing.T) {
	cases := []struct {
		name, head, body string
		reset            bool
		end              exchange.End
		code             string
	}{
		{"chunked", "Transfer-Encoding: chunked", "5\r\nhello\r\n", false, exchange.EndShort, "eof"},
		{"inside a chunk", "Transfer-Encoding: chunked", "9\r\nhello", false, exchange.EndShort, "eof"},
		{"length", "Content-Length: 9", "hello", false, exchange.EndShort, "eof"},
		{"reset", "Transfer-Encoding: chunked", "5\r\nhello\r\n", true, exchange.EndReset, "reset"},
		{"reset of a body without end", "X-A: 1", "hello", true, exchange.EndReset, "reset"},
		{"garbage", "Transfer-Encoding: chunked", "5\r\nhello\r\nnot a size\r\n", false, exchange.EndShort, "malformed"},
	}
	for _, tc := range cases {
		for _, client := range []struct {
			proto string
			tls   bool
		}{{"1.1", false}, {"1.0", false}, {"1.1", true}, {"1.0", true}} {
			t.Run(fmt.Sprintf("%s HTTP/%s TLS %v", tc.name, client.proto, client.tls), func(t *testing.T) {
				seen := make(chan struct{})
				e := newEngine(t, func(p *peer, a asked) bool {
					p.send("HTTP/1.1 200 OK\r\n%s\r\n\r\n%s", tc.head, tc.body)
					<-seen // a reset overtakes bytes that were not read
					if tc.reset {
						p.reset()
					}
					return false
				})
				r := newRig(t, e.url(), func(o *rigOptions) { o.tls = client.tls })
				c := r.dial().send("POST / HTTP/%s\r\nHost: me\r\nContent-Length: 2\r\n\r\n{}", client.proto)
				head := c.head()
				got := make([]byte, len("hello"))
				if strings.Contains(head, "chunked") {
					_, _ = c.br.ReadString('\n')
				}
				_, err := io.ReadFull(c.br, got)
				close(seen)
				rest, restErr := io.ReadAll(c.br)
				if err != nil || string(got) != "hello" {
					t.Errorf("client got %q, %v", got, err)
				}
				if s := strings.TrimSuffix(string(rest), "\r\n"); s != "" && s != "\r\n" {
					t.Errorf("bytes were appended: %q", rest)
				}
				framed := strings.Contains(head, "Content-Length") || strings.Contains(head, "chunked")
				if !framed && restErr == nil {
					t.Error("the early end looks like a clean one")
				}
				x := r.sink.next(t)
				checkRecord(t, x)
				if x.End != tc.end || x.Cause.Code != tc.code || string(x.Response.Body.Bytes()) != "hello" {
					t.Errorf("recorded as %s %+v, body %q", x.End, x.Cause, x.Response.Body.Bytes())
				}
			})
		}
	}
}

func TestMalformedHeads(t *testing.T) {
	for _, head := range []string{
		"garbage\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 101 Go\r\n\r\n",
		"HTTP/1.1 200 OK\r\n folded first\r\n\r\n", "HTTP/1.1 200 OK\r\nX A: 1\r\n\r\n", "HTTP/1.1 200 OK\r\nX-A: \x00\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHead+fullBuffer),
		strings.Repeat("HTTP/1.1 102 Wait\r\n\r\n", 200),
	} {
		e := newEngine(t, func(p *peer, a asked) bool { p.send("%s", head); return false })
		r := newRig(t, e.url())
		body := r.dial().post("{}").ok(502)
		errorObject(t, body)
		x := r.sink.next(t)
		checkRecord(t, x)
		if x.End != exchange.EndShort || x.Cause.Code != "malformed" {
			t.Errorf("head %.60q ended as %s %+v", head, x.End, x.Cause)
		}
	}
}

// TestRefusals holds the answers to requests that never reach the engine.
func TestRefusals(t *testing.T) {
	e := newEngine(t, jsonAnswer("{}"))
	r := newRig(t, e.url(), func(o *rigOptions) {
		o.server.MaxRequest, o.server.MaxHead, o.server.ReadTimeout = 1000, 2048, 300*time.Millisecond
	})
	cases := []struct {
		name, sent string
		status     int
		code       string
	}{
		{"body too large", "POST / HTTP/1.1\r\nHost: me\r\nContent-Length: 200000\r\n\r\n" + strings.Repeat("x", 200000), 413, "request_too_large"},
		{"chunked body too large", "POST / HTTP/1.1\r\nHost: me\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("64\r\n"+strings.Repeat("x", 100)+"\r\n", 20) + "0\r\n\r\n", 413, "request_too_large"},
		{"announced too large", "POST / HTTP/1.1\r\nHost: me\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n", 413, "request_too_large"},
		{"head too large", "GET / HTTP/1.1\r\nHost: me\r\nX: " + strings.Repeat("x", 3000) + "\r\n\r\n", 431, "head_too_large"},
		{"two hosts", "GET / HTTP/1.1\r\nHost: me\r\nHost: you\r\n\r\n", 400, "malformed_request"},
		{"two lengths", "POST / HTTP/1.1\r\nHost: me\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400, "malformed_request"},
		{"blank before colon", "GET / HTTP/1.1\r\nHost: me\r\nX-A : 1\r\n\r\n", 400, "malformed_request"},
		{"name with a blank", "GET / HTTP/1.1\r\nHost: me\r\nX A: 1\r\n\r\n", 400, "malformed_request"},
		{"not HTTP", "hello\r\n\r\n", 400, "malformed_request"},
		{"connect", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 400, "malformed_request"},
		{"too slow", "POST / HTTP/1.1\r\nHost: me\r\nContent-Length: 9\r\n\r\nx", 408, "request_timeout"},
		{"bare line feed head", "GET / HTTP/1.1\nHost: me", 408, "request_timeout"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			c := r.dial()
			sent := make(chan struct{})
			go func() { defer close(sent); _, _ = io.WriteString(c, tc.sent) }()
			body := c.ok(tc.status)
			if _, code := errorObject(t, body); code != tc.code {
				t.Errorf("code %q, want %q", code, tc.code)
			}
			c.Close()
			<-sent
		})
	}
	if n := e.served.Load(); n != 0 {
		t.Errorf("%d of them reached the engine", n)
	}
	st := r.session.Stats()
	if st.Accepted != 0 || st.RefusedTooLarge != 3 || st.RefusedSlow != 2 || st.RefusedMalformed != 7 {
		t.Errorf("counters %+v", st)
	}
}

func TestAPIKey(t *testing.T) {
	e := newEngine(t, jsonAnswer("{}"))
	r := newRig(t, e.url(), func(o *rigOptions) {
		o.server.Key = "sk-secret-client"
		o.up.Credentials = func() []exchange.Header {
			return []exchange.Header{{Name: "Authorization", Value: "Bearer sk-secret-engine"}}
		}
	})
	for _, h := range []string{"X-A: 1", "Authorization: Bearer nope", "Authorization: Basic sk-secret-client", "x-api-key: sk-secret-clien", "Authorization: Bearer "} {
		errorObject(t, r.dial().post("{}", h).ok(401))
	}
	if e.served.Load() != 0 || r.session.Stats().RefusedKey != 5 {
		t.Errorf("engine saw %d requests, %d were refused", e.served.Load(), r.session.Stats().RefusedKey)
	}
	for _, h := range []string{
		"authorization: bearer sk-secret-client", "X-Api-Key: sk-secret-client",
		"X-Api-Key: sk-secret-client\r\nAuthorization: Bearer sk-secret-client",
	} {
		r.dial().post("{}", h).ok(200)
		head := e.last(t).Head
		if strings.Contains(head, "sk-secret-client") || strings.Count(head, "Authorization: Bearer sk-secret-engine\r\n") != 1 {
			t.Errorf("engine got %q", head)
		}
		x := r.sink.next(t)
		checkRecord(t, x)
		if s := fmt.Sprintf("%+v %s", *x, x.Request.Head); strings.Contains(s, "sk-secret") {
			t.Errorf("the record holds a credential: %s", s)
		}
	}
}

func TestCredentialsPassThroughWithoutAKey(t *testing.T) {
	e := newEngine(t, jsonAnswer("{}"))
	r := newRig(t, e.url())
	r.dial().post("{}", "Authorization: Bearer sk-secret-own").ok(200)
	if !strings.Contains(e.last(t).Head, "Authorization: Bearer sk-secret-own\r\n") {
		t.Errorf("engine got %q", e.last(t).Head)
	}
	checkRecord(t, r.sink.next(t))
}

func TestCheckBind(t *testing.T) {
	for _, tc := range []struct {
		addr, key string
		insecure  bool
		ok        bool
	}{
		{"127.0.0.1:1", "", false, true}, {"[::1]:1", "", false, true}, {"localhost:1", "", false, true}, {"127.9.9.9:1", "", false, true},
		{":1", "", false, false}, {"0.0.0.0:1", "", false, false}, {"192.168.1.1:1", "", false, false}, {"host:1", "", false, false},
		{"0.0.0.0:1", "k", false, true}, {"0.0.0.0:1", "", true, true}, {"nonsense", "k", true, false},
	} {
		err := CheckBind(tc.addr, tc.key, tc.insecure)
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("CheckBind(%q, %q, %v) = %v", tc.addr, tc.key, tc.insecure, err)
		}
	}
}

// TestPanics holds that a panic costs one request, not the process: in the handler, and in a sink.
func TestPanics(t *testing.T) {
	e := newEngine(t, sse(2))
	r := newRig(t, e.url(), func(o *rigOptions) {
		o.server.Measured = func(path string) bool {
			if path == "/boom" {
				panic("boom")
			}
			return true
		}
	})
	c := r.dial()
	c.send("GET /boom HTTP/1.1\r\nHost: me\r\n\r\n")
	errorObject(t, c.ok(500))
	x := r.sink.next(t)
	if x.Cause == nil || x.Cause.Side != exchange.SideProxy || x.Cause.Code != "panic" {
		t.Errorf("recorded as %s %+v", x.End, x.Cause)
	}
	c.post("{}").ok(200)
	r.sink.next(t)
}

type brokenSink struct{ panics bool }

func (b brokenSink) Offer(*exchange.Exchange) bool {
	if b.panics {
		panic("sink")
	}
	return false
}

func TestSinkTroubleIsCountedOnly(t *testing.T) {
	for _, panics := range []bool{false, true} {
		e := newEngine(t, sse(2))
		r := newRig(t, e.url(), func(o *rigOptions) { o.session.Sink = brokenSink{panics} })
		c := r.dial()
		for range 3 {
			c.post("{}").ok(200)
		}
		eventually(t, "three drops", func() bool { return r.session.Stats().Dropped == 3 })
	}
}

// TestUpstreamURLs holds what is accepted, and that errors repeat no password.
func TestUpstreamURLs(t *testing.T) {
	for _, s := range []string{"", "host:1", "ftp://a", "http://", "http://a?x=1", "http://a#f", "unix:", "http://u:sk-secret@a/", "http://%zz"} {
		u, err := NewUpstream(UpstreamOptions{URL: s})
		if err == nil || !errors.Is(err, exchange.ErrUsage) || strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("NewUpstream(%q) = %v, %v", s, u, err)
		}
	}
	for s, want := range map[string]string{"http://a": "a:80", "https://a/v1/": "a:443", "http://[::1]:9": "[::1]:9", "unix:///tmp/s": "/tmp/s", "unix:/tmp/s": "/tmp/s"} {
		u, err := NewUpstream(UpstreamOptions{URL: s})
		if err != nil || u.address != want {
			t.Errorf("NewUpstream(%q): %v", s, err)
		}
	}
}

func TestEarlyAnswerToAnUnreadRequest(t *testing.T) {
	ln := listen(t, "tcp")
	defer ln.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.ReadFull(c, make([]byte, 100)) // never reads the rest
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
	}()
	r := newRig(t, "http://"+ln.Addr().String())
	c := r.dial()
	go c.post(strings.Repeat("x", 8<<20))
	resp, body, err := c.answer("POST")
	if resp.StatusCode != 413 && resp.StatusCode != 502 {
		t.Errorf("client got %d %q %v", resp.StatusCode, body, err)
	}
	x := r.sink.next(t)
	checkRecord(t, x)
	<-done
}
