package recorder

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Piece is a part of a run that is read at once: exchanges that were stored together.
type Piece struct {
	run exchange.ID
	id  blockID
}

// Pieces are the parts of a run, in the order in which the first exchange of each was accepted. Together they have every
// exchange of the run once.
func (s *Store) Pieces(run exchange.ID) (pieces []Piece, err error) {
	err = s.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: inRun(blockPrefix, run)}) // keys only
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			_, id, err := parseBlockKey(it.Item().Key())
			if err != nil {
				return damaged(err)
			}
			pieces = append(pieces, Piece{run, id})
		}
		return nil
	})
	if err != nil {
		return nil, &exchange.Error{Op: "list pieces of run", Object: string(run), Side: exchange.SideStore, Cause: err}
	}
	return pieces, nil
}

// ReadPiece shows visit those exchanges of a piece that want takes, with their bodies and without the reads of their
// timelines: it is for those who go through what was said, and costs a fraction of reading each by its id. They come in the
// order of acceptance, one in memory at a time; visit is called while the store is read and must not write to it. The error
// is that of visit, or wraps exchange.ErrMiss when the run was removed, exchange.ErrDamaged when something cannot be read.
func (s *Store) ReadPiece(p Piece, want func(id exchange.ID, seq uint64) bool, visit func(*exchange.Exchange) error) error {
	var stopped error
	err := s.view(func(txn *badger.Txn) error {
		return readBlock(txn, p.run, p.id, func(b *block) error {
			for i := range b.slots {
				e := &b.slots[i]
				if !want(e.id, e.seq) {
					continue
				}
				x, err := s.readContents(txn, p.run, b, e)
				if err != nil {
					return damaged(fmt.Errorf("read exchange %s: %w", e.id, err))
				}
				if stopped = visit(x); stopped != nil {
					return stopped
				}
			}
			return nil
		})
	})
	switch {
	case err == nil || stopped != nil:
		return stopped
	case errors.Is(err, badger.ErrKeyNotFound) && !errors.Is(err, exchange.ErrDamaged):
		return notFound("read piece of run", string(p.run))
	}
	return &exchange.Error{Op: "read piece of run", Object: string(p.run), Side: exchange.SideStore, Cause: err, Hint: "store check tells what is damaged"}
}

// readContents puts an exchange together without its reads.
func (s *Store) readContents(txn *badger.Txn, run exchange.ID, b *block, e *slot) (*exchange.Exchange, error) {
	m, _, err := recordFields(s.dec, e.manifest)
	if err != nil {
		return nil, err
	}
	return m.x, s.readBodies(txn, run, b, m, e)
}
