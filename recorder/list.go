package recorder

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// summaryPage is how many rows are read at a time, so that no reader holds a snapshot while its consumer works.
const summaryPage = 256

// Summaries are the rows of a run in the order of acceptance. The first error ends the sequence.
func (s *Store) Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error] {
	return s.summaries(&lister{run: run})
}

// SummariesAfter are those of Summaries whose seq is above the given one. The rows before are passed over, not decoded.
func (s *Store) SummariesAfter(run exchange.ID, seq uint64) iter.Seq2[exchange.Summary, error] {
	return s.summaries(&lister{run: run, above: seq})
}

func (s *Store) summaries(first *lister) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		once := *first // a sequence may be read again
		l, run := &once, once.run
		for !l.done {
			err := s.view(l.read)
			for err == nil && len(l.rows) > 0 && (l.done || l.rows[0].seq < l.until) {
				var row exchange.Summary
				if row, err = l.take(); err == nil && !yield(row, nil) {
					return
				}
			}
			if err != nil {
				yield(exchange.Summary{}, &exchange.Error{Op: "read summaries", Object: string(run), Side: exchange.SideStore, Cause: err})
				return
			}
		}
	}
}

// lister puts the rows of blocks in one order. A block begins with the row that its key names, but where a long answer
// ended with short ones that were accepted much later, others begin before its last: so rows wait until the next block
// begins behind them.
type lister struct {
	run   exchange.ID
	above uint64 // only rows with a higher seq
	after []byte // key of the last block read
	rows  []waitingRow
	until uint64 // rows below it can be given out
	done  bool   // there is no block left: all can be
}

type waitingRow struct {
	seq uint64
	id  exchange.ID
	row []byte
}

// read takes blocks until a page of rows can be given out, or there are no more.
func (l *lister) read(txn *badger.Txn) error {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: inRun(blockPrefix, l.run)})
	defer it.Close()
	start := inRun(blockPrefix, l.run)
	if l.after != nil {
		start = append(bytes.Clone(l.after), 0)
	}
	for it.Seek(start); it.Valid(); it.Next() {
		_, id, err := parseBlockKey(it.Item().Key())
		if err != nil {
			return damaged(err)
		}
		if l.until = id.seq; l.ready() >= summaryPage {
			return nil
		}
		if err := blockOf(it.Item(), l.add); err != nil {
			return damaged(err)
		}
		l.after = it.Item().KeyCopy(l.after[:0])
	}
	l.done = true
	return nil
}

// ready is the number of rows that can be given out.
func (l *lister) ready() int {
	n, _ := slices.BinarySearchFunc(l.rows, l.until, func(w waitingRow, seq uint64) int { return cmp.Compare(w.seq, seq) })
	return n
}

func (l *lister) add(b *block) error {
	for i := range b.slots {
		e := &b.slots[i]
		if e.seq <= l.above && l.above > 0 {
			continue
		}
		l.rows = append(l.rows, waitingRow{e.seq, e.id, bytes.Clone(e.row)})
	}
	slices.SortFunc(l.rows, func(a, b waitingRow) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.id, b.id)) })
	return nil
}

func (l *lister) take() (exchange.Summary, error) {
	w := l.rows[0]
	l.rows = l.rows[1:]
	row, err := decodeRow(w.row)
	if err != nil {
		err = fmt.Errorf("row of %s: %w", w.id, err)
	}
	return row, err
}
