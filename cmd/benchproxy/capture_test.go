package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/proxy"
)

// TestAllListenersCloseAtOnce holds that no listener takes new requests while the exchanges of another drain.
func TestAllListenersCloseAtOnce(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
	}))
	defer engine.Close()
	c, err := startCapture(env{Stdout: io.Discard, Stderr: io.Discard, TTY: func(io.Writer) (int, bool) { return 0, false }}, captureSettings{
		upstreams: []upstream{{name: "a", url: engine.URL}, {name: "b", url: engine.URL}},
		listen:    "127.0.0.1:0", listenExplicit: true, admin: adminOff, store: filepath.Join(t.TempDir(), "s"), queue: 1 << 20,
		run: newRun("record", "", nil), form: boardQuiet, drain: time.Minute, session: proxy.SessionOptions{},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		resp, err := http.Get(c.base(0) + "/slow")
		if err == nil {
			resp.Body.Close()
		}
		got <- err
	}()
	<-asked
	closed := make(chan error, 1)
	go func() {
		_, err := c.Close(nil)
		closed <- err
	}()
	for end := time.After(20 * time.Second); ; {
		conn, err := net.Dial("tcp", c.listeners[1].Addr().String())
		if err != nil {
			break
		}
		conn.Close()
		select {
		case <-end:
			t.Fatal("the second listener still accepts")
		case <-time.After(5 * time.Millisecond):
		}
	}
	close(answer)
	if err := <-got; err != nil {
		t.Errorf("the running exchange: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}
