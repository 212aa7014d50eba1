package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// spy accepts connections and notes what is written to them, call by call, and how often they are read.
type spy struct {
	net.Listener
	mu     sync.Mutex
	writes []string
	reads  int // calls of Read that went past what came with the first byte of a request
}

func (s *spy) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &spied{c.(*net.TCPConn), s}, nil
}

// took gives what was written since the last call.
func (s *spy) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.writes
	s.writes = nil
	return w
}

type spied struct {
	*net.TCPConn
	spy *spy
}

func (c *spied) Write(p []byte) (int, error) {
	c.spy.mu.Lock()
	c.spy.writes = append(c.spy.writes, string(p))
	c.spy.mu.Unlock()
	return c.TCPConn.Write(p)
}

func (c *spied) Read(p []byte) (int, error) {
	c.spy.mu.Lock()
	c.spy.reads++
	c.spy.mu.Unlock()
	return c.TCPConn.Read(p)
}

func newSpy(o *rigOptions) *spy {
	s := &spy{}
	o.wrap = func(ln net.Listener) net.Listener {
		s.Listener = ln
		return s
	}
	return s
}

// TestOneWriteForWhatCameTogether holds how many calls an answer takes: what one read of the engine brought, head, body
// and end, goes to the client in one.
func TestOneWriteForWhatCameTogether(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, c := range map[string]struct {
		parts []string // what the engine sends, each when the client has what was before
		want  []string // endings of the writes, without what follows the first of them
	}{
		"answer with a length":       {[]string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"}, []string{"\r\n\r\nok"}},
		"whole stream":               {[]string{head + "2\r\nab\r\n0\r\n\r\n"}, []string{"\r\n\r\n2\r\nab\r\n0\r\n\r\n"}},
		"head alone":                 {[]string{head, "2\r\nab\r\n0\r\n\r\n"}, []string{"chunked\r\n\r\n", "2\r\nab\r\n0\r\n\r\n"}},
		"head and part of a line":    {[]string{head + "2", "\r\nab\r\n0\r\n\r\n"}, []string{"chunked\r\n\r\n", "2\r\nab\r\n0\r\n\r\n"}},
		"head and a whole size line": {[]string{head + "2\r\n", "ab\r\n0\r\n\r\n"}, []string{"chunked\r\n\r\n", "2\r\nab\r\n0\r\n\r\n"}},
		"head and part of a chunk":   {[]string{head + "2\r\na", "b\r\n0\r\n\r\n"}, []string{"\r\n\r\n1\r\na\r\n", "1\r\nb\r\n0\r\n\r\n"}},
		"end alone":                  {[]string{head + "2\r\nab\r\n", "0\r\n\r\n"}, []string{"\r\n\r\n2\r\nab\r\n", "0\r\n\r\n"}},
		"empty stream":               {[]string{head + "0\r\n\r\n"}, []string{"chunked\r\n\r\n", "0\r\n\r\n"}},
		"trailers": {[]string{"HTTP/1.1 200 OK\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-T: 1\r\n\r\n"},
			[]string{"\r\n\r\n2\r\nab\r\n", "0\r\nX-T: 1\r\n\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, func(p *peer, _ asked) bool {
				for i, part := range c.parts {
					if i > 0 {
						<-p.engine.step
					}
					p.send("%s", part)
				}
				return true
			})
			var s *spy
			r := newRig(t, e.url(), func(o *rigOptions) { s = newSpy(o) })
			down := r.dial()
			for range 2 { // the second request finds the connection as it should be
				down.post("{}")
				for i, end := range c.want {
					down.until(end)
					if i+1 < len(c.parts) {
						e.step <- struct{}{}
					}
				}
				if x := r.sink.next(t); x.End != exchange.EndEOF || x.State != exchange.StateStored {
					t.Fatalf("ended as %s", x.End)
				}
				checkWrites(t, s.took(), c.want)
			}
		})
	}
}

// until reads until what came ends with end.
func (c *raw) until(end string) {
	c.t.Helper()
	_ = c.SetReadDeadline(clock.Now().Add(patience))
	var got []byte
	for !strings.HasSuffix(string(got), end) {
		b, err := c.br.ReadByte()
		if err != nil {
			c.t.Fatalf("client got %q, want the end %q: %v", got, end, err)
		}
		got = append(got, b)
	}
}

func checkWrites(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d writes, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.HasSuffix(got[i], want[i]) || i > 0 && got[i] != want[i] {
			t.Errorf("write %d is %q, want the end %q", i, got[i], want[i])
		}
	}
}

// TestOneReadForARequest holds that a request that came at once is read at once, and that one that did not, or came
// with the next, is read all the same.
func TestOneReadForARequest(t *testing.T) {
	e := newEngine(t, func(p *peer, a asked) bool { return jsonAnswer(a.Body)(p, a) })
	var s *spy
	r := newRig(t, e.url(), func(o *rigOptions) { s = newSpy(o) })
	down := r.dial()
	const line = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
	for range 3 {
		down.send(line, 5, "small")
		if got := down.ok(200); got != "small" {
			t.Errorf("echoed %q", got)
		}
	}
	s.mu.Lock()
	reads := s.reads
	s.mu.Unlock()
	if reads != 0 {
		t.Errorf("%d reads beyond the first of each request", reads)
	}
	large := strings.Repeat("0123456789abcdef", 4096)
	both := fmt.Sprintf(line, len(large), large) + fmt.Sprintf(line, 5, "small")
	for i := 0; i < len(both); i += 1000 { // in pieces that end anywhere
		down.send("%s", both[i:min(i+1000, len(both))])
	}
	for _, want := range []string{large, "small"} {
		if got := down.ok(200); got != want {
			t.Errorf("echoed %d bytes, want %d", len(got), len(want))
		}
	}
}

// TestHeadIsNotLostWhenTheBodyBreaks holds that a head kept back for its body comes out when no body byte does.
func TestHeadIsNotLostWhenTheBodyBreaks(t *testing.T) {
	nc, far := net.Pipe()
	c := &clientConn{Conn: nc, hub: newHub()}
	c.holdHead()
	if n, err := c.Write([]byte("head")); n != 4 || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	done := make(chan error, 1)
	go func() {
		err := c.releaseHead()
		_ = c.Close()
		done <- err
	}()
	if got, err := io.ReadAll(far); string(got) != "head" || err != nil {
		t.Errorf("client got %q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := c.releaseHead(); err != nil {
		t.Errorf("nothing to release: %v", err)
	}
}
