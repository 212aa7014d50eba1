package main

import (
	"errors"
	"net"

	"github.com/benchproxy/benchproxy/internal/sim"
)

// scripted is a scripted engine that serves.
type scripted struct {
	*sim.Server
	url    string
	addr   net.Addr
	served chan error // what Serve came to
}

func startScripted(addr string, explicit bool, cfg sim.Config) (*scripted, error) {
	ln, err := listen(addr, explicit)
	if err != nil {
		return nil, err
	}
	s := &scripted{Server: sim.New(cfg), url: "http://" + ln.Addr().String(), addr: ln.Addr(), served: make(chan error, 1)}
	s.start(func() error { return s.Serve(ln) })
	return s, nil
}

func (s *scripted) start(serve func() error) {
	go func() { s.served <- serve() }()
}

// Close ends the engine and waits for it.
func (s *scripted) Close() error { return errors.Join(s.Server.Close(), <-s.served) }
