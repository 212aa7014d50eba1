package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Session is what the listeners and drivers of one run share: the run, the order of exchanges, the memory budget, the
// sink and the counters. It is safe for concurrent use.
type Session struct {
	opts       SessionOptions
	seq        atomic.Uint64
	budget     budget
	identities sync.Map // upstream name -> exchange.Identity, learned since the session began

	mu      sync.Mutex
	running map[*flight]struct{}
	ends    map[exchange.End]int64
	turned  chan struct{} // closed when the session turns idle or busy; nil while nobody waits for that

	accepted  atomic.Int64
	dropped   atomic.Int64
	truncated atomic.Int64
	refused   [refusals]atomic.Int64
}

// NewSession makes a session with no exchange in it.
func NewSession(o SessionOptions) *Session {
	o.MaxBody = orDefault(o.MaxBody, DefaultMaxBody)
	o.MaxReads = orDefault(o.MaxReads, DefaultMaxReads)
	o.Budget = orDefault(o.Budget, DefaultBudget)
	return &Session{
		opts:    o,
		budget:  budget{limit: o.Budget},
		running: map[*flight]struct{}{},
		ends:    map[exchange.End]int64{},
	}
}

// add puts a new exchange among the running ones.
func (s *Session) add(f *flight) {
	s.accepted.Add(1)
	s.mu.Lock()
	s.running[f] = struct{}{}
	if len(s.running) == 1 {
		s.turn()
	}
	s.mu.Unlock()
}

// finish takes a sealed exchange from the running ones and offers it to the sink.
func (s *Session) finish(f *flight, x *exchange.Exchange) {
	s.mu.Lock()
	delete(s.running, f)
	if len(s.running) == 0 {
		s.turn()
	}
	s.ends[x.End]++
	s.mu.Unlock()
	if x.State == exchange.StateTruncated {
		s.truncated.Add(1)
	}
	if s.opts.Sink != nil && !s.offer(x) {
		s.dropped.Add(1)
	}
}

// offer shields the stream from a sink that panics: the exchange then counts as dropped.
func (s *Session) offer(x *exchange.Exchange) (taken bool) {
	defer func() {
		if recover() != nil {
			taken = false
		}
	}()
	return s.opts.Sink.Offer(x)
}

// cutLargest shortens the largest running record, so that the memory of all stays near the budget. Records too small
// to be hashed are left alone: cutting them frees little and would lose their digest.
func (s *Session) cutLargest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var largest *record
	for f := range s.running {
		r := &f.rec
		if r.cut.Load() || !r.hashing.Load() {
			continue
		}
		if largest == nil || r.log.Load().Len() > largest.log.Load().Len() {
			largest = r
		}
	}
	if largest != nil {
		largest.shorten()
	}
}

// cancelAll ends the running exchanges that belong to srv.
func (s *Session) cancelAll(srv *Server, end exchange.End, cause exchange.Cause) {
	s.mu.Lock()
	var all []*flight
	for f := range s.running {
		if f.call.server == srv {
			all = append(all, f)
		}
	}
	s.mu.Unlock()
	for _, f := range all {
		f.cancel(end, cause)
	}
}

// runs reports whether an exchange of srv is not sealed yet.
func (s *Session) runs(srv *Server) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.running {
		if f.call.server == srv {
			return true
		}
	}
	return false
}

// refusal is why a request never became an exchange.
type refusal int

const (
	refusedKey refusal = iota
	refusedMalformed
	refusedTooLarge
	refusedBusy
	refusedSlow
	refusals // how many there are
)

// Stats are the counters of a session.
type Stats struct {
	Accepted  int64                  `json:"accepted"`  // exchanges begun
	Running   int64                  `json:"running"`   // of them not sealed yet
	Ends      map[exchange.End]int64 `json:"ends"`      // sealed ones by how they ended
	Dropped   int64                  `json:"dropped"`   // sealed ones that the sink did not take
	Truncated int64                  `json:"truncated"` // sealed ones whose record was cut
	Held      int64                  `json:"held"`      // bytes that running exchanges hold against the budget

	RefusedKey       int64 `json:"refused_key"`       // 401: no or wrong API key
	RefusedMalformed int64 `json:"refused_malformed"` // 400, 431: not HTTP, or a head over the limit
	RefusedTooLarge  int64 `json:"refused_too_large"` // 413: body over the limit
	RefusedBusy      int64 `json:"refused_busy"`      // 503: the memory budget is spent
	RefusedSlow      int64 `json:"refused_slow"`      // 408: the request did not come in time
}

// Stats reads the counters.
func (s *Session) Stats() Stats {
	st := Stats{
		Accepted:         s.accepted.Load(),
		Dropped:          s.dropped.Load(),
		Truncated:        s.truncated.Load(),
		Held:             s.budget.used.Load(),
		RefusedKey:       s.refused[refusedKey].Load(),
		RefusedMalformed: s.refused[refusedMalformed].Load(),
		RefusedTooLarge:  s.refused[refusedTooLarge].Load(),
		RefusedBusy:      s.refused[refusedBusy].Load(),
		RefusedSlow:      s.refused[refusedSlow].Load(),
		Ends:             map[exchange.End]int64{},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Running = int64(len(s.running))
	for e, n := range s.ends {
		st.Ends[e] = n
	}
	return st
}
