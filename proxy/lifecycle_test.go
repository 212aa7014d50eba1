package proxy

import (
	"context"
	"net"
	"testing"
)

// TestShutdownBeforeServe holds that the order of the two does not matter: Serve comes from a goroutine of its own.
func TestShutdownBeforeServe(t *testing.T) {
	up, err := NewUpstream(UpstreamOptions{Name: "e", URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
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
