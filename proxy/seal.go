package proxy

import (
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// earlyWait is how long a response is waited for after the engine stopped taking the request.
const earlyWait = time.Second

// zeroTime is no deadline.
var zeroTime time.Time

// exchange puts the record together; credentials are still in it.
func (f *flight) exchange() *exchange.Exchange {
	o := &f.s.opts
	x := &exchange.Exchange{
		ID: f.id, Run: o.Run, Seq: f.seq, Cell: f.call.Cell, Wave: f.call.Wave,
		Upstream: f.up.opts.Name, UpstreamURL: f.up.url, Mode: o.Mode, Identity: o.Identity,
		Request: f.request(), Response: f.response, Timeline: f.tl,
		End: f.end, Cause: f.cause, State: exchange.StateStored,
		Origin: f.call.Origin, Tunnel: f.tunnel, Interventions: f.notes, Harness: o.Harness, Dialect: o.Dialect,
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
