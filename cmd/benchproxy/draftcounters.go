package main

import (
	"context"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
)

const (
	// counterTime bounds the reading of an engine's counters around one exchange.
	counterTime = 2 * time.Second
	// counterPause is between two readings that must agree: an engine may count an answer when it has sent it.
	counterPause = 20 * time.Millisecond
	// counterPatience is after how many exchanges an engine that never drafted, or that does not answer, is not asked any
	// more.
	counterPatience = 3
)

// counterSource reads the counters of drafts of one engine. It belongs to one goroutine at a time.
type counterSource struct {
	name   string // of the upstream
	source string
	read   func(context.Context) (exchange.CounterReading, error)
	before *exchange.CounterReading // read since the last exchange ended; nil when there is no such reading
	idle   int                      // exchanges in a row that drafted nothing, of an engine that never did
	failed int                      // readings in a row that did not come, though nothing took them back
	off    bool                     // it counts no drafts, or does not say
}

// newCounterSource is nil for an engine that is not known to count drafts.
func newCounterSource(c *engines.Catalog, t *identified, d exchange.Deployment) *counterSource {
	source, ok := c.Source(d.Engine)
	if !ok {
		return nil
	}
	o := engines.Options{Headers: t.options.Headers, ProbeTimeout: counterTime / 2, Total: counterTime}
	return &counterSource{name: t.name, source: source, read: func(ctx context.Context) (exchange.CounterReading, error) {
		return c.ReadCounters(ctx, t.do, t.url, d.Engine, o)
	}}
}

// settled is the reading that two in a row agree on; nil when there is none within the time.
func (s *counterSource) settled(ctx context.Context) *exchange.CounterReading {
	r := s.twice(ctx)
	switch {
	case r != nil:
		s.failed = 0
	case ctx.Err() == nil:
		s.failed++
		s.off = s.failed >= counterPatience
	}
	return r
}

func (s *counterSource) twice(ctx context.Context) *exchange.CounterReading {
	ctx, cancel := context.WithTimeout(ctx, counterTime)
	defer cancel()
	last, err := s.read(ctx)
	for err == nil {
		pause := time.NewTimer(counterPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		var next exchange.CounterReading
		if next, err = s.read(ctx); err == nil && next.Equal(last) {
			return &next
		}
		last = next
	}
	return nil
}

// begin takes the reading that the next exchange starts from.
func (s *counterSource) begin(ctx context.Context) {
	if s.before = s.settled(ctx); s.before != nil && !s.before.Drafts() {
		s.off, s.before = true, nil
	}
}

// end takes the reading behind an exchange and keeps both with it. The exchange is not in anybody else's hands yet.
func (s *counterSource) end(ctx context.Context, x *exchange.Exchange) {
	before := s.before
	s.before = nil
	after := s.settled(ctx)
	if after == nil {
		return
	}
	x.Counters = &exchange.Counters{Source: s.source, Before: *before, After: *after}
	s.before = after
	if after.Drafted == nil || *after.Drafted > 0 {
		return
	}
	if s.idle++; s.idle >= counterPatience {
		s.off, s.before = true, nil
	}
}

// soloCounters is the sink of a replay that sends one request at a time: it reads the counters when one has ended, before
// the next one is sent.
type soloCounters struct {
	next   proxy.Sink
	source *counterSource // nil until the engine is known; set before anything is sent
}

// Offer is the next sink's, with the counters around the exchange.
func (c *soloCounters) Offer(x *exchange.Exchange) bool {
	if s := c.source; s != nil && !s.off {
		if s.before != nil {
			s.end(context.Background(), x)
		} else {
			s.begin(context.Background()) // the last reading failed
		}
	}
	return c.next.Offer(x)
}

// count takes what an engine was found to be, and reads what the first request starts from.
func (t *replayTarget) count(ctx context.Context, s *counterSource) {
	if t.counters == nil || s == nil {
		return
	}
	s.begin(ctx)
	t.counters.source = s
}

// counting is the sink of a capture that reads the counters around exchanges that run alone. It asks only while nothing
// runs and gives up the moment a request comes; exchanges that it does not hold go straight to the next sink.
type counting struct {
	session *proxy.Session
	next    proxy.Sink
	held    chan heldExchange // one that ran alone, and waits for the reading behind it
	wake    chan struct{}
	last    chan struct{} // closed when the capture ends
	wg      sync.WaitGroup

	mu      sync.Mutex
	sources map[string]*solo // by upstream
}

// solo is a source with the number of exchanges that had begun when it was read.
type solo struct {
	source *counterSource
	ready  bool // it was read since the last exchange; Offer may look at it
	begun  int64
}

type heldExchange struct {
	x  *exchange.Exchange
	of *solo
}

func newCounting(next proxy.Sink) *counting {
	return &counting{next: next, held: make(chan heldExchange, 1), wake: make(chan struct{}, 1), last: make(chan struct{}), sources: map[string]*solo{}}
}

// start begins to read.
func (c *counting) start(session *proxy.Session) {
	c.session = session
	c.wg.Go(c.Run)
}

// found takes what an engine was found to be. One that does not count drafts is not asked.
func (c *counting) found(s *counterSource, upstream string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sources, upstream)
	if s != nil {
		c.sources[upstream] = &solo{source: s}
		mark(c.wake)
	}
}

