package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Sink takes sealed exchanges, usually into a store. Offer never blocks; false means the exchange was not taken, which
// is counted. The exchange must not be changed by anyone after.
type Sink interface {
	Offer(x *exchange.Exchange) bool
}

// Tracer gives exchanges their place in distributed traces.
type Tracer interface {
	// Trace is asked once for each exchange, before t0: with its id and benchmark cell, the headers of the call, and
	// whether a client asked for it through a Server. It gives what the engine gets in place of the headers of the same
	// names: names in lower case, and an empty value for a header to leave out. It must not block, and neither keep nor
	// change the headers of the call.
	Trace(id exchange.ID, cell string, headers []exchange.Header, served bool) []exchange.Header
}

// Defaults of the options below.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultIdleTimeout    = 10 * time.Minute
	DefaultIdleAge        = 3 * time.Second
	DefaultMaxIdle        = 1024
	DefaultMaxBody        = 64 << 20
	DefaultBudget         = 512 << 20
	DefaultMaxReads       = 1 << 20
	DefaultMaxRequest     = 64 << 20
	DefaultMaxHead        = 16 << 10
	DefaultReadTimeout    = 30 * time.Second
	DefaultWriteTimeout   = 5 * time.Minute
	DefaultKeepAlive      = 2 * time.Minute
)

// UpstreamOptions say how an engine is reached.
type UpstreamOptions struct {
	// Name of the upstream in records and messages.
	Name string
	// URL is http://host[:port][/prefix], https://... or unix:/path/to/socket. The path prefix is joined before every
	// request target, but for a version at its end with which the target begins: that stands there once. A query, fragment
	// or user part is refused.
	URL string
	// KeepHost forwards the client's Host header; otherwise it becomes the authority of URL.
	KeepHost bool
	// Credentials are asked at each send and set on the request, replacing headers of the same name. They go to this
	// origin only, and their values are never recorded. Nil for none.
	Credentials func() []exchange.Header

	// ConnectTimeout bounds dialing and the TLS handshake. 0 is DefaultConnectTimeout, negative is no bound.
	ConnectTimeout time.Duration
	// HeaderTimeout bounds the wait from the last request byte to the end of the response head. 0 is no bound: a
	// prefill may take long.
	HeaderTimeout time.Duration
	// IdleTimeout bounds the silence between two reads of a body, and the stall of one write of a request. 0 is
	// DefaultIdleTimeout, negative is no bound. It may be kept up to an eighth late, never early.
	IdleTimeout time.Duration
	// IdleAge is how long an unused connection is kept. 0 is DefaultIdleAge, negative keeps none. Engines close idle
	// connections after about 5 s.
	IdleAge time.Duration
	// MaxIdle bounds the number of unused connections. 0 is DefaultMaxIdle.
	MaxIdle int

	// ReadStamps stamps every read at the moment it returns, also where the kernel could say when its bytes arrived. It
	// is for showing what the difference is; records are less exact with it.
	ReadStamps bool

	// TLS is for https URLs; nil is the system's defaults.
	TLS *tls.Config
	// Dial replaces dialing the address of URL: for in-memory connections. TLS still applies for https.
	Dial func(ctx context.Context) (net.Conn, error)
}

// SessionOptions are what all listeners and drivers of one run share.
type SessionOptions struct {
	Run      exchange.ID       // "" outside a run
	Mode     string            // record, proxy, replay, bench, gate
	Harness  string            // version of benchproxy
	Dialect  string            // what answers are to be read as whatever their path; "" = by path
	Identity exchange.Identity // of the engine, as known before the run
	Sink     Sink              // nil records nothing
	Tracer   Tracer            // nil traces nothing
	MaxBody  int64             // bytes kept of each body; 0 is DefaultMaxBody
	MaxReads int               // reads kept of each exchange; 0 is DefaultMaxReads
	Budget   int64             // bytes held by all running exchanges; 0 is DefaultBudget
}

// ServerOptions describe one listener in front of one upstream.
type ServerOptions struct {
	Session  *Session
	Upstream *Upstream
	// Key is the API key clients must send as "Authorization: Bearer KEY" or "x-api-key: KEY". It is consumed: the
	// engine does not see it. "" asks for none, and credentials pass through.
	Key string
	// TLS serves TLS when it is set.
	TLS *tls.Config
	// Measured reports whether timing of answers on a path matters, so that compression is asked off. Nil is
	// MeasuredPath.
	Measured func(path string) bool
	// Rewrite says what of an exchange is changed that the user wants changed, given the call and who answers it as far
	// as that is known. It is asked before t0 and must not write into the call. Nil changes nothing: every byte of a
	// body passes.
	Rewrite func(c *Call, engine exchange.Identity) Rewrite

	MaxHead      int           // bytes of a request head, also a buffer per connection; 0 is DefaultMaxHead
	MaxRequest   int           // bytes of a request body; 0 is DefaultMaxRequest
	ReadTimeout  time.Duration // for a whole request head; a body gets more by its size; 0 is DefaultReadTimeout
	WriteTimeout time.Duration // longest stall of one write to the client; 0 is DefaultWriteTimeout, negative is no bound
	KeepAlive    time.Duration // idle client connections are closed after; 0 is DefaultKeepAlive
}

func orDefault[T int | int64 | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

// orNone is orDefault where a negative value means no bound, which is 0 inside the package.
func orNone(v, d time.Duration) time.Duration {
	if v < 0 {
		return 0
	}
	return orDefault(v, d)
}
