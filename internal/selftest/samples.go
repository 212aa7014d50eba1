package selftest

import (
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

const nsPerUS = 1e3

// arrivals are the instants (Unix ns) at which bodies of growing size were there.
type arrivals struct {
	reads []exchange.Read
	wall  int64
	at    int // read that is looked at
	got   int // body bytes up to and with it
}

func newArrivals(x *exchange.Exchange) *arrivals {
	a := &arrivals{reads: x.Timeline.Reads, wall: x.Timeline.Wall.UnixNano()}
	if len(a.reads) > 0 {
		a.got = a.reads[0].Size
	}
	return a
}

// of is the read with which byte number n of the body was there. n must not shrink from call to call.
func (a *arrivals) of(n int) (read int, at int64, ok bool) {
	for a.got < n {
		a.at++
		if a.at >= len(a.reads) {
			return 0, 0, false
		}
		a.got += a.reads[a.at].Size
	}
	return a.at, a.wall + a.reads[a.at].At, true
}

// firstToken is the time from sending the request to its first token, less the time that the engine took itself, in us.
func firstToken(a *answer) (us float64, ok bool) {
	sent, okSent := a.seen.Timeline.SendStart.NS()
	for _, w := range a.truth.Writes {
		if !w.Token {
			continue
		}
		_, at, ok := newArrivals(a.seen).of(w.Body)
		if !ok || !okSent {
			return 0, false
		}
		return float64(at-a.seen.Timeline.Wall.UnixNano()-sent-w.At) / nsPerUS, true
	}
	return 0, false
}

// eventTimes are the times from the engine's write of each token event to its arrival, in us.
func eventTimes(a *answer) (us []float64) {
	came := newArrivals(a.seen)
	for _, w := range a.truth.Writes {
		if _, at, ok := came.of(w.Body); ok && w.Token {
			us = append(us, float64(at-w.Wall)/nsPerUS)
		}
	}
	return us
}

// readsOf are the reads that completed each write, -1 for a write that did not come.
func readsOf(x *exchange.Exchange, writes []sim.Write) []int {
	came := newArrivals(x)
	out := make([]int, len(writes))
	for i, w := range writes {
		read, _, ok := came.of(w.Body)
		if !ok {
			read = -1
		}
		out[i] = read
	}
	return out
}

// stamps are what the reads of one side come to, held against the engine's writes.
type stamps struct {
	errors   []float64 // stamp - write in us, of events that are last in their read and whose write is known
	returned []float64 // the same with the moment at which the read was done with instead of its stamp
	events   int       // token events
	merged   int       // of them in one read with a later token event
	unsure   int       // of those last in their read, the ones whose write is not known well enough
	answers  int
	lost     int // answers with a read that the kernel had no stamp for
}

// add holds one recorded exchange against the engine's writes of it.
func (s *stamps) add(x *exchange.Exchange, writes []sim.Write) {
	s.answers++
	if x.Timeline.Clock != exchange.ClockKernel {
		s.lost++
	}
	next, nextToken := -1, -1 // reads of the writes behind the one looked at
	for i, read := range slices.Backward(readsOf(x, writes)) {
		w := writes[i]
		if w.Token && read >= 0 {
			s.events++
			if read == nextToken {
				s.merged++
			}
			if read != next {
				s.event(x, x.Timeline.Reads[read], w)
			}
			nextToken = read
		}
		next = read
	}
}

// writeBound is how long the engine's write of an event may take. The bytes reach the kernel somewhere between its stamp
// and the return of the call: when the engine lost its core in between, what it says is no measure of ours. The choice
// depends on the engine's own clock alone, so it favors no stamp.
const writeBound = 100 * time.Microsecond

// event takes the stamp of an event that is last in its read.
func (s *stamps) event(x *exchange.Exchange, r exchange.Read, w sim.Write) {
	if w.Done == 0 && w.At != 0 || w.Done-w.At > int64(writeBound) {
		s.unsure++
		return
	}
	late := x.Timeline.Wall.UnixNano() + r.At - w.Wall
	s.errors = append(s.errors, float64(late)/nsPerUS)
	s.returned = append(s.returned, float64(late+r.Write)/nsPerUS)
}
