package sim

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ErrCrashed is what Serve returns when a planned crash took the server down.
var ErrCrashed = errors.New("scripted crash")

// Config is a server's setup. It must not change after New.
type Config struct {
	Model   string  // name of the one model; default "sim"
	Options Options // of every request that does not say otherwise
	Slots   int     // requests that run at once, the others wait in order of arrival; 0 = no limit
	Context int     // tokens that prompt and answer may have together; 0 = no limit
	APIKey  string  // bearer token asked for on /v1; "" = none
	Handler Handler // answers before the engine does; nil = none
	// Bare leaves every request to the Handler as it came: there are no reserved paths, no X-Sim, and no engine behind it.
	Bare bool

	KeepRecords int // requests and connections the truth holds; default 4096
	KeepBytes   int // bytes sent that it holds of each request; default 1 MiB
	MaxBody     int // request body accepted, in bytes; default 256 MiB
}

// Server is a scripted engine. Make one with New.
type Server struct {
	cfg     Config
	journal *journal
	slots   chan struct{} // nil = no limit
	quit    chan struct{} // closed by Close and by a crash
	wg      sync.WaitGroup

	mu        sync.Mutex
	down      bool
	crashed   bool
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
}

// New is a server with this setup. It does nothing until Serve is called.
func New(cfg Config) *Server {
	def := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	def(&cfg.KeepRecords, 4096)
	def(&cfg.KeepBytes, 1<<20)
	def(&cfg.MaxBody, 256<<20)
	if cfg.Model == "" {
		cfg.Model = "sim"
	}
	s := &Server{
		cfg:       cfg,
		journal:   &journal{keep: cfg.KeepRecords, keepBytes: cfg.KeepBytes, changed: make(chan struct{})},
		quit:      make(chan struct{}),
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[*conn]struct{}),
	}
	if cfg.Slots > 0 {
		s.slots = make(chan struct{}, cfg.Slots)
	}
	return s
}

// Serve accepts connections on ln, which may be of any kind (TCP, TLS, unix, in memory), until Close, and closes ln. It
// returns nil after Close, ErrCrashed after a planned crash, and what Accept said otherwise. It may be called for
// several listeners.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	if !s.add(ln) {
		return s.verdict(nil)
	}
	defer s.remove(ln)
	for {
		nc, err := ln.Accept()
		if err != nil {
			return s.verdict(&exchange.Error{Op: "accept connection", Object: ln.Addr().String(), Side: exchange.SideEngine, Cause: err})
		}
		c := newConn(s, nc)
		s.mu.Lock()
		if s.down {
			s.mu.Unlock()
			nc.Close()
			return s.verdict(nil)
		}
		s.conns[c] = struct{}{}
		s.wg.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.wg.Done()
			c.serve()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		}()
	}
}

// Run serves ln until ctx ends, then closes the server.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	stop := context.AfterFunc(ctx, func() { s.shut(false) })
	defer stop()
	return errors.Join(s.Serve(ln), s.Close())
}

// Close closes listeners and connections and waits until every connection's goroutine has ended. Running answers are
// cut off, by a reset where the end of the connection alone would pass for the end of the answer. It may be called several times. It returns nil, always.
func (s *Server) Close() error {
	s.shut(false)
	s.wg.Wait()
	return nil
}

// Truth is a copy of all that was recorded and is still kept.
func (s *Server) Truth() Truth { return s.journal.truth() }

// Records are the kept requests, the oldest first.
func (s *Server) Records() []Record { return s.journal.truth().Requests }

// Reset forgets all records. Numbering and Total go on.
func (s *Server) Reset() { s.journal.reset() }

// Await waits until the truth meets a condition, which is tried after each change of it. It returns the truth that did,
// or the last one seen and the cause why ctx ended.
func (s *Server) Await(ctx context.Context, met func(Truth) bool) (Truth, error) {
	return s.journal.await(ctx, met)
}

// Ended is a condition for Await: n requests of the kept ones have ended.
func Ended(n int) func(Truth) bool {
	return func(t Truth) bool {
		ended := 0
		for _, r := range t.Requests {
			if r.Ended != "" {
				ended++
			}
		}
		return ended >= n
	}
}

// shut stops the server without waiting for it.
func (s *Server) shut(crash bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return
	}
	s.down, s.crashed = true, crash
	close(s.quit)
	for ln := range s.listeners {
		ln.Close()
	}
	for c := range s.conns {
		if crash {
			c.abandon()
		} else {
			c.interrupt()
		}
	}
}

func (s *Server) add(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.down {
		s.listeners[ln] = struct{}{}
	}
	return !s.down
}

func (s *Server) remove(ln net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, ln)
}

// didCrash reports whether a planned crash took the server down.
func (s *Server) didCrash() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashed
}

// verdict is what Serve returns: err is of no interest once the server was told to stop.
func (s *Server) verdict(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.crashed:
		return ErrCrashed
	case s.down:
		return nil
	}
	return err
}
