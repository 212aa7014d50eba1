package main

import (
	"context"
	"net"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/proxy"
)

// probeAddress is how the engine behind an upstream is asked what it is: the URL to ask, and how to reach it. Identifying
// asks on connections of its own, so that no pooled connection of the measured path is touched.
func probeAddress(url string, o proxy.UpstreamOptions) (string, engines.ClientOptions) {
	client := engines.ClientOptions{TLS: o.TLS}
	path, ok := strings.CutPrefix(url, "unix:")
	if !ok {
		return url, client
	}
	path = "/" + strings.TrimLeft(path, "/")
	client.Dial = func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return "http://localhost", client
}
