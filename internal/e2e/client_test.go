package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// client is one connection to a proxy, spoken to in bytes.
type client struct {
	net.Conn
	t  testing.TB
	br *bufio.Reader
}

func dial(t testing.TB, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(clock.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{c, t, bufio.NewReader(c)}
}

// request is what a client sends.
type request struct {
	method  string // "" = POST
	target  string // "" = /v1/chat/completions
	name    string // value of the case header
	headers []string
	body    string
}

func (q request) bytes() []byte {
	var b bytes.Buffer
	if q.method == "" {
		q.method = "POST"
	}
	if q.target == "" {
		q.target = "/v1/chat/completions"
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: proxy\r\n%s: %s\r\n", q.method, q.target, caseHeader, q.name)
	for _, h := range q.headers {
		b.WriteString(h + "\r\n")
	}
	if q.body != "" || q.method == "POST" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(q.body))
	}
	return append(append(b.Bytes(), "\r\n"...), q.body...)
}

// chat is a streamed chat request.
func chat(name string, headers ...string) request {
	return request{name: name, headers: headers, body: chatBody}
}

const chatBody = `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`

func (c *client) send(q request) *client {
	c.t.Helper()
	if _, err := c.Write(q.bytes()); err != nil {
		c.t.Fatalf("send %s: %v", q.name, err)
	}
	return c
}

// arrival is one piece of a body as the client got it: when its read returned, and the body bytes known then.
type arrival struct {
	at  time.Time
	end int
}

// answer is a response as the client saw it.
type answer struct {
	*http.Response
	body     []byte
	arrivals []arrival
	err      error // of the body: nil when it came to its proper end
}

// head reads a response head.
func (c *client) head(method string) *http.Response {
	c.t.Helper()
	resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("read response: %v", err)
	}
	return resp
}

// answer reads a response, at most limit body bytes of it when limit is positive.
func (c *client) answer(method string, limit int) answer {
	c.t.Helper()
	a := answer{Response: c.head(method)}
	buf := make([]byte, 32<<10)
	for limit <= 0 || len(a.body) < limit {
		n, err := a.Body.Read(buf)
		if n > 0 {
			a.body = append(a.body, buf[:n]...)
			a.arrivals = append(a.arrivals, arrival{clock.Now(), len(a.body)})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if a.err = err; err != nil {
			break
		}
	}
	return a
}

// do sends a request on a connection of its own and reads the answer whole.
func (r *rig) do(t testing.TB, q request) answer {
	t.Helper()
	c := dial(t, r.addr)
	defer c.Close()
	return c.send(q).answer(q.method, 0)
}

// arrived is when the client had the first n bytes of the body.
func (a answer) arrived(t testing.TB, n int) time.Time {
	t.Helper()
	for _, p := range a.arrivals {
		if p.end >= n {
			return p.at
		}
	}
	t.Fatalf("the client got %d bytes, not %d", len(a.body), n)
	return time.Time{}
}

// whole fails unless the answer has the status and came to its proper end with the body.
func (a answer) whole(t testing.TB, status int, body []byte) {
	t.Helper()
	if a.StatusCode != status || a.err != nil {
		t.Errorf("the client got status %d and %v, want %d", a.StatusCode, a.err, status)
	}
	sameBytes(t, "the client's body", a.body, body)
}

// sameBytes compares by digest and says where two texts part.
func sameBytes(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if sha256.Sum256(got) == sha256.Sum256(want) {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	t.Errorf("%s has %d bytes, want %d; they part at %d: %.60q, want %.60q", what, len(got), len(want), i, got[i:], want[i:])
}

// sse joins data lines to a stream of events.
func sse(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

// delta is a chunk of a chat answer with content.
func delta(content string) string {
	return fmt.Sprintf(`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, content)
}

const stop = `{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
