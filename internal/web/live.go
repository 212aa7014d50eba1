package web

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
)

// The bounds of what a Live holds.
const (
	keptEnded  = 60   // exchanges that ended last
	keptTimes  = 2048 // token times of an ended one: enough for a small picture
	rateWindow = 2 * time.Second
)

// Live is what a capture is doing: the exchanges that run now, those that ended last, and how each engine answers. It asks
// no engine anything. It is safe for concurrent use, and looking costs the measured path nothing.
type Live struct {
	running func() []proxy.Live

	looking sync.Mutex // held while streams are read, which may take long; guards seen
	seen    map[exchange.ID]*following

	mu      sync.Mutex // held for moments: recording waits for it
	ended   []Ended    // the last one last; at most twice those that are kept
	engines map[string]*Engine
}

// NewLive follows the exchanges that running tells of, such as proxy.Session.Live.
func NewLive(running func() []proxy.Live) *Live {
	return &Live{running: running, seen: map[exchange.ID]*following{}, engines: map[string]*Engine{}}
}

// Phase is how far a running exchange has come.
type Phase string

// The phases of a running exchange.
const (
	PhaseWaiting Phase = "waiting" // no response head yet
	PhasePrefill Phase = "prefill" // the head is there, and no token event
	PhaseDecode  Phase = "decode"  // tokens come
)

// Stream is a running exchange at one moment.
type Stream struct {
	ID        exchange.ID
	Seq       uint64
	Upstream  string
	Method    string
	Path      string // target without its query
	Model     string // as asked for, "" when the request names none
	Started   time.Time
	Age       time.Duration
	Phase     Phase
	Bytes     int64         // of the response body
	Events    int           // token events
	Tokens    int64         // by the engine's own running count or token ids; else Events
	Estimated bool          // Tokens are Events
	First     time.Duration // first token event, from t0; meaningless without one
	Rate      float64       // tokens a second over the last two seconds, with the basis of Tokens
	Times     []float64     // of the token events, ms from t0
}

// Name is the model, or what stands for it where the request names none.
func (s *Stream) Name() string { return cmp.Or(s.Model, s.Method+" "+s.Path) }

// Ended is an exchange that has ended, with the times of its token events.
type Ended struct {
	Row   exchange.Summary
	Times []float64 // ms from t0, ascending, thinned to at most 2048
}

// Engine is what is known of an upstream from its answers and from what was read of it.
type Engine struct {
	Name       string
	Deployment *exchange.Deployment // as read last; nil when it was not
	Running    int
	Answers    int64     // exchanges that ended
	Last       time.Time // end of the last one, zero before
	Failures   int       // in a row: ends that are the engine's fault
	Trouble    string    // of the last of them: its outcome and cause
}

// Health is one word for how the engine answers: unknown, answering or failing.
func (e *Engine) Health() string {
	switch {
	case e.Answers == 0:
		return "unknown"
	case e.Failures > 0:
		return "failing"
	}
	return "answering"
}

// Running are the exchanges that run now, in order of acceptance: how many, and the oldest of them, at most limit, read up
// to what they have published.
func (l *Live) Running(limit int) (streams []Stream, all int) {
	l.looking.Lock()
	defer l.looking.Unlock()
	live := l.running()
	l.forget(live)
	l.countRunning(live)
	for _, x := range live[:min(limit, len(live))] {
		f := l.seen[x.ID]
		if f == nil {
			f = newFollowing(&x)
			l.seen[x.ID] = f
		}
		f.feed(&x)
		streams = append(streams, f.stream(&x))
	}
	return streams, len(live)
}

func (l *Live) countRunning(live []proxy.Live) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.engines {
		e.Running = 0
	}
	for i := range live {
		l.engine(live[i].Upstream).Running++
	}
}

func (l *Live) forget(live []proxy.Live) {
	running := make(map[exchange.ID]bool, len(live))
	for i := range live {
		running[live[i].ID] = true
	}
	for id := range l.seen {
		if !running[id] {
			delete(l.seen, id)
		}
	}
}

func (l *Live) engine(name string) *Engine {
	e := l.engines[name]
	if e == nil {
		e = &Engine{Name: name}
		l.engines[name] = e
	}
	return e
}

// Upstreams makes the engines known that are there before the first exchange.
func (l *Live) Upstreams(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		l.engine(n)
	}
}

// Describe takes what was read of an engine.
func (l *Live) Describe(d exchange.Deployment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.engine(d.Upstream).Deployment = &d
}

// End takes an exchange that has ended, with what was derived of it. It keeps nothing of x.
func (l *Live) End(x *exchange.Exchange, t *wire.Transcript, row exchange.Summary) {
	e := Ended{Row: row, Times: thinned(tokenTimes(x, t, 0, nil))}
	if l.looking.TryLock() { // else whoever looks forgets it, now or the next time
		delete(l.seen, x.ID)
		l.looking.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) == 2*keptEnded { // moved seldom: this is on the way of every exchange
		l.ended = append(l.ended[:0], l.ended[keptEnded:]...)
	}
	l.ended = append(l.ended, e)
	g := l.engine(x.Upstream)
	g.Answers++
	if g.Last = clock.Now(); enginesFault(&row) {
		g.Failures++
		g.Trouble = outcomeText(&row)
	} else {
		g.Failures, g.Trouble = 0, ""
	}
}

// enginesFault reports whether an end speaks against the engine. A refusal of the client's request does not.
func enginesFault(row *exchange.Summary) bool {
	switch row.Outcome {
	case exchange.OutcomeUpstreamTruncated, exchange.OutcomeStreamError, exchange.OutcomeTimeout:
		return true
	case exchange.OutcomeUpstreamError:
		return row.Status == 0 || row.Status >= 500
	}
	return false
}

// Ended are the exchanges that ended last, the newest first.
func (l *Live) Ended() []Ended {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.ended[max(0, len(l.ended)-keptEnded):])
	slices.Reverse(out)
	return out
}

// Engines are the upstreams by name.
func (l *Live) Engines() []Engine {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []Engine
	for _, e := range l.engines {
		out = append(out, *e)
	}
	slices.SortFunc(out, func(a, b Engine) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// tokenTimes adds the times of the token events from event number from on to times, in ms from t0. An event whose read is
// not in the record ends it.
func tokenTimes(x *exchange.Exchange, t *wire.Transcript, from int, times []float64) []float64 {
	sent, ok := x.Timeline.SendStart.NS()
	if !ok {
		return times
	}
	for _, e := range t.Events[from:] {
		if e.Read < 0 || e.Read >= len(x.Timeline.Reads) {
			break
		}
		if e.Kinds != 0 {
			times = append(times, float64(x.Timeline.Reads[e.Read].At-sent)/1e6)
		}
	}
	return times
}

// thinned leaves out times evenly until they are few.
func thinned(times []float64) []float64 {
	if len(times) <= keptTimes {
		return times
	}
	out := make([]float64, keptTimes)
	for i := range out {
		out[i] = times[i*len(times)/keptTimes]
	}
	return out
}

// Name is the model, or what stands for it.
func (e Ended) Name() string { return cmp.Or(e.Row.Model, e.Row.Method+" "+e.Row.Path) }

// Good reports whether the exchange came to its end.
func (e Ended) Good() bool { return e.Row.Outcome == exchange.OutcomeComplete }

// Verdict is the outcome with all that makes it special.
func (e Ended) Verdict() string { return verdictText(&e.Row) }

// Shown is a figure of the row.
func (e Ended) Shown(name string) shown { return showing(e.Row.Metrics[name]) }
