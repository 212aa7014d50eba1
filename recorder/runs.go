package recorder

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

var errRunExists = errors.New("a run of this id exists")

// maskRun masks what users typed: the client command and the URLs.
func maskRun(r exchange.Run) exchange.Run {
	if r.Command != nil {
		r.Command = redact.Args(r.Command)
	}
	if r.Upstreams != nil {
		masked := make(map[string]string, len(r.Upstreams))
		for name, u := range r.Upstreams {
			masked[name] = redact.URL(u)
		}
		r.Upstreams = masked
	}
	return r
}

// createRun writes the run of a new writer and enters the writer.
func (s *Store) createRun(w *Writer) error {
	if s.has(runKey(w.run.ID)) {
		return errRunExists
	}
	if err := s.putRun(RunSize{Run: w.run}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.writers[w.run.ID] = w
	return nil
}

// forget takes a writer out that has ended.
func (s *Store) forget(w *Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.writers, w.run.ID)
}

// writing reports whether a writer of this process is at work on the run.
func (s *Store) writing(run exchange.ID) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.writers[run] != nil
}

func (s *Store) putRun(r RunSize) error {
	v, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("code run: %w", err)
	}
	return s.update(func(txn *badger.Txn) error { return txn.Set(runKey(r.ID), v) })
}

// closeRun is the closing write, on disk before it returns.
func (s *Store) closeRun(r RunSize) error {
	if err := s.describeRun(r); err != nil {
		return err
	}
	return s.sync()
}

// describeRun writes the run without records. The floor leaves room for so small a write; far below it nothing is written
// any more.
func (s *Store) describeRun(r RunSize) error {
	if free, ok := s.enoughSpace(); !ok && free < s.o.minFree()/8 {
		return fmt.Errorf("%w: %d bytes free", exchange.ErrNoSpace, free)
	}
	if err := s.gone(); err != nil {
		return err
	}
	return s.putRun(r)
}

// Runs are all runs, oldest first. One whose writer is at work has its counts as of now; one whose owner died stays
// open, with the counts of its last commit.
func (s *Store) Runs() ([]exchange.Run, error) {
	stored, err := s.storedRuns()
	if err != nil {
		return nil, &exchange.Error{Op: "list runs", Object: s.dir, Side: exchange.SideStore, Cause: err}
	}
	runs := make([]exchange.Run, len(stored))
	for i, r := range stored {
		runs[i] = s.live(r.Run)
	}
	return runs, nil
}

func (s *Store) storedRuns() (runs []RunSize, err error) {
	err = s.view(func(txn *badger.Txn) error {
		return eachKey(txn, []byte(runPrefix), func(item *badger.Item) error {
			r, err := decodeRun(item)
			runs = append(runs, r)
			return err
		})
	})
	return runs, err
}

func decodeRun(item *badger.Item) (r RunSize, err error) {
	err = item.Value(func(v []byte) error { return json.Unmarshal(v, &r) })
	if err != nil {
		return r, fmt.Errorf("read run %s: %w: %w", item.Key(), exchange.ErrDamaged, err)
	}
	return r, nil
}

// live replaces the stored counts of a run by those of its writer, when it has one.
func (s *Store) live(r exchange.Run) exchange.Run {
	s.mu.RLock()
	w := s.writers[r.ID]
	s.mu.RUnlock()
	if w == nil {
		return r
	}
	run := w.Run()
	run.Pinned = r.Pinned
	return run
}

// Run is the run with that id, or the newest one with that name. The error wraps exchange.ErrMiss when there is none.
func (s *Store) Run(idOrName string) (exchange.Run, error) {
	if r, ok := s.runByID(exchange.ID(idOrName)); ok {
		return r, nil
	}
	runs, err := s.Runs()
	if err != nil {
		return exchange.Run{}, err
	}
	for i := len(runs) - 1; i >= 0; i-- {
		if r := runs[i]; string(r.ID) == idOrName || r.Name == idOrName && idOrName != "" {
			return r, nil
		}
	}
	return exchange.Run{}, notFound("find run", idOrName)
}

// runByID reads one run alone: those of a store may be many, and long. What cannot be read is left to those who read all.
func (s *Store) runByID(id exchange.ID) (run exchange.Run, ok bool) {
	if !exchange.ValidID(string(id)) {
		return run, false
	}
	err := s.view(func(txn *badger.Txn) error {
		item, err := txn.Get(runKey(id))
		if err != nil {
			return err
		}
		r, err := decodeRun(item)
		run = r.Run
		return err
	})
	if err != nil {
		return run, false
	}
	return s.live(run), true
}

func notFound(op, object string) error {
	return &exchange.Error{Op: op, Object: object, Side: exchange.SideStore, Cause: fmt.Errorf("%w: not in this store", exchange.ErrMiss), Hint: "store ls shows what there is"}
}

// Pin keeps a run from retention, or gives it back to it.
func (s *Store) Pin(run exchange.ID, pinned bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if w := s.writers[run]; w != nil { // its next write of the run would undo ours
		w.mu.Lock()
		defer w.mu.Unlock()
		w.run.Pinned = pinned
	}
	s.dirty.Store(true)
	err := s.db.Update(func(txn *badger.Txn) error {
		item, err := txn.Get(runKey(run))
		if err != nil {
			return err
		}
		r, err := decodeRun(item)
		if err != nil {
			return err
		}
		r.Pinned = pinned
		v, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return txn.Set(runKey(run), v)
	})
	if errors.Is(err, badger.ErrKeyNotFound) {
		return notFound("pin run", string(run))
	}
	return err
}
