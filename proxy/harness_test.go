package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestMain(m *testing.M) {
	// The HTTP library's pool notices up to ten seconds late that its server has stopped.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// patience bounds every wait of the tests: reached only when something is broken.
const patience = 20 * time.Second

// peer is one connection of a scripted engine.
type peer struct {
	net.Conn
	br     *bufio.Reader
	engine *engine
	n      int // requests on this connection so far
}

func (p *peer) send(format string, args ...any) { fmt.Fprintf(p.Conn, format, args...) }

// chunk sends s as one chunk.
func (p *peer) chunk(s string) { p.send("%x\r\n%s\r\n", len(s), s) }

// reset makes the next close a reset.
func (p *peer) reset() {
	if t, ok := p.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// waitClosed blocks until the proxy closes the connection and says when that was seen.
func (p *peer) waitClosed() {
	_, _ = io.Copy(io.Discard, p.br)
	p.engine.closed <- clock.Now()
}

// asked is one request as the engine saw it.
type asked struct {
	Head string
	Body string
}

// engine is a scripted server: HTTP/1.1 written by hand, so that it can do everything wrong.
type engine struct {
	net.Listener
	script func(p *peer, a asked) (keep bool)
	closed chan time.Time // waitClosed
	step   chan struct{}  // for scripts that wait for the client

	open   atomic.Int64 // connections
	served atomic.Int64 // requests that were read whole

	mu    sync.Mutex
	asks  []asked
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

func newEngine(t testing.TB, script func(p *peer, a asked) bool) *engine {
	t.Helper()
	return newEngineOn(t, listen(t, "tcp"), script)
}

func newEngineOn(t testing.TB, ln net.Listener, script func(p *peer, a asked) bool) *engine {
	t.Helper()
	e := &engine{Listener: ln, script: script, closed: make(chan time.Time, 4096), step: make(chan struct{}), conns: map[net.Conn]bool{}}
	e.done.Go(e.accept)
	t.Cleanup(e.stop)
	return e
}

func (e *engine) stop() {
	e.Listener.Close()
	e.mu.Lock()
	for c := range e.conns {
		c.Close()
	}
	e.mu.Unlock()
	e.done.Wait()
}

func (e *engine) url() string { return "http://" + e.Addr().String() }

func (e *engine) accept() {
	for {
		c, err := e.Accept()
		if err != nil {
			return
		}
		e.open.Add(1)
		e.mu.Lock()
		e.conns[c] = true
		e.mu.Unlock()
		e.done.Go(func() {
			e.serve(&peer{Conn: c, br: bufio.NewReader(c), engine: e})
			c.Close()
			e.mu.Lock()
			delete(e.conns, c)
			e.mu.Unlock()
			e.open.Add(-1)
		})
	}
}

func (e *engine) serve(p *peer) {
	for {
		a, err := readAsked(p.br)
		if err != nil {
			return
		}
		p.n++
		e.mu.Lock()
		e.asks = append(e.asks, a)
		e.mu.Unlock()
		e.served.Add(1)
		if !e.script(p, a) {
			return
		}
	}
}

func (e *engine) last(t testing.TB) asked {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.asks) == 0 {
		t.Fatal("the engine saw no request")
	}
	return e.asks[len(e.asks)-1]
}

func readAsked(br *bufio.Reader) (asked, error) {
	var head strings.Builder
	length := 0
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return asked{}, err
		}
		head.WriteString(line)
		if line == "\r\n" {
			break
		}
		if k, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(k, "Content-Length") {
			length, _ = strconv.Atoi(strings.TrimSpace(v))
		}
	}
	body := make([]byte, length)
	_, err := io.ReadFull(br, body)
	return asked{head.String(), string(body)}, err
}

// collector is a Sink that keeps all.
type collector struct {
	mu  sync.Mutex
	all []*exchange.Exchange
	got chan *exchange.Exchange
}

func newCollector() *collector { return &collector{got: make(chan *exchange.Exchange, 8192)} }

func (c *collector) Offer(x *exchange.Exchange) bool {
	c.mu.Lock()
	c.all = append(c.all, x)
	c.mu.Unlock()
	c.got <- x
	return true
}

func (c *collector) next(t testing.TB) *exchange.Exchange {
	t.Helper()
	select {
	case x := <-c.got:
		return x
	case <-time.After(patience):
		t.Fatal("no exchange was sealed")
		return nil
	}
}

// rig is a proxy in front of an engine.
type rig struct {
	t       testing.TB
	network string
	addr    string
	sink    *collector
	session *Session
	up      *Upstream
	server  *Server
	tls     *tls.Config // of clients
}

type rigOptions struct {
	network  string // tcp, unix
	tls      bool   // towards clients
	fallback bool
	wrap     func(net.Listener) net.Listener // of what the server accepts on
	up       UpstreamOptions
	session  SessionOptions
	server   ServerOptions
}

