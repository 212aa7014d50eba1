package recorder

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// DropReason says why a record was not stored. The words are part of the JSON contract.
type DropReason string

const (
	DropQueueFull  DropReason = "queue_full"  // it came faster than it could be stored
	DropNoSpace    DropReason = "no_space"    // below the free-space floor
	DropStoreError DropReason = "store_error" // the commit failed
	DropStoreGone  DropReason = "store_gone"  // the directory was moved or removed
	DropEncode     DropReason = "encode"      // it cannot be coded
	DropClosed     DropReason = "closed"      // it came after Close
	DropShutdown   DropReason = "shutdown"    // the time to drain was over
	DropDuplicate  DropReason = "duplicate"   // a record of its id is stored already
	DropInvalid    DropReason = "invalid"     // it has no valid id, or belongs to another run
)

// recordOverhead is the memory counted for a record beside its bodies, heads and reads, in bytes. It bounds the number
// of records in the queue too.
const recordOverhead = 4 << 10

// Writer stores the exchanges of one run. Its methods may be called from any goroutine.
type Writer struct {
	store *Store
	o     WriterOptions

	queue   queue          // offered, bounded by bytes; guarded by mu
	ready   chan []*record // prepared, to the committer
	hurry   chan struct{}  // closed when what is queued is to be dropped
	workers sync.WaitGroup // ends when the queue has ended and is empty
	done    chan struct{}  // closed when the committer has ended
	known   knownBlobs
	bodies  knownBodies
	builder blockBuilder // of the committer

	// writing is held from the moment a write of the run is made up until its counts are published, so that no write
	// undoes another. It is taken before mu, by the committer and by Describe.
	writing sync.Mutex

	mu         sync.Mutex
	closed     bool
	run        exchange.Run // its Counts are those of committed records
	seq        uint64       // highest seen
	bytes      int64        // stored
	queueBytes int64
	acked      int64
	lateDrops  int64 // drops after the closing write, in Health only
	degraded   string
}

// Health is the state of a writer, for people and for /healthz.
type Health struct {
	QueueBytes   int64            `json:"queue_bytes"`
	QueueLimit   int64            `json:"queue_limit"`
	Stored       int64            `json:"stored"`
	Truncated    int64            `json:"truncated"`
	Acknowledged int64            `json:"acknowledged"`
	Dropped      int64            `json:"dropped"`
	DropWhy      map[string]int64 `json:"drop_why,omitempty"`
	Degraded     string           `json:"degraded,omitempty"` // no_space or store_error while recording pauses, else ""
	StoreBytes   *int64           `json:"store_bytes"`        // on disk, as of the last seconds; nil when it cannot be read
	FreeBytes    *int64           `json:"free_bytes"`         // on that disk, as StoreBytes
	FloorBytes   int64            `json:"floor_bytes"`        // free space below which recording pauses
}

// LowOnSpace reports whether the disk has less than twice what recording needs to go on.
func (h Health) LowOnSpace() bool { return h.FreeBytes != nil && *h.FreeBytes < 2*h.FloorBytes }

// NewWriter begins a run. run.ID and run.Started are filled in when they are missing; the run is written at once and
// is open until Close. A run of that id must not exist; a name that has the form of an id is refused.
func (s *Store) NewWriter(run exchange.Run, o WriterOptions) (*Writer, error) {
	if run.Started.IsZero() {
		run.Started = now()
	}
	if run.ID == "" {
		run.ID = exchange.NewID(run.Started)
	}
	run.State, run.Ended, run.Counts = exchange.RunOpen, nil, exchange.RunCounts{}
	fail := func(cause error) error {
		return &exchange.Error{Op: "begin run", Object: run.Name, Side: exchange.SideStore, Cause: cause}
	}
	if !exchange.ValidID(string(run.ID)) || exchange.ValidID(run.Name) {
		return nil, fail(fmt.Errorf("%w: run id %q must be an id and run name must not", exchange.ErrUsage, run.ID))
	}
	if free, ok := s.enoughSpace(); !ok {
		return nil, fail(fmt.Errorf("%w: %d bytes free, the floor is %d", exchange.ErrNoSpace, free, s.o.minFree()))
	}
	if run.Instrument == nil {
		run.Instrument = s.instrument(run.Started)
	}
	w := &Writer{
		store: s, o: o, run: maskRun(run),
		queue: newQueue(), ready: make(chan []*record, o.workers()),
		hurry: make(chan struct{}), done: make(chan struct{}),
	}
	w.builder.known = &w.bodies
	if err := s.createRun(w); err != nil {
		return nil, fail(err)
	}
	if err := w.start(); err != nil {
		s.forget(w)
		return nil, fail(err)
	}
	return w, nil
}

func (w *Writer) start() error {
	for range w.o.workers() {
		p, err := newPreparer(w)
		if err != nil {
			w.queue.end()
			return err
		}
		w.workers.Go(p.work)
	}
	go func() {
		w.workers.Wait()
		close(w.ready)
	}()
	go w.commitAll()
	return nil
}

// Offer hands over a sealed exchange and never waits. false means that it is not stored; it is counted with its reason
// and told to OnDropped. The writer holds x until it is stored; x is not changed.
func (w *Writer) Offer(x *exchange.Exchange) bool {
	if why := w.enqueue(queued{x: x, cost: memoryOf(x)}); why != "" {
		w.told(x.ID, why)
		return false
	}
	return true
}

