package engines

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// ClientOptions say how Client reaches a server.
type ClientOptions struct {
	TLS  *tls.Config                                 // for https; nil is the system's defaults
	Dial func(ctx context.Context) (net.Conn, error) // replaces dialing the address of the URL; nil dials it
}

// Client is a Doer for probes. It follows no redirect, uses no proxy of the environment, asks for no compression and
// keeps no connection, so that nothing of it is left when a probe has ended.
func Client(o ClientOptions) Doer {
	t := &http.Transport{DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: o.TLS,
		TLSHandshakeTimeout: 5 * time.Second, MaxResponseHeaderBytes: 64 << 10}
	if o.Dial != nil {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dial(ctx) }
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
