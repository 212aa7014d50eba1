package web

import (
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
)

// following is how far one running exchange was read. Each look goes on from where the one before left off.
type following struct {
	model  string
	parser *wire.Parser
	reads  int // reads the parser has taken
	bytes  int // body bytes of them
	events int // events whose times are in times
	times  []float64
	tokens int64 // counted by token ids; < 0 when an event does not tell
	count  int64 // the engine's running count, -1 for none
}

func newFollowing(l *proxy.Live) *following {
	return &following{model: wire.ReadRequest(l.Target, nil, l.RequestBody).Model, count: -1}
}

// feed gives the parser the reads that came since the last look.
func (f *following) feed(l *proxy.Live) {
	if l.Response == nil {
		return
	}
	if f.parser == nil {
		f.parser = wire.NewParser(wire.InfoOf(&exchange.Exchange{Request: exchange.Request{Target: l.Target}, Response: *l.Response}))
	}
	for ; f.reads < len(l.Reads); f.reads++ {
		n := l.Reads[f.reads].Size
		for _, part := range bytesAt(l.Chunks, f.bytes, n) {
			f.parser.Feed(part, f.reads)
		}
		f.bytes += n
	}
	t := f.parser.Snapshot()
	for _, e := range t.Events[f.events:] {
		if e.Running >= 0 {
			f.count = e.Running
		}
		switch {
		case e.Kinds == 0 || f.tokens < 0:
		case e.Tokens < 0:
			f.tokens = -1
		default:
			f.tokens += int64(e.Tokens)
		}
	}
	timeline := l.Timeline
	timeline.Reads = l.Reads
	f.times = tokenTimes(&exchange.Exchange{Timeline: timeline}, t, f.events, f.times)
	f.events = len(t.Events)
}

// stream is what the exchange looks like now.
func (f *following) stream(l *proxy.Live) Stream {
	path, _, _ := cutQuery(l.Target)
	s := Stream{
		ID: l.ID, Seq: l.Seq, Upstream: l.Upstream, Method: l.Method, Path: path, Model: f.model, Started: l.Started,
		Age: clock.Since(l.Started), Bytes: l.Size, Events: len(f.times), Times: f.times[:len(f.times):len(f.times)],
	}
	switch {
	case l.Response == nil:
		s.Phase = PhaseWaiting
	case s.Events == 0:
		s.Phase = PhasePrefill
	default:
		s.Phase = PhaseDecode
		s.First = time.Duration(f.times[0] * float64(time.Millisecond))
	}
	s.Tokens, s.Estimated = f.total()
	s.Rate = f.rate(l, s.Age, s.Tokens)
	return s
}

// total is the number of tokens so far, and whether it is a count of events.
func (f *following) total() (n int64, estimated bool) {
	switch {
	case f.count >= 0:
		return f.count, false
	case f.tokens > 0:
		return f.tokens, false
	}
	return int64(len(f.times)), true
}

// rate is tokens a second over the window that ends now. A stream that has just begun is taken since its first token.
func (f *following) rate(l *proxy.Live, age time.Duration, tokens int64) float64 {
	sent, ok := l.Timeline.SendStart.NS()
	if !ok || len(f.times) < 2 {
		return 0
	}
	now := float64(int64(age)-sent) / 1e6
	from := max(f.times[0], now-float64(rateWindow/time.Millisecond))
	n := 0
	for i := len(f.times) - 1; i >= 0 && f.times[i] > from; i-- {
		n++
	}
	if now <= from {
		return 0
	}
	perEvent := float64(tokens) / float64(len(f.times))
	return float64(n) * perEvent / (now - from) * 1e3
}

// bytesAt are n bytes from offset at of the bytes in chunks, as slices of them; fewer when they end before.
func bytesAt(chunks [][]byte, at, n int) [][]byte {
	var out [][]byte
	for _, c := range chunks {
		if at >= len(c) {
			at -= len(c)
			continue
		}
		part := c[at:min(len(c), at+n)]
		out, n, at = append(out, part), n-len(part), 0
		if n == 0 {
			break
		}
	}
	return out
}
