package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAllListenersCloseAtOnce holds that no listener takes new requests while the exchanges of another drain.
func TestAllListenersCloseAtOnce(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
	}))
	defer engine.Close()
	c, err := startCapture(quietEnv(io.Discard), quietCapture(t, time.Minute, engine.URL, engine.URL))
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

// TestDrainTimeThatPassed holds that exchanges which outlast the drain time are cut, told so, and no failure of ours.
func TestDrainTimeThatPassed(t *testing.T) {
	asked := make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer engine.Close()
	var stderr bytes.Buffer
	c, err := startCapture(quietEnv(&stderr), quietCapture(t, 50*time.Millisecond, engine.URL))
	if err != nil {
		t.Fatal(err)
	}
	status := make(chan int, 1)
	go func() {
		resp, err := http.Get(c.base(0) + "/slow")
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	<-asked
	run, err := c.Close(nil)
	if err != nil || run.Counts.Stored != 1 {
		t.Errorf("close: %v, run %+v", err, run)
	}
	if got := <-status; got != 503 {
		t.Errorf("the client got %d", got)
	}
	if !strings.Contains(stderr.String(), "--drain") {
		t.Errorf("said %q", stderr.String())
	}
}

func quietEnv(stderr io.Writer) env {
	return env{Stdout: io.Discard, Stderr: stderr, Getenv: func(string) string { return "" }, TTY: func(io.Writer) (int, bool) { return 0, false }}
}

// quietCapture is a capture with a listener for each engine.
func quietCapture(t *testing.T, drain time.Duration, engines ...string) captureSettings {
	s := captureSettings{
		listen: "127.0.0.1:0", listenExplicit: true, admin: adminOff, store: filepath.Join(t.TempDir(), "s"), queue: 1 << 20,
		run: newRun("record", "", nil), form: boardQuiet, drain: drain,
	}
	for i, url := range engines {
		s.upstreams = append(s.upstreams, upstream{name: string(rune('a' + i)), url: url})
	}
	return s
}
