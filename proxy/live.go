package proxy

import (
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// Live is a look at one running exchange. Taking and reading it costs the measured path nothing.
type Live struct {
	ID       exchange.ID
	Seq      uint64
	Upstream string
	Method   string
	Target   string    // credentials masked
	Started  time.Time // wall clock, UTC

	RequestBody []byte             // whole; must not be changed
	Response    *exchange.Response // head without body, credentials masked; nil until it came
	Timeline    exchange.Timeline  // marks up to the response head; zero marks until it came
	Size        int64              // response body bytes that passed
	Chunks      [][]byte           // response body bytes that are kept, in order; must not be changed
	Reads       []exchange.Read    // reads whose bytes are with the client; Chunks may be one read ahead
}

// Live are the exchanges that run now, in order of acceptance.
func (s *Session) Live() []Live {
	s.mu.Lock()
	flights := make([]*flight, 0, len(s.running))
	for f := range s.running {
		flights = append(flights, f)
	}
	s.mu.Unlock()
	out := make([]Live, len(flights))
	for i, f := range flights {
		out[i] = f.look()
	}
	slices.SortFunc(out, func(a, b Live) int { return int(int64(a.Seq) - int64(b.Seq)) })
	return out
}

// published is what a look from outside may see of the response head; it never changes.
type published struct {
	response exchange.Response
	timeline exchange.Timeline
}

func (f *flight) look() Live {
	l := Live{
		ID: f.id, Seq: f.seq, Upstream: f.up.opts.Name,
		Method: f.call.Method, Target: redact.Target(f.call.Target), Started: f.origin.Wall(),
		RequestBody: f.call.Body,
	}
	if p := f.head.Load(); p != nil {
		r := p.response
		r.Head, r.Headers = redact.Head(r.Head), redact.Headers(r.Headers)
		l.Response, l.Timeline = &r, p.timeline
	}
	l.Reads = f.rec.reads.All()
	log := f.rec.log.Load()
	l.Size, l.Chunks = f.rec.size.Load(), log.Chunks(log.Len())
	return l
}
