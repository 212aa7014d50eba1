package recorder

import (
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// A worker takes what is queued when the first of it is handDelay old, or when it is handRecords long or handBytes
// large. To wake a goroutine that sleeps costs more than to prepare a small exchange, and one that wakes beside a
// stream takes a processor away from it.
const (
	handDelay   = 4 * time.Millisecond
	handRecords = 64
	handBytes   = 1 << 20
)

// queued is an offered exchange with what the queue must remember of it.
type queued struct {
	x    *exchange.Exchange
	seq  uint64
	cost int64 // bytes of memory
}

// queue is what waits for a worker. Its fields and put, pop and end belong to the holder of the writer's mu.
type queue struct {
	waiting []queued
	bytes   int64         // of waiting
	some    chan struct{} // one token: something waits, for one worker to gather
	enough  chan struct{} // one token: what waits is worth a worker's while
	ended   chan struct{} // closed: nothing more comes
}

func newQueue() queue {
	return queue{some: make(chan struct{}, 1), enough: make(chan struct{}, 1), ended: make(chan struct{})}
}

// put adds one.
func (q *queue) put(x queued) {
	q.waiting = append(q.waiting, x)
	q.bytes += x.cost
	q.signal(len(q.waiting) == 1)
}

// signal tells a worker that something waits, and when that is enough.
func (q *queue) signal(first bool) {
	if first {
		trySend(q.some)
	}
	if len(q.waiting) >= handRecords || q.bytes >= handBytes {
		trySend(q.enough)
	}
}

// pop takes the oldest that waits, enough for one worker. What is left is for the next one at once.
func (q *queue) pop(into []queued) []queued {
	n, bytes := 0, int64(0)
	for n < len(q.waiting) && n < handRecords && bytes < handBytes {
		bytes += q.waiting[n].cost
		n++
	}
	into = append(into[:0], q.waiting[:n]...)
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.bytes -= bytes
	select {
	case <-q.enough: // it spoke of what was taken
	default:
	}
	if len(q.waiting) > 0 {
		q.signal(true)
	}
	return into
}

// wait returns when there is something to pop, after more had time to come, and reports false when nothing comes any
// more. timer is the worker's, and stopped.
func (q *queue) wait(timer *time.Timer) bool {
	select {
	case <-q.some:
	case <-q.ended:
		return false
	}
	timer.Reset(handDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.enough:
	case <-q.ended:
	}
	return true
}

// end says that nothing more comes.
func (q *queue) end() { close(q.ended) }

func trySend(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
