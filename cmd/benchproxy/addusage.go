package main

import (
	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
)

// usageRewrite is what --add-usage changes of exchanges, whose requests are in the pinned dialect or else in that of their
// path; nil without the flag.
func usageRewrite(c *cli.Context, pinned string) (func(*proxy.Call, exchange.Identity) proxy.Rewrite, error) {
	if !c.Bool("add-usage") {
		return nil, nil
	}
	catalog, err := engines.Builtin()
	if err != nil {
		return nil, err
	}
	return func(c *proxy.Call, engine exchange.Identity) proxy.Rewrite {
		return addUsage(wire.DialectFor(wire.Dialect(pinned), c.Target), c, func() bool {
			p, known := catalog.Lookup(engine.Engine)
			return known && p.Requests.Usage == engines.UsageAlways
		})
	}, nil
}

// addUsage asks for the usage of a stream that would have none, and takes it out of the client's stream again.
func addUsage(d wire.Dialect, c *proxy.Call, reportsAnyway func() bool) proxy.Rewrite {
	ask := wire.AddUsage(d, c.Headers, c.Body)
	switch {
	case ask.Body == nil:
		return proxy.Rewrite{Notes: ask.Notes}
	case reportsAnyway():
		return proxy.Rewrite{Notes: []exchange.Intervention{wire.UsageNotAsked("reported_anyway")}}
	}
	return proxy.Rewrite{Body: ask.Body, Notes: ask.Notes, Answer: func() proxy.Filter { return wire.NewUsageFilter() }}
}
