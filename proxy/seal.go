package proxy

import (
	"errors"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// seal ends the exchange, hands its record to the sink and returns it. An exchange whose response was not read to its
// end is sealed as abandoned. Calling it again returns the same record.
func (f *flight) seal() *exchange.Exchange {
	if f.sealed != nil {
		return f.sealed
	}
	if f.end == "" {
		_ = f.fail(errAbandoned, "body")
	}
	if f.filter != nil {
		f.notes = append(f.notes, f.filter.Notes()...)
	}
	x := f.exchange()
	redact.Exchange(x)
	f.sealed = x
	f.rec.release()
	f.s.finish(f, x)
	return x
}

var errAbandoned = errors.New("the proxy stopped reading")

// exchange puts the record together; credentials are still in it.
func (f *flight) exchange() *exchange.Exchange {
	o := &f.s.opts
	x := &exchange.Exchange{
		ID: f.id, Run: o.Run, Seq: f.seq, Cell: f.call.Cell, Wave: f.call.Wave,
		Upstream: f.up.opts.Name, UpstreamURL: f.up.url, Mode: o.Mode, Identity: f.s.identity(f.up.opts.Name),
		Request: f.request(), Response: f.response, Timeline: f.tl,
		End: f.end, Cause: f.cause, State: exchange.StateStored,
		Origin: f.call.Origin, Item: f.call.Item, Tunnel: f.tunnel, Interventions: f.notes, Harness: o.Harness, Dialect: o.Dialect,
	}
	x.Response.Body = f.rec.body()
	x.Timeline.Reads = f.rec.reads.All()
	if !x.Request.Body.Whole() || !x.Response.Body.Whole() || f.rec.lost {
		x.State = exchange.StateTruncated
	}
	return x
}

func (f *flight) request() exchange.Request {
	c := &f.call
	r := exchange.Request{Method: c.Method, Target: c.Target, Proto: c.Proto, Head: c.Head, Headers: c.Headers}
	if r.Proto == "" {
		r.Proto = "HTTP/1.1"
	}
	if r.Head == nil {
		r.Head = rawHead(c)
	}
	r.Body = exchange.NewBody(c.Body)
	if limit := f.s.opts.MaxBody; r.Body.Size > limit {
		r.Body.Digest = r.Body.Sum()
		r.Body.Kept = limit
		r.Body.Chunks = [][]byte{append([]byte(nil), c.Body[:limit]...)} // a copy, so that the rest can be freed
	}
	return r
}
