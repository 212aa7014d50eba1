package recorder

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Recovery is what was found at opening that the last owner left unfinished. All zero after a proper close.
type Recovery struct {
	Partial int           // records whose blobs were written and whose index entry was not: they are dropped
	Runs    []exchange.ID // runs those records belong to
	Pruned  []exchange.ID // runs whose pruning was finished now
}

// pending is the value of a pending key: the records of the batch being written, each with the blobs that it is the
// first to bring.
type pending []pendingRecord

type pendingRecord struct {
	ID    exchange.ID
	Blobs []digest
}

// pendingVersion is the first byte of a pending value.
const pendingVersion = 1

func encodePending(batch pending) []byte {
	w := &fieldWriter{b: make([]byte, 0, len(batch)*(idLen+2*len(digest{})+4)+8)}
	w.uint(pendingVersion)
	w.uint(uint64(len(batch)))
	for i := range batch {
		w.str(string(batch[i].ID))
		w.uint(uint64(len(batch[i].Blobs)))
		for _, d := range batch[i].Blobs {
			w.b = append(w.b, d[:]...)
		}
	}
	return w.b
}

func decodePending(b []byte) (pending, error) {
	r := &fieldReader{b: b}
	if v := r.uint(); v != pendingVersion {
		return nil, fmt.Errorf("read pending batch of version %d: %w", v, exchange.ErrDamaged)
	}
	var batch pending
	for range r.count() {
		p := pendingRecord{ID: exchange.ID(r.str())}
		for range r.count() {
			p.Blobs = append(p.Blobs, r.sum())
		}
		batch = append(batch, p)
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, fmt.Errorf("read pending batch: %w", r.err)
	}
	return batch, nil
}

// recover finishes what a killed owner began: blobs without a record go, half-pruned runs go whole. What it dropped
// is told once.
func (s *Store) recover() error {
	if err := s.recoverPending(); err != nil {
		return err
	}
	runs, err := s.runsUnder(prunePrefix)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := s.dropRun(run); err != nil {
			return err
		}
		s.recovered.Pruned = append(s.recovered.Pruned, run)
	}
	if s.recovered.Partial > 0 {
		s.o.log().Warn("dropped partial records of an owner that died; every acknowledged record is kept",
			"dir", s.dir, "records", s.recovered.Partial)
	}
	return nil
}

func (s *Store) recoverPending() error {
	runs, err := s.runsUnder(pendingPrefix)
	if err != nil {
		return err
	}
	for _, run := range runs {
		partial, err := s.dropPending(run)
		if err != nil {
			return fmt.Errorf("drop partial records of run %s: %w", run, err)
		}
		if partial > 0 {
			s.recovered.Partial += partial
			s.recovered.Runs = append(s.recovered.Runs, run)
		}
	}
	return nil
}

// runsUnder lists the runs that have a key "<prefix><run>".
func (s *Store) runsUnder(prefix string) (runs []exchange.ID, err error) {
	err = s.view(func(txn *badger.Txn) error {
		return eachKey(txn, []byte(prefix), func(item *badger.Item) error {
			runs = append(runs, exchange.ID(item.Key()[len(prefix):]))
			return nil
		})
	})
	return runs, err
}

// dropPending removes the blobs of the batch that was being written and counts its records.
func (s *Store) dropPending(run exchange.ID) (partial int, err error) {
	var stale [][]byte
	err = s.view(func(txn *badger.Txn) error {
		v, err := getValue(txn, pendingKey(run))
		if err != nil {
			return err
		}
		batch, err := decodePending(v)
		if err != nil {
			return err
		}
		for _, r := range batch {
			switch _, err := findRecord(txn, r.ID); {
			case err == nil:
				continue
			case !errors.Is(err, badger.ErrKeyNotFound):
				return err
			}
			partial++
			for _, d := range r.Blobs {
				if err := eachKey(txn, blobPrefixOf(run, d), func(item *badger.Item) error {
					stale = append(stale, item.KeyCopy(nil))
					return nil
				}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return partial, s.deleteKeys(append(stale, pendingKey(run)))
}

// deleteKeys removes keys, in several transactions when they are many. The last key goes last.
func (s *Store) deleteKeys(keys [][]byte) error {
	const perTxn = 4000
	for len(keys) > 0 {
		n := min(perTxn, len(keys))
		if err := s.update(func(txn *badger.Txn) error {
			for _, k := range keys[:n] {
				if err := txn.Delete(k); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

func blobPrefixOf(run exchange.ID, d digest) []byte {
	k := append(inRun(blobPrefix, run), d[:]...)
	return append(k, '/')
}

// eachKey visits the keys under a prefix in order, without their values.
func eachKey(txn *badger.Txn, prefix []byte, visit func(*badger.Item) error) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		if err := visit(it.Item()); err != nil {
			return err
		}
	}
	return nil
}

func getValue(txn *badger.Txn, key []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}