// enqueue puts q in the queue, or counts it as dropped and says why.
func (w *Writer) enqueue(q queued) DropReason {
	w.mu.Lock()
	defer w.mu.Unlock()
	if why := w.refuse(&q); why != "" {
		w.countDrop(why)
		return why
	}
	w.queueBytes += q.cost
	w.queue.put(q)
	return ""
}

// take waits for queued exchanges and gives some of them, in the memory of into. ok is false when there are no more.
func (w *Writer) take(into []queued, timer *time.Timer) (some []queued, ok bool) {
	more := w.queue.wait(timer)
	w.mu.Lock()
	defer w.mu.Unlock()
	some = w.queue.pop(into)
	return some, more || len(some) > 0
}

// refuse gives the reason why q cannot be queued, "" for none. It numbers an exchange that has no number yet.
func (w *Writer) refuse(q *queued) DropReason {
	switch x := q.x; {
	case w.closed:
		return DropClosed
	case !exchange.ValidID(string(x.ID)) || x.Run != "" && x.Run != w.run.ID:
		return DropInvalid
	case w.queueBytes > 0 && w.queueBytes+q.cost > w.o.queueBytes():
		return DropQueueFull
	}
	q.seq = q.x.Seq
	if q.seq == 0 {
		q.seq = w.seq + 1
	}
	w.seq = max(w.seq, q.seq)
	return ""
}

// memoryOf is the memory that x holds, in bytes.
func memoryOf(x *exchange.Exchange) int64 {
	n := recordOverhead + int64(len(x.Request.Head)+len(x.Response.Head)) + x.Request.Body.Kept + x.Response.Body.Kept
	return n + 24*int64(len(x.Timeline.Reads))
}

// countDrop counts a record that will not be stored; mu is held.
func (w *Writer) countDrop(why DropReason) {
	if w.run.State != exchange.RunOpen {
		w.lateDrops++
		return
	}
	c := &w.run.Counts
	c.Dropped++
	if c.DropWhy == nil {
		c.DropWhy = map[string]int64{}
	}
	c.DropWhy[string(why)]++
}

// drop counts a queued record that will not be stored and frees its place.
func (w *Writer) drop(id exchange.ID, cost int64, why DropReason) {
	w.mu.Lock()
	w.queueBytes -= cost
	w.countDrop(why)
	w.mu.Unlock()
	w.told(id, why)
}

func (w *Writer) told(id exchange.ID, why DropReason) {
	if w.o.OnDropped != nil {
		w.o.OnDropped(id, why)
	}
}

// setDegraded publishes why recording pauses, "" when it goes on. Each change is logged once.
func (w *Writer) setDegraded(why string) {
	w.mu.Lock()
	changed := w.degraded != why
	w.degraded = why
	w.mu.Unlock()
	switch {
	case changed && why != "":
		w.store.o.log().Warn("recording pauses, streams go on", "run", w.run.ID, "why", why)
	case changed:
		w.store.o.log().Warn("recording goes on", "run", w.run.ID)
	}
}

// Run is the run as counted now.
func (w *Writer) Run() exchange.Run {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cloneRun(w.run)
}

// Health is the state now.
func (w *Writer) Health() Health {
	size, free := w.store.roomNow()
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.run.Counts
	return Health{
		QueueBytes: w.queueBytes, QueueLimit: w.o.queueBytes(),
		Stored: c.Stored, Truncated: c.Truncated, Acknowledged: w.acked,
		Dropped: c.Dropped + w.lateDrops, DropWhy: maps.Clone(c.DropWhy), Degraded: w.degraded,
		StoreBytes: size, FreeBytes: free, FloorBytes: w.store.o.minFree(),
	}
}

// Close stores what is queued and ends the run: complete when nothing was dropped and every item of its plan ended, else
// incomplete. When ctx ends
// first, the rest of the queue is dropped and counted. A second Close gives the same run.
func (w *Writer) Close(ctx context.Context) (exchange.Run, error) {
	w.drain(ctx)
	defer w.store.forget(w)
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	run := cloneRun(w.run)
	w.mu.Unlock()
	if run.State != exchange.RunOpen {
		return run, nil
	}
	ended := now()
	run.Ended, run.State = &ended, exchange.RunComplete
	if run.Counts.Dropped > 0 || run.Replay != nil && run.Replay.Incomplete != "" {
		run.State = exchange.RunIncomplete
	}
	if err := w.store.closeRun(RunSize{Run: run, Bytes: w.bytes}); err != nil {
		return run, &exchange.Error{Op: "close run", Object: string(run.ID), Side: exchange.SideStore, Cause: err, Hint: "the run stays open"}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.run = run
	return cloneRun(run), nil
}

// Drain takes no more records and waits until those queued are stored, or dropped once ctx has ended. The run stays open
// until Close, so that what is counted of its records can still be kept with it.
func (w *Writer) Drain(ctx context.Context) { w.drain(ctx) }

// drain takes no more records and waits until those queued are stored, or dropped once ctx has ended.
func (w *Writer) drain(ctx context.Context) {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		w.queue.end()
	}
	w.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		w.mu.Lock()
		select {
		case <-w.hurry:
		default:
			close(w.hurry)
		}
		w.mu.Unlock()
		<-w.done
	}
}

// abandon stores what is queued and leaves the run open.
func (w *Writer) abandon() {
	w.drain(context.Background())
	w.store.forget(w)
}

// cloneRun shares nothing with r that the writer changes.
func cloneRun(r exchange.Run) exchange.Run {
	r.Counts.DropWhy = maps.Clone(r.Counts.DropWhy)
	r.Counts.Outcomes = maps.Clone(r.Counts.Outcomes)
	return r
}
