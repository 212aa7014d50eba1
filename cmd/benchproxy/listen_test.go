package main

import (
	"errors"
	"net"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestLeadsTo(t *testing.T) {
	loop := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8090}
	every := &net.TCPAddr{IP: net.IPv6unspecified, Port: 80}
	lan := &net.TCPAddr{IP: net.IPv4(192, 168, 1, 5), Port: 8090}
	for _, c := range []struct {
		target string
		addr   net.Addr
		want   bool
	}{
		{"http://127.0.0.1:8090", loop, true},
		{"http://127.0.0.1:8090/v1", loop, true},
		{"http://localhost:8090", loop, true},
		{"http://[::1]:80", every, true},
		{"http://localhost", every, true},
		{"https://localhost", every, false},
		{"http://127.0.0.1:8091", loop, false},
		{"http://10.0.0.1:8090", loop, false},
		{"http://gpu:8090", loop, false},
		{"http://192.168.1.5:8090", lan, true},
		{"http://127.0.0.1:8090", lan, false},
		{"unix:/run/engine.sock", loop, false},
		{"http://127.0.0.1:8090", &net.UnixAddr{Name: "/run/x"}, false},
	} {
		if got := leadsTo(c.target, c.addr); got != c.want {
			t.Errorf("%s to %v: %v", c.target, c.addr, got)
		}
	}
}

func TestAProxyInFrontOfItselfIsRefused(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	own := []upstream{{name: "engine", url: "http://127.0.0.1:1"}, {name: "own", url: "http://" + ln.Addr().String()}}
	for _, c := range []*capture{{listeners: []net.Listener{ln}}, {adminLn: ln}} {
		c.s.upstreams = own
		if err := c.refuseLoops(); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("got %v", err)
		}
		c.s.upstreams = own[:1]
		if err := c.refuseLoops(); err != nil {
			t.Errorf("another address: %v", err)
		}
	}
}