func newRig(t testing.TB, engineURL string, edit ...func(*rigOptions)) *rig {
	t.Helper()
	o := rigOptions{network: "tcp"}
	o.up.Name, o.up.URL = "eng", engineURL
	for _, f := range edit {
		f(&o)
	}
	r := &rig{t: t, network: o.network, sink: newCollector()}
	if o.session.Sink == nil {
		o.session.Sink = r.sink
	}
	r.session = NewSession(o.session)
	var err error
	if r.up, err = NewUpstream(o.up); err != nil {
		t.Fatal(err)
	}
	o.server.Session, o.server.Upstream = r.session, r.up
	if o.tls {
		o.server.TLS, r.tls = certificate(t)
	}
	if r.server, err = NewServer(o.server); err != nil {
		t.Fatal(err)
	}
	r.server.fallback = o.fallback
	ln := listen(t, o.network)
	r.addr = ln.Addr().String()
	if o.wrap != nil {
		ln = o.wrap(ln)
	}
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(ln) }()
	t.Cleanup(func() {
		if err := r.server.Close(); err != nil {
			t.Errorf("close server: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		_ = r.up.Close()
		if n := r.session.Stats().Running; n != 0 {
			t.Errorf("%d exchanges still run after the server closed", n)
		}
		if n := r.session.Stats().Held; n != 0 {
			t.Errorf("%d bytes are still held after the server closed", n)
		}
	})
	return r
}

func listen(t testing.TB, network string) net.Listener {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// raw is a client connection that speaks bytes.
type raw struct {
	net.Conn
	br *bufio.Reader
	t  testing.TB
}

func (r *rig) dial() *raw {
	r.t.Helper()
	c, err := net.Dial(r.network, r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.tls != nil {
		c = tls.Client(c, r.tls)
	}
	_ = c.SetReadDeadline(clock.Now().Add(patience))
	r.t.Cleanup(func() { c.Close() })
	return &raw{c, bufio.NewReader(c), r.t}
}

func (c *raw) send(format string, args ...any) *raw {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.Conn, format, args...); err != nil {
		c.t.Fatalf("send: %v", err)
	}
	return c
}

// post sends a chat request with body.
func (c *raw) post(body string, headers ...string) *raw {
	c.t.Helper()
	h := strings.Join(append(headers, ""), "\r\n")
	return c.send("POST /v1/chat/completions HTTP/1.1\r\nHost: me\r\nContent-Length: %d\r\n%s\r\n%s", len(body), h, body)
}

// head reads a response head, raw.
func (c *raw) head() string {
	c.t.Helper()
	var b strings.Builder
	for {
		line, err := c.br.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			c.t.Fatalf("response head %q: %v", b.String(), err)
		}
		if line == "\r\n" {
			return b.String()
		}
	}
}

// answer reads one response with net/http's reader.
func (c *raw) answer(method string) (*http.Response, string, error) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("read response: %v", err)
	}
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

// ok reads a response and fails unless it is a whole one of status.
func (c *raw) ok(status int) string {
	c.t.Helper()
	resp, body, err := c.answer("POST")
	if err != nil || resp.StatusCode != status {
		c.t.Fatalf("response %d %.300q, %v; want status %d", resp.StatusCode, body, err, status)
	}
	return body
}

func (c *raw) rest() string {
	b, _ := io.ReadAll(c.br)
	return string(b)
}

// certificate makes a self-signed pair for 127.0.0.1.
func certificate(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: clock.Now().Add(-time.Hour), NotAfter: clock.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"test"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: pool, ServerName: "test"}
}

// sse is a scripted stream of n events that ends properly.
func sse(n int) func(p *peer, a asked) bool {
	return func(p *peer, a asked) bool {
		p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		for i := range n {
			p.chunk(fmt.Sprintf("data: {\"i\":%d}\n\n", i))
		}
		p.chunk("data: [DONE]\n\n")
		p.send("0\r\n\r\n")
		return true
	}
}

// jsonAnswer is a scripted answer with a length.
func jsonAnswer(body string) func(p *peer, a asked) bool {
	return func(p *peer, a asked) bool {
		p.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return true
	}
}

// eventually waits for something that another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never happened: %s", what)
		case <-tick.C:
		}
	}
}

// checkRecord holds what is true of every sealed exchange.
func checkRecord(t testing.TB, x *exchange.Exchange) {
	t.Helper()
	sum, last := int64(0), int64(-1)
	for _, r := range x.Timeline.Reads {
		sum += int64(r.Size)
		if r.At < last || r.Write < 0 {
			t.Errorf("read %+v is out of order", r)
		}
		last = r.At
	}
	if x.State == exchange.StateStored && sum != x.Response.Body.Size {
		t.Errorf("reads hold %d bytes, the body %d", sum, x.Response.Body.Size)
	}
	if kept := int64(len(x.Response.Body.Bytes())); kept != x.Response.Body.Kept {
		t.Errorf("body says %d bytes are kept, there are %d", x.Response.Body.Kept, kept)
	}
	start, _ := x.Timeline.SendStart.NS()
	if done, ok := x.Timeline.SendDone.NS(); ok && done < start {
		t.Errorf("the send ended at %d, before its start at %d", done, start)
	}
	// The answer can be here before the call that sent the request returns, so that mark is in no order with the head's.
	order := []exchange.Mark{x.Timeline.Accepted, x.Timeline.RequestRead, x.Timeline.Dialed, x.Timeline.SendStart, x.Timeline.HeaderRead, x.Timeline.FirstRead, x.Timeline.LastRead, x.Timeline.BodyEnd}
	last = 0
	for i, m := range order {
		ns, ok := m.NS()
		if ok && ns < last {
			t.Errorf("mark %d at %d is before the one ahead of it at %d", i, ns, last)
		}
		if ok {
			last = ns
		}
	}
	if bytes.Contains(x.Request.Head, []byte("sk-secret")) {
		t.Error("the record holds a credential")
	}
}
