package rig

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// answers serves one connection: for each request it writes the pieces of the next answer, each in a write of its own
// that the client has read before the next comes.
type answers struct {
	ln   net.Listener
	read chan struct{}
	done chan struct{}
}

func serve(t *testing.T, list ...[]string) *answers {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &answers{ln: ln, read: make(chan struct{}), done: make(chan struct{})}
	a.start(list)
	t.Cleanup(func() { ln.Close(); <-a.done })
	return a
}

func (a *answers) start(list [][]string) {
	go func() {
		defer close(a.done)
		c, err := a.ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 4096)
		for _, pieces := range list {
			if n, err := c.Read(buf); n == 0 || err != nil {
				return
			}
			for i, p := range pieces {
				if _, err := io.WriteString(c, p); err != nil {
					return
				}
				if i < len(pieces)-1 {
					<-a.read
				}
			}
		}
	}()
}

// do sends a request and reads its answer, letting the server go on after each read.
func (a *answers) do(c *Client) (*Answer, error) {
	if err := c.Send([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		return nil, err
	}
	for {
		done, err := c.Read()
		if done || err != nil {
			return c.Answer(), err
		}
		select {
		case a.read <- struct{}{}:
		case <-a.done: // nothing more comes
		}
	}
}

const chunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

// TestAnswersInAnySplit holds that the split of an answer into reads changes nothing but the reads.
func TestAnswersInAnySplit(t *testing.T) {
	for _, whole := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello, world",
		chunkedHead + "7\r\nhello, \r\n5;x=y\r\nworld\r\n0\r\n\r\n",
		chunkedHead + "7\r\nhello, \r\n5\r\nworld\r\n0\r\nX-Trailer: end\r\n\r\n",
	} {
		for cut := 1; cut < len(whole); cut++ {
			a := serve(t, []string{whole[:cut], whole[cut:]}, []string{whole})
			c := NewClient(a.ln.Addr().String())
			for range 2 { // the connection is used again
				got, err := a.do(c)
				if err != nil || string(got.Body) != "hello, world" || !got.Whole || got.Status != 200 {
					t.Errorf("%q cut at %d: %+v, %v", whole, cut, got, err)
				}
			}
			c.Close()
		}
	}
}

func TestArrivals(t *testing.T) {
	a := serve(t, []string{chunkedHead, "2\r\nab\r\n", "1\r\nc\r\n2\r\nde\r\n", "0\r\n\r\n"})
	c := NewClient(a.ln.Addr().String())
	defer c.Close()
	got, err := a.do(c)
	if err != nil || len(got.Reads) != 2 || got.Reads[0].Body != 2 || got.Reads[1].Body != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got.Sent > got.Reads[0].At || got.Reads[0].At > got.Reads[1].At {
		t.Errorf("stamps are out of order: %+v", got)
	}
	for n, want := range map[int]int64{1: got.Reads[0].At, 2: got.Reads[0].At, 3: got.Reads[1].At, 5: got.Reads[1].At} {
		if at, ok := got.Arrival(n); !ok || at != want {
			t.Errorf("byte %d came at %d, want %d", n, at, want)
		}
	}
	if _, ok := got.Arrival(6); ok {
		t.Error("a byte that never came has an arrival")
	}
}

func TestCutAnswers(t *testing.T) {
	for _, x := range []struct{ answer, body string }{
		{"", ""},
		{"HTTP/1.1 200 OK\r\nContent-Le", ""},
		{"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nhello", "hello"},
		{chunkedHead + "5\r\nhel", "hel"},
		{chunkedHead + "5\r\nhello\r\n", "hello"},
		{chunkedHead + "5\r\nhello\r\n0\r\n", "hello"},
	} {
		a := serve(t, []string{x.answer})
		c := NewClient(a.ln.Addr().String())
		got, err := a.do(c)
		if !errors.Is(err, io.ErrUnexpectedEOF) || got.Whole || string(got.Body) != x.body {
			t.Errorf("%q: %+v, %v", x.answer, got, err)
		}
		if body, err := BodyOf([]byte(x.answer)); !errors.Is(err, io.ErrUnexpectedEOF) || string(body) != x.body {
			t.Errorf("body of %q is %q, %v", x.answer, body, err)
		}
		c.Close()
	}
}

func TestAnswerUntilClose(t *testing.T) {
	a := serve(t, []string{"HTTP/1.0 503 Busy\r\n\r\n", "until the end"})
	c := NewClient(a.ln.Addr().String())
	defer c.Close()
	got, err := a.do(c)
	if err != nil || !got.Whole || got.Status != 503 || string(got.Body) != "until the end" || c.conn != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestBadAnswers(t *testing.T) {
	for _, x := range []string{
		"junk\r\n\r\n",
		"HTTP/1.1 abc OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc",
		chunkedHead + "zz\r\n",
		chunkedHead + "-2\r\n",
	} {
		a := serve(t, []string{x})
		c := NewClient(a.ln.Addr().String())
		if got, err := a.do(c); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: %+v, %v", x, got, err)
		}
		c.Close()
	}
}

func TestNobodyThere(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	if _, err := NewClient(addr).Do(nil); err == nil || !strings.Contains(err.Error(), "dial target") {
		t.Errorf("error %v", err)
	}
}
