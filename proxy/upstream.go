package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Upstream is one engine with its pool of connections. It is safe for concurrent use.
type Upstream struct {
	opts      UpstreamOptions
	url       string // as given, credentials masked
	authority string // of the Host header
	prefix    string // joined before every target, without a slash at its end
	network   string // of the address below
	address   string
	tls       *tls.Config // nil for plain

	connect, header, idle, age time.Duration // 0 is no bound, for age it is no reuse

	mu     sync.Mutex
	free   []*engineConn // unused connections, oldest first
	sweep  *time.Timer   // closes the old ones; nil when none is set
	closed bool
	stamps stamping // until Close

	// wary is set once the engine was seen to close a connection that it had given no sign of closing. Some close after
	// every streamed answer: a request sent in that moment is lost, and must not be sent again.
	wary atomic.Bool
}

// restTime is how long a connection is left alone before it is used again, towards an engine of which wary is set: what
// it means to close, it has closed by then.
const restTime = 5 * time.Millisecond

// NewUpstream checks the options. It makes no connection. Close must be called in the end.
func NewUpstream(o UpstreamOptions) (*Upstream, error) {
	u := &Upstream{
		opts:    o,
		connect: orNone(o.ConnectTimeout, DefaultConnectTimeout),
		header:  max(o.HeaderTimeout, 0),
		idle:    orNone(o.IdleTimeout, DefaultIdleTimeout),
		age:     orNone(o.IdleAge, DefaultIdleAge),
	}
	u.opts.MaxIdle = orDefault(o.MaxIdle, DefaultMaxIdle)
	if err := u.parse(o.URL); err != nil {
		return nil, &exchange.Error{
			Op: "parse upstream URL", Object: redact.URL(o.URL),
			Cause: fmt.Errorf("%w: %w", exchange.ErrUsage, err),
			Hint:  "write http://host:port, https://host or unix:/path/to/socket",
		}
	}
	u.stamps = keepStamping()
	return u, nil
}

func (u *Upstream) parse(s string) error {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		path = "/" + strings.TrimLeft(strings.TrimPrefix(path, "//"), "/")
		if path == "/" {
			return errors.New("no socket path")
		}
		u.url, u.network, u.address, u.authority = "unix:"+path, "unix", path, "localhost"
		return nil
	}
	p, err := url.Parse(s)
	if err != nil {
		return errors.New("not a URL") // the parser's own text may repeat a password
	}
	port := "80"
	switch {
	case p.Scheme == "https":
		port = "443"
		u.tls = &tls.Config{}
		if u.opts.TLS != nil {
			u.tls = u.opts.TLS.Clone()
		}
		if u.tls.ServerName == "" {
			u.tls.ServerName = p.Hostname()
		}
		u.tls.NextProtos = []string{"http/1.1"}
	case p.Scheme != "http":
		return fmt.Errorf("unknown scheme %q", p.Scheme)
	}
	if p.Hostname() == "" || p.User != nil || p.RawQuery != "" || p.ForceQuery || p.Fragment != "" {
		return errors.New("want a host and at most a path: no user, query or fragment")
	}
	if p.Port() != "" {
		port = p.Port()
	}
	u.url, u.network, u.address, u.authority = s, "tcp", net.JoinHostPort(p.Hostname(), port), p.Host
	u.prefix = strings.TrimRight(p.EscapedPath(), "/")
	return nil
}

// Name is the name of the upstream.
func (u *Upstream) Name() string { return u.opts.Name }

// URL is where requests are sent, credentials masked.
func (u *Upstream) URL() string { return redact.URL(u.url) }

// unused gives an unused connection that is still alive, or nil.
func (u *Upstream) unused() *engineConn {
	for c := u.pop(); c != nil; c = u.pop() {
		if c.alive() {
			return c
		}
		u.wary.Store(true)
		c.closeRaw()
	}
	return nil
}

// pop takes the youngest unused connection that has rested out of the pool; nil when there is none young enough.
func (u *Upstream) pop() *engineConn {
	rest := time.Duration(0)
	if u.wary.Load() {
		rest = restTime
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := len(u.free) - 1; i >= 0; i-- {
		c := u.free[i]
		idle := clock.Since(c.since)
		if idle >= u.age {
			return nil // so are all before it; the sweep closes them
		}
		if idle >= rest {
			u.free = slices.Delete(u.free, i, i+1)
			return c
		}
	}
	return nil
}

// put keeps a connection whose last exchange ended properly.
func (u *Upstream) put(c *engineConn) {
	c.slim()
	c.since = clock.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.age == 0 || len(u.free) >= u.opts.MaxIdle {
		c.closeRaw()
		return
	}
	u.free = append(u.free, c)
	if u.sweep == nil {
		u.sweep = time.AfterFunc(u.age, u.expire)
	}
}

// expire closes the connections that were unused for too long, and comes again while there are others.
func (u *Upstream) expire() {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for n < len(u.free) && clock.Since(u.free[n].since) >= u.age {
		u.free[n].closeRaw()
		n++
	}
	u.free = append(u.free[:0], u.free[n:]...)
	u.sweep = nil
	if len(u.free) > 0 && !u.closed {
		u.sweep = time.AfterFunc(u.age-clock.Since(u.free[0].since), u.expire)
	}
}

// Close closes the unused connections. Running exchanges go on; their connections are not kept.
func (u *Upstream) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	if u.sweep != nil {
		u.sweep.Stop()
		u.sweep = nil
	}
	for _, c := range u.free {
		c.closeRaw()
	}
	u.free = nil
	u.stamps.end()
	return nil
}

// dial makes a connection, with TLS when the URL asks for it.
func (u *Upstream) dial(ctx context.Context) (*engineConn, error) {
	if u.connect > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, u.connect)
		defer cancel()
	}
	raw, err := u.dialRaw(ctx)
	if err != nil {
		return nil, err
	}
	var kernel *kernelConn
	if !u.opts.ReadStamps {
		raw, kernel = stampedByKernel(raw)
	}
	if u.tls == nil {
		return newEngineConn(raw, raw, kernel), nil
	}
	c := tls.Client(raw, u.tls)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return newEngineConn(c, raw, kernel), nil
}

func (u *Upstream) dialRaw(ctx context.Context) (net.Conn, error) {
	if u.opts.Dial != nil {
		return u.opts.Dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, u.network, u.address)
}
