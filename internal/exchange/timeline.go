package exchange

import (
	"encoding/json"
	"fmt"
	"time"
)

// Mark is one instant of a Timeline: nanoseconds since its origin, or "never happened", which is the zero value.
type Mark struct {
	ns  int64
	set bool
}

// MarkAt is the mark of an instant ns nanoseconds after the origin.
func MarkAt(ns int64) Mark { return Mark{ns: ns, set: true} }

// NS is the instant in nanoseconds since the origin; ok is false when it never happened.
func (m Mark) NS() (ns int64, ok bool) { return m.ns, m.set }

// Happened reports whether the instant was seen at all.
func (m Mark) Happened() bool { return m.set }

// MarshalJSON writes nanoseconds, or null for an instant that never happened.
func (m Mark) MarshalJSON() ([]byte, error) {
	if !m.set {
		return []byte("null"), nil
	}
	return json.Marshal(m.ns)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Mark) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*m = Mark{}
		return nil
	}
	var ns int64
	if err := json.Unmarshal(b, &ns); err != nil {
		return fmt.Errorf("read mark %q: %w", b, err)
	}
	*m = MarkAt(ns)
	return nil
}

// StampClock says which clock made the stamps of the reads.
type StampClock string

const (
	// ClockKernel is the kernel's receive time of the newest segment a read returned.
	ClockKernel StampClock = "kernel"
	// ClockMixed is ClockKernel but for reads that the kernel had no usable stamp for: these carry the read stamp.
	ClockMixed StampClock = "mixed"
	// ClockRead is the moment the Read call returned to us.
	ClockRead StampClock = "read"
)

// Read is one successful read from the engine.
type Read struct {
	At    int64 // when its bytes arrived, ns since the origin, by the clock the Timeline names
	Write int64 // ns from At until the write of these bytes to the client returned; 0 for a read that gave the client nothing
	Size  int   // body bytes it brought, after de-chunking; 0 when it brought framing only
}

// Timeline is the clock of one exchange. Marks are in the order in which they happen; all but Intended
// were read from the clock.
type Timeline struct {
	Wall  time.Time  `json:"wall"`  // the origin, UTC
	Clock StampClock `json:"clock"` // what stamped the reads; "" when nothing was read

	// Intended is when the plan of an open loop wanted SendStart to be. It is before Accepted, which is 0, by what the sender
	// was late: a negative number.
	Intended Mark `json:"intended"`

	Accepted    Mark `json:"accepted"`        // first byte of the request known to the proxy; the origin of a replayed request
	RequestRead Mark `json:"request_read"`    // request head and body whole
	Dialed      Mark `json:"upstream_dialed"` // connection in hand, dialed or from the pool
	SendStart   Mark `json:"send_start"`      // t0: the moment before the first request byte was written to the engine
	SendDone    Mark `json:"send_done"`       // the write of the last request byte returned; the answer may have arrived before
	HeaderRead  Mark `json:"header_read"`     // final response head complete
	FirstRead   Mark `json:"first_read"`      // first read that brought a body byte
	LastRead    Mark `json:"last_read"`       // last read that brought a body byte
	BodyEnd     Mark `json:"body_end"`        // end of the response body known, proper or not
	ClientDone  Mark `json:"client_done"`     // last byte written to the client, or the client was found gone

	Reused bool   `json:"reused"` // the connection came from the pool
	Reads  []Read `json:"-"`      // every read after the response head, in order
}
