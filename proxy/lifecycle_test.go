package proxy

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
)

// TestShutdownBeforeServe holds that the order of the two does not matter: Serve comes from a goroutine of its own.
func TestShutdownBeforeServe(t *testing.T) {
	up, err := NewUpstream(UpstreamOptions{Name: "e", URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = up.Close() }()
	for range 50 {
		srv, err := NewServer(ServerOptions{Session: NewSession(SessionOptions{}), Upstream: up})
		if err != nil {
			t.Fatal(err)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(ln) }()
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
			t.Error("the listener is still open")
		}
	}
}

// shortOf is a listener on a machine that runs out of something a few times, with err, before it accepts.
type shortOf struct {
	net.Listener
	err   error
	times int
	conn  net.Conn
}

func (l *shortOf) Accept() (net.Conn, error) {
	if l.times > 0 {
		l.times--
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", l.err)}
	}
	return l.conn, nil
}

func TestAcceptWaitsOutWhatPasses(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE} {
		synctest.Test(t, func(t *testing.T) {
			server, client := net.Pipe()
			defer client.Close()
			hub := newHub()
			defer func() { _ = hub.Close() }()
			l := &hubListener{Listener: &shortOf{err: err, times: 20, conn: server}, hub: hub}
			c, gotErr := l.Accept()
			if gotErr != nil {
				t.Fatalf("%v ended the listener: %v", err, gotErr)
			}
			c.Close()
		})
	}
}

func TestAcceptPassesLastingErrorsOn(t *testing.T) {
	hub := newHub()
	defer func() { _ = hub.Close() }()
	l := &hubListener{Listener: &shortOf{err: syscall.EINVAL, times: 1}, hub: hub}
	if c, err := l.Accept(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("got %v, %v", c, err)
	}
}
