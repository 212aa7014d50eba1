package web

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// The bounds of the indexes.
const (
	indexRows = 1 << 20 // rows of all indexes together, about 100 bytes each
	indexStep = 512     // rows taken in one go while one is built
)

// words keeps each text once, so that a row holds a number in its place.
type words struct {
	list []string
	at   map[string]uint32
}

func (w *words) number(s string) uint32 {
	if n, ok := w.at[s]; ok {
		return n
	}
	if w.at == nil {
		w.at = map[string]uint32{}
	}
	n := uint32(len(w.list))
	w.list, w.at[s] = append(w.list, s), n
	return n
}

// entry is what a listing shows of an exchange, small enough to hold those of a whole run.
type entry struct {
	id      [26]byte
	seq     uint64
	started int64 // ns since 1970
	model   uint32
	request uint32 // method and path
	verdict uint32 // outcome with what makes it special
	outcome uint32
	status  uint16
	stream  bool
	figures [listed]shown
}

// shown is one figure of a listing.
type shown struct {
	value float32
	basis uint8 // 0 absent, 1 measured or reported, 2 estimated
}

// The figures of a listing.
const (
	listPrompt = iota
	listCompletion
	listTTFT
	listDecode
	listTotal
	listed
)

var listedMetrics = [listed]string{measure.PromptTokens, measure.CompletionTokens, measure.TTFTMS, measure.DecodeTPS, measure.TotalWallMS}

func showing(f exchange.Figure) shown {
	switch {
	case !f.Present():
		return shown{}
	case f.Basis == exchange.BasisEstimated:
		return shown{float32(f.Value), 2}
	}
	return shown{float32(f.Value), 1}
}

// index holds the entries of one run.
type index struct {
	run  exchange.ID
	done chan struct{} // closed when all that was stored before it began is in it

	mu      sync.Mutex
	words   words
	entries []entry
	counted countedWords
	sorted  bool   // entries stand in the order of seq, each once
	err     error  // that ended the building
	used    uint64 // when it was asked for last, counted; the mutex of the indexes is for it
}

func newIndex(run exchange.ID) *index {
	return &index{run: run, done: make(chan struct{}), sorted: true}
}

// add takes a row; the mutex is held.
func (x *index) add(row *exchange.Summary) {
	e := entry{
		seq: row.Seq, started: row.Started.UnixNano(), status: uint16(row.Status), stream: row.Stream,
		model: x.words.number(row.Model), request: x.words.number(row.Method + " " + row.Path),
		verdict: x.words.number(verdictText(row)), outcome: x.words.number(string(row.Outcome)),
	}
	copy(e.id[:], row.ID)
	for i, name := range listedMetrics {
		e.figures[i] = showing(row.Metrics[name])
	}
	if n := len(x.entries); n > 0 && x.entries[n-1].seq >= e.seq {
		x.sorted = false
	}
	x.entries = append(x.entries, e)
}

// whole reports whether the index has all of its run.
func (x *index) whole() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// sort puts the entries in order; the mutex is held. A row that was both read and told of while the index was built stands
// in it twice, and once after.
func (x *index) sort() {
	if x.sorted {
		return
	}
	slices.SortFunc(x.entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.seq, b.seq), bytes.Compare(a.id[:], b.id[:])) })
	x.entries = slices.CompactFunc(x.entries, func(a, b entry) bool { return a.seq == b.seq && a.id == b.id })
	x.sorted = true
}

// indexes build and hold the indexes of runs that were asked for. What is stored meanwhile is told by stored.
type indexes struct {
	store Store
	ctx   context.Context
	stop  context.CancelFunc
	build sync.WaitGroup

	mu     sync.Mutex
	byRun  map[exchange.ID]*index
	clock  uint64
	closed bool
}

func newIndexes(store Store) *indexes {
	ctx, stop := context.WithCancel(context.Background())
	return &indexes{store: store, ctx: ctx, stop: stop, byRun: map[exchange.ID]*index{}}
}

// Close ends what is being built.
func (s *indexes) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.build.Wait()
}

// of is the index of a run, which may be in the making. nil is one that would be too large.
func (s *indexes) of(run *exchange.Run) *index {
	if run.Counts.Stored > indexRows {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	x := s.byRun[run.ID]
	if x == nil && !s.closed {
		s.makeRoom(run.Counts.Stored)
		x = newIndex(run.ID)
		s.byRun[run.ID] = x
		s.build.Go(func() { s.fill(x) })
	}
	if x != nil {
		x.used = s.clock
	}
	return x
}

// makeRoom drops the indexes that were not asked for longest; the mutex is held.
func (s *indexes) makeRoom(rows int64) {
	for {
		total, oldest := rows, (*index)(nil)
		for _, x := range s.byRun {
			x.mu.Lock()
			total += int64(len(x.entries))
			x.mu.Unlock()
			if x.whole() && (oldest == nil || x.used < oldest.used) {
				oldest = x
			}
		}
		if total <= indexRows || oldest == nil {
			return
		}
		delete(s.byRun, oldest.run)
	}
}

// fill reads the rows of a run. On an error the index stays as far as it came, and is forgotten.
func (s *indexes) fill(x *index) {
	defer close(x.done)
	var batch []exchange.Summary
	take := func() {
		x.mu.Lock()
		for i := range batch {
			x.add(&batch[i])
		}
		x.mu.Unlock()
		batch = batch[:0]
	}
	var broken error
	for row, err := range s.store.SummariesAfter(x.run, 0) {
		if broken = cmp.Or(err, s.ctx.Err()); broken != nil {
			break
		}
		if batch = append(batch, row); len(batch) == indexStep {
			take()
		}
	}
	take()
	x.mu.Lock()
	x.err = broken
	x.mu.Unlock()
	if broken != nil {
		s.mu.Lock()
		delete(s.byRun, x.run)
		s.mu.Unlock()
	}
}

// stored takes a row that was stored just now.
func (s *indexes) stored(row *exchange.Summary) {
	s.mu.Lock()
	x := s.byRun[row.Run]
	s.mu.Unlock()
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.entries) < indexRows {
		x.add(row)
	}
}

// have is the index of a run that is made already, nil when there is none.
func (s *indexes) have(run exchange.ID) *index {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.byRun[run]; x != nil && x.whole() {
		return x
	}
	return nil
}
