package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Server is one listener in front of one upstream.
type Server struct {
	session  *Session
	up       *Upstream
	opts     ServerOptions
	key      [sha256.Size]byte // of the client key: compared in constant time whatever the lengths
	fast     *fasthttp.Server
	hub      *hub
	fallback bool // tests: watch clients as where there is no hub

	mu       sync.Mutex   // holds the two below
	listener net.Listener // what Serve was given
	ended    bool         // Shutdown has begun: a Serve that comes later serves nothing
}

// NewServer makes a server; Serve starts it.
func NewServer(o ServerOptions) (*Server, error) {
	if o.Session == nil || o.Upstream == nil {
		return nil, errors.New("new server: no session or upstream")
	}
	if o.Measured == nil {
		o.Measured = MeasuredPath
	}
	s := &Server{session: o.Session, up: o.Upstream, opts: o, hub: newHub(), key: sha256.Sum256([]byte(o.Key))}
	s.fast = s.library()
	return s, nil
}

// library configures the HTTP library: bytes in and out as they are, and nothing invented.
func (s *Server) library() *fasthttp.Server {
	return &fasthttp.Server{
		Handler:      s.handle,
		ErrorHandler: s.badRequest,
		HeaderReceived: func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
			return fasthttp.RequestConfig{ReadTimeout: s.bodyTime(h.ContentLength())}
		},
		ExpectHandler: s.expect,

		NoDefaultServerHeader:         true,
		NoDefaultDate:                 true,
		NoDefaultContentType:          true,
		DisableHeaderNamesNormalizing: true,
		DisablePreParseMultipartForm:  true, // it changes the bytes of the body
		SecureErrorLogMessage:         true, // its messages would carry raw request bytes
		ReduceMemoryUsage:             true, // no read buffer is held while a stream runs
		CloseOnShutdown:               true,

		ReadBufferSize:     orDefault(s.opts.MaxHead, DefaultMaxHead),
		MaxRequestBodySize: orDefault(s.opts.MaxRequest, DefaultMaxRequest),
		ReadTimeout:        orDefault(s.opts.ReadTimeout, DefaultReadTimeout),
		IdleTimeout:        orDefault(s.opts.KeepAlive, DefaultKeepAlive),
		Logger:             silent{}, // what ends a connection is in the record
	}
}

// silent is the library's log: each stream that ends early would write a line.
type silent struct{}

// Printf drops the line.
func (silent) Printf(string, ...any) {}

// bodyTime is how long a request body may take: the time for a head and what a slow network needs for its size.
func (s *Server) bodyTime(length int) time.Duration {
	const slow = 128 << 10 // bytes per second
	if length < 0 {
		length = s.fast.MaxRequestBodySize
	}
	return s.fast.ReadTimeout + time.Duration(min(length, s.fast.MaxRequestBodySize))*time.Second/slow
}

// expect refuses a body that is announced too large before the client sends it.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	if ctx.Request.Header.ContentLength() > s.fast.MaxRequestBodySize {
		s.badRequest(ctx, fasthttp.ErrBodyTooLarge)
		return fasthttp.StatusRequestEntityTooLarge
	}
	return fasthttp.StatusContinue
}

// Serve accepts connections until Shutdown or Close, then returns nil. A server serves one listener, once.
func (s *Server) Serve(ln net.Listener) error {
	if !s.begin(ln) {
		return nil
	}
	l := &hubListener{
		Listener: ln, hub: s.hub, tls: s.opts.TLS, stall: orNone(s.opts.WriteTimeout, DefaultWriteTimeout), fallback: s.fallback,
	}
	if err := s.fast.Serve(l); err != nil && !s.over() {
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	}
	return nil
}

// begin notes the listener, unless the server was ended before it began: the library would then serve for ever.
func (s *Server) begin(ln net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener = ln
	if s.ended {
		_ = ln.Close() // nothing was accepted on it
	}
	return !s.ended
}

// end stops accepting, whether or not the library has taken over the listener yet.
func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.listener != nil {
		_ = s.listener.Close() // it may have failed before
	}
}

func (s *Server) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

const (
	// cutTime is how long connections that were cut may take to end.
	cutTime = 5 * time.Second
	// lastWords is how long clients of exchanges that were cut may take to be told so.
	lastWords = 250 * time.Millisecond
)

// Shutdown stops accepting and waits for running exchanges. When ctx ends first they are cut: their connections are
// closed on both sides and they are sealed as EndShutdown; the error is then that of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.end()
	err := s.drain(ctx)
	if err != nil {
		s.session.cancelAll(s, exchange.EndShutdown, exchange.Cause{
			Side: exchange.SideProxy, Code: "shutdown", Text: "the proxy was stopped and the drain time had passed",
		})
		s.letGo()
		for _, c := range s.hub.all() {
			_ = c.Conn.Close()
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cutTime)
		defer cancel()
		if again := s.drain(last); again != nil {
			err = fmt.Errorf("end connections: %w", again)
		}
	}
	return errors.Join(err, s.hub.Close())
}

// letGo waits until the connections of exchanges that were cut have ended by themselves, with an answer that says so
// where none had begun.
func (s *Server) letGo() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(lastWords); len(s.hub.all()) > 0; {
		select {
		case <-tick.C:
		case <-end:
			return
		}
	}
}

// drain waits until no connection is served and every exchange is sealed. The library stops waiting for good when it
// was once told to; the exchanges are what counts.
func (s *Server) drain(ctx context.Context) error {
	if err := s.fast.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.session.runs(s) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close is a Shutdown without patience.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// CheckBind refuses an address that others can reach while no key is asked of clients, unless insecure is set.
func CheckBind(addr string, key string, insecure bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return &exchange.Error{Op: "check listen address", Object: addr,
			Cause: fmt.Errorf("%w: %w", exchange.ErrUsage, err), Hint: "write HOST:PORT"}
	}
	if ip := net.ParseIP(host); key != "" || insecure || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return &exchange.Error{Op: "check listen address", Object: addr,
		Cause: fmt.Errorf("%w: the address can be reached from outside and no API key is asked of clients", exchange.ErrUsage),
		Hint:  "set an API key, listen on 127.0.0.1, or say --insecure"}
}

// MeasuredPath reports whether path is an endpoint that generates: there the time of each byte matters. Paths of
// engines behind a prefix count too.
func MeasuredPath(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	for _, end := range []string{
		"/completions", "/completion", "/responses", "/messages", "/generate", "/generate_stream", "/api/chat", "/infill",
		":generateContent", ":streamGenerateContent", "/v1/chat",
	} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}
