package recorder

import (
	"encoding/json"
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
	ID    exchange.ID `json:"id"`
	Blobs []digest    `json:"blobs,omitempty"`
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
	var batch pending
	var stale [][]byte
	err = s.view(func(txn *badger.Txn) error {
		v, err := getValue(txn, pendingKey(run))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(v, &batch); err != nil {
			return fmt.Errorf("read pending batch: %w", err)
		}
		for _, r := range batch {
			switch _, err := txn.Get(indexKey(r.ID)); {
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