// Offer holds x for the reading behind it when it ran alone since the one before it, and else hands it on. What is held
// counts as taken: the recorder counts what it then cannot take.
func (c *counting) Offer(x *exchange.Exchange) bool {
	c.mu.Lock()
	of := c.sources[x.Upstream]
	alone := of != nil && of.ready && c.session.Stats().Accepted == of.begun+1
	watched := len(c.sources) > 0
	if of != nil {
		of.ready = false
	}
	c.mu.Unlock()
	if alone {
		select {
		case c.held <- heldExchange{x, of}:
			return true
		default:
		}
	}
	if watched {
		mark(c.wake)
	}
	return c.next.Offer(x)
}

// Run reads until Close. Whatever is held when it ends is read behind and handed on.
func (c *counting) Run() {
	var turned <-chan struct{} // the session turns idle: there are sources to be read
	for {
		select {
		case h := <-c.held:
			c.complete(h)
			turned = c.begin()
		case <-c.wake:
			turned = c.begin()
		case <-turned:
			turned = c.begin()
		case <-c.last:
			select {
			case h := <-c.held:
				c.complete(h)
			default:
			}
			return
		}
	}
}

// quiet is a time in which no exchange runs.
type quiet struct {
	ctx   context.Context // ends when an exchange begins
	done  context.CancelFunc
	begun int64           // exchanges before it
	over  <-chan struct{} // closed when an exchange begins
}

// broken reports whether an exchange began.
func (q *quiet) broken() bool {
	select {
	case <-q.over:
		return true
	default:
		return false
	}
}

// quiet is nil while an exchange runs; changed is then closed when none does any more.
func (c *counting) quiet() (q *quiet, changed <-chan struct{}) {
	idle, changed := c.session.Idle()
	if !idle {
		return nil, changed
	}
	q = &quiet{begun: c.session.Stats().Accepted, over: changed}
	q.ctx, q.done = context.WithCancel(context.Background())
	c.wg.Go(func() {
		select {
		case <-q.ctx.Done():
		case <-q.over:
			q.done()
		}
	})
	return q, changed
}

// complete reads the counters behind a held exchange, unless another one began already, and hands it on.
func (c *counting) complete(h heldExchange) {
	if q, _ := c.quiet(); q != nil {
		if q.begun == h.of.begun+1 {
			h.of.source.end(q.ctx, h.x)
		}
		if q.broken() {
			h.x.Counters = nil // the new one may have moved them already
		}
		c.keep(h.of, q)
		q.done()
	}
	_ = c.next.Offer(h.x) // the recorder counts what it drops
}

// begin reads the sources that have no reading since the last exchange. While exchanges run it gives the channel that is
// closed when that changes.
func (c *counting) begin() (turned <-chan struct{}) {
	for _, s := range c.unread() {
		q, changed := c.quiet()
		if q == nil {
			return changed
		}
		s.source.begin(q.ctx)
		c.keep(s, q)
		q.done()
	}
	return nil
}

// keep lets Offer use the reading of s, if no exchange began meanwhile.
func (c *counting) keep(s *solo, q *quiet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.begun, s.ready = q.begun, s.source.before != nil && !q.broken()
	if s.source.off && c.sources[s.source.name] == s {
		delete(c.sources, s.source.name)
	}
}

func (c *counting) unread() (out []*solo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sources {
		if !s.ready {
			out = append(out, s)
		}
	}
	return out
}

// Close hands on what is held and ends the reading.
func (c *counting) Close() {
	close(c.last)
	c.wg.Wait()
}
