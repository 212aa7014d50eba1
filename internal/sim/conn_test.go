package sim

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKeepAliveForms(t *testing.T) {
	s, addr := start(t, Config{})
	for _, c := range []struct {
		name, raw string
		open      bool   // a second request works
		says      string // part of the head, "" = nothing about it
	}{
		{"kept", chat(), true, ""},
		{"client asks", chat("Connection: close"), false, "Connection: close"},
		{"server says", chat("X-Sim: keepalive=close"), false, "Connection: close"},
		{"server lies", chat("X-Sim: keepalive=lie"), false, "Keep-Alive: timeout=5, max=100"},
		{"close-delimited", chat("X-Sim: framing=close"), false, "Connection: close"},
		{"HTTP/1.0 answer", chat("X-Sim: proto=HTTP/1.0"), false, "HTTP/1.0 200 OK"},
		{"HTTP/1.0 request", strings.Replace(chat(), "HTTP/1.1", "HTTP/1.0", 1), false, "Connection: close"},
		{"HTTP/1.0 kept", strings.Replace(chat("Connection: keep-alive"), "HTTP/1.1", "HTTP/1.0", 1), true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := c.raw
			if c.open { // the second one ends the connection
				raw += chat("Connection: close")
			}
			got, err := roundTrip(t, addr, raw)
			if err != nil {
				t.Fatal(err)
			}
			want := 1
			if c.open {
				want = 2
			}
			if n := strings.Count(got, "HTTP/1."); n != want || !strings.Contains(got, c.says) {
				t.Errorf("%d answers: %q", n, got)
			}
			if n := strings.Count(got, "[DONE]"); n != want {
				t.Errorf("%d bodies", n)
			}
		})
	}
	truth := s.Truth()
	if n := truth.Connections[0].Requests; n != 2 {
		t.Errorf("%d requests on the first connection", n)
	}
}

func TestPipelinedAndChunkedRequests(t *testing.T) {
	s, addr := start(t, Config{})
	half := len(chatBody) / 2
	chunked := "POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
		string(chunk([]byte(chatBody[:half]))) + string(chunk([]byte(chatBody[half:]))) + "0\r\nX-T: 1\r\n\r\n"
	got, err := roundTrip(t, addr, "\r\n"+chunked+chunked+chat("Connection: close"))
	if err != nil || strings.Count(got, "[DONE]") != 3 {
		t.Fatalf("%q %v", got, err)
	}
	for i, r := range await(t, s, Ended(3)).Requests {
		if string(r.Body) != chatBody || r.Nth != i+1 || r.Conn != 1 {
			t.Errorf("request %d: %+v", i, r)
		}
	}
}

