package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// counter is a stand-in behind a listener in memory, on the fake clock of a bubble.
type counter struct {
	t      *testing.T
	ln     *sim.PipeListener
	s      *StandIn
	mu     sync.Mutex
	misses []Miss
}

// serving runs check against a stand-in of what src holds, in a bubble.
func serving(t *testing.T, src *shelf, o ServeOptions, check func(t *testing.T, c *counter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &counter{t: t}
		o.OnMiss = func(m Miss) {
			c.mu.Lock()
			c.misses = append(c.misses, m)
			c.mu.Unlock()
		}
		var err error
		if c.s, err = NewStandIn(t.Context(), src, &src.run, Filter{}, o); err != nil {
			t.Fatal(err)
		}
		c.serve(t, func() { check(t, c) })
	})
}

// serve runs f with a server of the stand-in.
func (c *counter) serve(t *testing.T, f func()) {
	c.t, c.ln = t, sim.NewPipeListener()
	server, ended := sim.New(c.s.Config()), make(chan error, 1)
	go func() { ended <- server.Serve(c.ln) }()
	defer func() {
		if err := errors.Join(server.Close(), <-ended); err != nil {
			t.Error(err)
		}
	}()
	f()
}

// report is what was done so far, once all that runs has come to rest.
func (c *counter) report() ServeReport {
	synctest.Wait()
	return c.s.Report()
}

// gotten is what a client got.
type gotten struct {
	head   string // raw
	status int
	header http.Header
	body   string
	pieces []string        // of the body as they came
	times  []time.Duration // of them, since the request was sent; of the head first
	err    error           // of the body
	closed bool            // the connection ended behind it
}

// visitor is a connection to a stand-in.
type visitor struct {
	t    *testing.T
	conn net.Conn
	seen bytes.Buffer // what came, raw
	br   *bufio.Reader
}

func (c *counter) visit() *visitor {
	c.t.Helper()
	conn, err := c.ln.Dial(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	v := &visitor{t: c.t, conn: conn}
	v.br = bufio.NewReader(io.TeeReader(conn, &v.seen))
	return v
}

// ask sends raw bytes and reads the answer to a request of this method.
func (v *visitor) ask(method, raw string) gotten {
	v.t.Helper()
	v.seen.Reset()
	start := clock.Now()
	if _, err := io.WriteString(v.conn, raw); err != nil {
		v.t.Fatal(err)
	}
	resp, err := http.ReadResponse(v.br, &http.Request{Method: method})
	if err != nil {
		return gotten{err: err, closed: true, times: []time.Duration{clock.Since(start)}}
	}
	g := gotten{status: resp.StatusCode, header: resp.Header, times: []time.Duration{clock.Since(start)}}
	g.head, _, _ = strings.Cut(v.seen.String(), "\r\n\r\n")
	buf := make([]byte, 64<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			g.body += string(buf[:n])
			g.pieces, g.times = append(g.pieces, string(buf[:n])), append(g.times, clock.Since(start))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			g.err = err
			break
		}
	}
	return g
}

// ends reports whether the server closes the connection when it is asked nothing more.
func (v *visitor) ends() bool {
	err := v.conn.SetReadDeadline(clock.Now().Add(time.Second))
	if err == nil {
		_, err = v.br.ReadByte()
	}
	var ne net.Error
	return !(errors.As(err, &ne) && ne.Timeout())
}

// chatPost is a request as a client sends it.
func chatPost(body string, headers ...string) string {
	return fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s",
		lines(headers), len(body), body)
}

func lines(headers []string) string {
	var b strings.Builder
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	return b.String()
}

// post asks on a connection of its own.
func (c *counter) post(body string, headers ...string) gotten {
	c.t.Helper()
	v := c.visit()
	defer v.conn.Close()
	return v.ask("POST", chatPost(body, headers...))
}

// asked is a request that posted body, with its answer in pieces. head is the engine's, without its last blank line.
func answering(body, head string, pieces ...string) *exchange.Exchange {
	x := recorded(0, body, eventStream, pieces...)
	x.ID = ""
	lines := strings.Split(head, "\r\n")
	x.Response.Headers = nil
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ": ")
		x.Response.Headers = append(x.Response.Headers, exchange.Header{Name: name, Value: value})
	}
	if _, err := fmt.Sscanf(lines[0], "HTTP/1.1 %d", &x.Response.Status); err != nil {
		panic(err)
	}
	x.Response.Head = []byte(head + "\r\n\r\n")
	return x
}

const (
	chunkedHead = "HTTP/1.1 200 OK\r\nserver: Engine/2\r\nContent-Type: text/event-stream\r\nX-Dup: a\r\nX-Dup: b\r\nTransfer-Encoding: chunked"
	question    = `{"model":"m","stream":true,"messages":[{"role":"user","content":"why"}]}`
)

// simChat is a chat request as a server has read it.
func simChat(body string) sim.Request {
	return sim.Request{Method: "POST", Target: "/v1/chat/completions", Proto: "HTTP/1.1", Body: []byte(body),
		Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}}
}

func keyOfChat(body string) string { return ask(simChat(body)).key.Key }
