package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// Write is one write call to the client. All instants but Wall are nanoseconds since the request was read whole.
type Write struct {
	Wall   int64 `json:"wall_ns"` // Unix nanoseconds right before the call
	At     int64 `json:"at_ns"`   // the same instant on the monotonic clock
	Done   int64 `json:"done_ns"` // when the call returned; 0 while it runs
	Plan   int64 `json:"plan_ns"` // when it was due
	Offset int   `json:"offset"`  // of its first byte among all bytes sent for the request
	Size   int   `json:"size"`
	Body   int   `json:"body_end"` // body bytes (after de-chunking) sent when it is done
	Token  bool  `json:"token"`    // it completes an event with generated content
	Tokens int   `json:"tokens"`   // generated tokens in it
}

// How a request ended, as the server saw it.
const (
	EndedSent  = "sent"        // everything planned was written, a planned misbehavior included
	EndedGone  = "client_gone" // the client left before
	EndedClose = "shutdown"    // the server was closed
)

// Record is the truth about one request.
type Record struct {
	Request
	Conn    int64   `json:"conn"`       // connection, from 1
	Nth     int     `json:"nth"`        // number of the request on its connection, from 1
	Wall    int64   `json:"wall_ns"`    // Unix nanoseconds when the request was read whole
	Slot    int64   `json:"slot_ns"`    // when it got its slot; 0 while it waits
	Gone    int64   `json:"gone_ns"`    // when the client was found gone; 0 = not
	End     int64   `json:"end_ns"`     // when the server was done with it; 0 while it runs
	Ended   string  `json:"ended"`      // EndedSent ...; "" while it runs
	Usage   Usage   `json:"usage"`      // of a generated answer
	Writes  []Write `json:"writes"`     // in order
	Sent    []byte  `json:"sent"`       // bytes written, up to Config.KeepBytes
	SentLen int     `json:"sent_bytes"` // bytes written
}

// FirstToken is the instant of the first write with generated content; ok is false when there is none.
func (r Record) FirstToken() (at time.Duration, ok bool) {
	i := slices.IndexFunc(r.Writes, func(w Write) bool { return w.Token })
	if i < 0 {
		return 0, false
	}
	return time.Duration(r.Writes[i].At), true
}

// LastToken is the instant of the last write with generated content; ok is false when there is none.
func (r Record) LastToken() (at time.Duration, ok bool) {
	for _, w := range slices.Backward(r.Writes) {
		if w.Token {
			return time.Duration(w.At), true
		}
	}
	return 0, false
}

// ConnRecord is the truth about one connection.
type ConnRecord struct {
	ID       int64  `json:"id"`
	Accepted int64  `json:"accepted_ns"` // Unix nanoseconds
	Requests int    `json:"requests"`    // read whole
	Closed   int64  `json:"closed_ns"`   // Unix nanoseconds; 0 while open
	By       string `json:"closed_by"`   // client or server; "" while open
	Err      string `json:"error"`       // why reading a request stopped, "" for a plain end
}

// Truth is what the server did so far, the oldest first. Requests on the reserved paths are not part of it.
type Truth struct {
	Total       int64        `json:"total"` // requests read since the start, dropped records included
	Requests    []Record     `json:"requests"`
	Connections []ConnRecord `json:"connections"`
}

// Count is the number of kept requests with this method and path.
func (t Truth) Count(method, path string) int {
	n := 0
	for _, r := range t.Requests {
		if r.Method == method && r.Path() == path {
			n++
		}
	}
	return n
}

// journal collects the truth. One lock is enough: it is held for appends only, never across a write.
type journal struct {
	keep      int // requests and connections kept
	keepBytes int // bytes sent kept of each request

	mu      sync.Mutex
	total   int64
	conns   int64
	recs    []*Record
	cons    []*ConnRecord
	waiters int
	changed chan struct{} // closed at the next change, when somebody waits
}

func (j *journal) change(f func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f()
	if j.waiters > 0 {
		close(j.changed)
		j.changed, j.waiters = make(chan struct{}), 0
	}
}

// dropOldest keeps the last n of list.
func dropOldest[T any](list []*T, n int) []*T {
	if len(list) <= n {
		return list
	}
	return slices.Delete(list, 0, len(list)-n)
}

func (j *journal) accepted() *ConnRecord {
	c := &ConnRecord{Accepted: clock.Now().UnixNano()}
	j.change(func() {
		j.conns++
		c.ID = j.conns
		j.cons = dropOldest(append(j.cons, c), j.keep)
	})
	return c
}

func (j *journal) closed(c *ConnRecord, by string, err error) {
	j.change(func() {
		c.Closed, c.By = clock.Now().UnixNano(), by
		if err != nil {
			c.Err = err.Error()
		}
	})
}

// began enters a request that was read at the instant read, and numbers it.
func (j *journal) began(c *ConnRecord, req Request, read time.Time) *Record {
	r := &Record{Request: req, Conn: c.ID, Wall: read.UnixNano()}
	j.change(func() {
		j.total++
		c.Requests++
		r.Seq, r.Nth = j.total, c.Requests
		j.recs = dropOldest(append(j.recs, r), j.keep)
	})
	return r
}

// writing enters a write that is about to happen, of a request that was read at the instant read. The stamp is taken last:
// what entering costs, and the wait for the lock, is no part of the way to the client.
func (j *journal) writing(r *Record, read time.Time, w Write, data []byte) {
	j.change(func() {
		w.Offset = r.SentLen
		r.Writes = append(r.Writes, w)
		r.SentLen += len(data)
		if room := j.keepBytes - len(r.Sent); room > 0 {
			r.Sent = append(r.Sent, data[:min(room, len(data))]...)
		}
		now, entered := clock.Now(), &r.Writes[len(r.Writes)-1]
		entered.Wall, entered.At = now.UnixNano(), int64(now.Sub(read))
	})
}

// wrote completes the last write. A failed one is cut to the n bytes that left.
func (j *journal) wrote(r *Record, done int64, n int) {
	j.change(func() {
		w := &r.Writes[len(r.Writes)-1]
		w.Done = done
		if n < w.Size {
			r.SentLen -= w.Size - n
			r.Sent = r.Sent[:min(len(r.Sent), r.SentLen)]
			w.Size = n
		}
	})
}

func (j *journal) truth() Truth {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.copyLocked()
}

func (j *journal) copyLocked() Truth {
	t := Truth{Total: j.total, Requests: make([]Record, len(j.recs)), Connections: make([]ConnRecord, len(j.cons))}
	for i, r := range j.recs {
		t.Requests[i] = *r
		t.Requests[i].Writes = slices.Clone(r.Writes)
		t.Requests[i].Sent = slices.Clone(r.Sent)
	}
	for i, c := range j.cons {
		t.Connections[i] = *c
	}
	return t
}

func (j *journal) reset() {
	j.change(func() { j.recs, j.cons = nil, nil })
}

func (j *journal) await(ctx context.Context, met func(Truth) bool) (Truth, error) {
	for {
		j.mu.Lock()
		t := j.copyLocked()
		j.waiters++
		changed := j.changed
		j.mu.Unlock()
		if met(t) {
			return t, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return t, context.Cause(ctx)
		}
	}
}