func TestExpectContinue(t *testing.T) {
	_, addr := start(t, Config{})
	c := dial(t, addr)
	head, body, _ := strings.Cut(chat("Expect: 100-continue"), "\r\n\r\n")
	if _, err := io.WriteString(c, head+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(c)
	line, err := br.ReadString('\n')
	if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := br.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if resp, _ := answerOf(t, c, br, body); resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestMalformedRequests(t *testing.T) {
	s, addr := start(t, Config{MaxBody: 100})
	for name, raw := range map[string]string{
		"request line":   "GET /\r\n\r\n",
		"protocol":       "GET / HTTP/2.0\r\n\r\n",
		"header":         "GET / HTTP/1.1\r\nno colon\r\n\r\n",
		"length":         "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
		"coding":         "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
		"chunk size":     "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"chunk end":      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
		"large body":     "POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n",
		"large chunk":    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n",
		"both framings":  "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two codings":    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
		"chunked twice":  "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":    "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"signed length":  "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na",
		"listed length":  "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na",
		"spaced name":    "POST / HTTP/1.1\r\nContent-Length : 1\r\n\r\na",
		"folded header":  "POST / HTTP/1.1\r\nX: 1\r\n Content-Length: 1\r\n\r\na",
		"bare CR":        "GET / HTTP/1.1\r\nX: 1\rContent-Length: 1\r\n\r\n",
		"NUL":            "GET / HTTP/1.1\r\nX: 1\x00\r\n\r\n",
		"CR in target":   "GET /\r HTTP/1.1\r\n\r\n",
		"endless header": "GET / HTTP/1.1\r\nX: " + strings.Repeat("a", maxHead) + "\r\n\r\n",
	} {
		got, err := roundTrip(t, addr, raw)
		if !strings.HasPrefix(got, "HTTP/1.1 400 ") || err != nil {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	truth := await(t, s, func(t Truth) bool {
		for _, c := range t.Connections {
			if c.Closed == 0 {
				return false
			}
		}
		return true
	})
	for _, c := range truth.Connections {
		if c.Err == "" || c.By != "server" || c.Requests != 0 {
			t.Errorf("%+v", c)
		}
	}
}

func TestRequestCutShort(t *testing.T) {
	s, addr := start(t, Config{})
	for _, raw := range []string{"", "GET", "GET / HTTP/1.1\r\nA: b\r\n", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"} {
		c := dial(t, addr)
		if _, err := io.WriteString(c, raw); err != nil {
			t.Fatal(err)
		}
		c.Close()
		truth := await(t, s, func(t Truth) bool { n := len(t.Connections); return n == 1 && t.Connections[0].Closed != 0 })
		got := truth.Connections[0]
		if got.By != "client" || (got.Err == "") != (raw == "") || truth.Total != 0 {
			t.Errorf("%q: %+v", raw, got)
		}
		s.Reset()
	}
}

// TestClientGone holds that the end of a client is seen at once, in every phase and in every way to leave.
func TestClientGone(t *testing.T) {
	for phase, options := range map[string]string{"prefill": "ttft=1h", "stream": "decode=0.0001", "plain": "ttft=1h"} {
		for how, leave := range map[string]func(*net.TCPConn) error{
			"FIN":        func(c *net.TCPConn) error { return c.Close() },
			"RST":        func(c *net.TCPConn) error { return errors.Join(c.SetLinger(0), c.Close()) },
			"half-close": func(c *net.TCPConn) error { return c.CloseWrite() },
		} {
			t.Run(phase+"/"+how, func(t *testing.T) {
				s, addr := start(t, Config{Slots: 1})
				c := dial(t, addr).(*net.TCPConn)
				raw := chat("X-Sim: " + options)
				if phase == "plain" {
					raw = strings.Replace(raw, `"stream":true`, `"stream":null`, 1)
				}
				if _, err := io.WriteString(c, raw+"GET /health HTTP/1.1\r\n"); err != nil { // half a next request waits behind
					t.Fatal(err)
				}
				await(t, s, func(t Truth) bool {
					return len(t.Requests) == 1 && t.Requests[0].Slot > 0 && (phase != "stream" || len(t.Requests[0].Writes) == 3)
				})
				if err := leave(c); err != nil {
					t.Fatal(err)
				}
				if r := only(t, s); r.Ended != EndedGone || r.Gone == 0 || r.End < r.Gone {
					t.Errorf("%+v", r)
				}
				// The slot is free again.
				if resp, _ := fetch(t, addr, chat()); resp.StatusCode != 200 {
					t.Errorf("next request: %d", resp.StatusCode)
				}
			})
		}
	}
}

func TestGoneWhileWaitingForSlot(t *testing.T) {
	s, addr := start(t, Config{Slots: 1})
	holder := dial(t, addr)
	if _, err := io.WriteString(holder, chat("X-Sim: ttft=1h")); err != nil {
		t.Fatal(err)
	}
	await(t, s, func(t Truth) bool { return len(t.Requests) == 1 && t.Requests[0].Slot > 0 })
	waiter := dial(t, addr)
	if _, err := io.WriteString(waiter, chat()); err != nil {
		t.Fatal(err)
	}
	await(t, s, func(t Truth) bool { return t.Total == 2 })
	waiter.Close()
	truth := await(t, s, Ended(1))
	if r := truth.Requests[1]; r.Ended != EndedGone || r.Slot != 0 || len(r.Writes) != 0 {
		t.Errorf("%+v", r)
	}
	shut(t, s) // cuts off the holder
	if r := s.Records()[0]; r.Ended != EndedClose {
		t.Errorf("%+v", r)
	}
}

func TestDeafEngineGoesOn(t *testing.T) {
	s, addr := start(t, Config{})
	c := dial(t, addr)
	if _, err := io.WriteString(c, chat("X-Sim: deaf=1; ttft=50ms; decode=1000")); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil || !strings.Contains(string(b), "[DONE]") {
		t.Errorf("%q %v", b, err)
	}
	if r := only(t, s); r.Gone == 0 || r.Ended != EndedSent {
		t.Errorf("%+v", r)
	}
}

func TestOverTLSAndUnix(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serverTLS, clientTLS := certificate(t)
	unix, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s := serveOn(t, Config{}, tls.NewListener(tcp, serverTLS))
	served := make(chan error, 1)
	go func() { served <- s.Serve(unix) }()
	dials := map[string]func() (net.Conn, error){
		"tls":  func() (net.Conn, error) { return tls.Dial("tcp", tcp.Addr().String(), clientTLS) },
		"unix": func() (net.Conn, error) { return net.Dial("unix", unix.Addr().String()) },
	}
	for name, dial := range dials {
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		br := bufio.NewReader(c)
		answerOf(t, c, br, chat()) // the second request shows that reading ahead left the connection whole
		if _, body := answerOf(t, c, br, chat()); !strings.Contains(body, "[DONE]") {
			t.Errorf("%s: %q", name, body)
		}
		if _, err := io.WriteString(c, chat("X-Sim: fault=no_last_chunk@1")); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(br)
		if err != nil || !strings.Contains(string(b), "assistant") || strings.HasSuffix(string(b), "0\r\n\r\n") {
			t.Errorf("%s: cut stream %q %v", name, b, err)
		}
		c.Close()
	}
	shut(t, s)
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// certificate is a self-signed pair for 127.0.0.1.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<33, 0), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: pool}
}

func TestRunEndsWithContext(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := New(Config{})
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, ln) }()
	fetch(t, ln.Addr().String(), chat())
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	expired, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Await(expired, Ended(99)); err != context.Canceled {
		t.Errorf("Await: %v", err)
	}
}

func TestServeTellsWhyAcceptFailed(t *testing.T) {
	ln := NewPipeListener()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	s := New(Config{})
	if err := s.Serve(ln); err == nil || !strings.Contains(err.Error(), "accept connection pipe") {
		t.Errorf("Serve: %v", err)
	}
	if _, err := ln.Dial(t.Context()); err != net.ErrClosed {
		t.Errorf("Dial: %v", err)
	}
	open := NewPipeListener()
	expired, stop := context.WithCancel(t.Context())
	stop()
	if _, err := open.Dial(expired); err != context.Canceled {
		t.Errorf("Dial with an ended context: %v", err)
	}
}
