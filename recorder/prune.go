package recorder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Retention says which runs go. A run that is pinned or being written stays; goldens are in another directory and are
// never touched.
type Retention struct {
	Runs     []exchange.ID // these, whatever the limits say
	MaxAge   time.Duration // runs that started longer ago; 0 = no limit
	MaxBytes int64         // the oldest, until the stored bytes of the rest fit; 0 = no limit
	DryRun   bool          // only tell
}

// PruneReport is what Prune did, or would do.
type PruneReport struct {
	Schema      int               `json:"schema"` // of this document
	Removed     []RunSize         `json:"removed"`
	Kept        map[string]string `json:"kept,omitempty"` // run that was asked for -> why it stays
	BytesBefore int64             `json:"bytes_before"`   // disk use of the store
	BytesAfter  int64             `json:"bytes_after"`
	DryRun      bool              `json:"dry_run"`
}

// Prune removes runs whole and gives their space back to the disk. Readers and writers wait for parts of it: call it
// when little is going on.
func (s *Store) Prune(ctx context.Context, keep Retention) (PruneReport, error) {
	report, err := s.prune(ctx, keep)
	if err != nil {
		return report, &exchange.Error{Op: "prune store", Object: s.dir, Side: exchange.SideStore, Cause: err}
	}
	return report, nil
}

func (s *Store) prune(ctx context.Context, keep Retention) (report PruneReport, err error) {
	report.Schema, report.DryRun, report.Removed = 1, keep.DryRun, []RunSize{}
	if report.BytesBefore, err = treeBytes(s.dir); err != nil {
		return report, err
	}
	report.BytesAfter = report.BytesBefore
	doomed, err := s.chooseRuns(keep, &report)
	if err != nil || keep.DryRun {
		report.Removed = append(report.Removed, doomed...)
		return report, err
	}
	for _, r := range doomed {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		if err := s.removeRun(r.ID); err != nil {
			return report, fmt.Errorf("remove run %s: %w", r.ID, err)
		}
		report.Removed = append(report.Removed, r)
	}
	if len(report.Removed) > 0 {
		if err := s.collect(ctx); err != nil {
			return report, err
		}
	}
	report.BytesAfter, err = treeBytes(s.dir)
	return report, err
}

// chooseRuns lists the runs that go, oldest first, and notes why one that was named stays.
func (s *Store) chooseRuns(keep Retention, report *PruneReport) (doomed []RunSize, err error) {
	runs, err := s.storedRuns()
	if err != nil {
		return nil, err
	}
	named := make(map[exchange.ID]bool, len(keep.Runs))
	for _, id := range keep.Runs {
		named[id] = true
		if !slices.ContainsFunc(runs, func(r RunSize) bool { return r.ID == id }) {
			return nil, notFound("find run", string(id))
		}
	}
	total := int64(0)
	for _, r := range runs {
		total += r.Bytes
	}
	for _, r := range runs {
		old := keep.MaxAge > 0 && clock.Since(r.Started) > keep.MaxAge
		if !named[r.ID] && !old && (keep.MaxBytes == 0 || total <= keep.MaxBytes) {
			continue
		}
		if why := s.protected(r); why != "" {
			if named[r.ID] {
				report.keep(r.ID, why)
			}
			continue
		}
		total -= r.Bytes
		doomed = append(doomed, r)
	}
	return doomed, nil
}

func (p *PruneReport) keep(run exchange.ID, why string) {
	if p.Kept == nil {
		p.Kept = map[string]string{}
	}
	p.Kept[string(run)] = why
}

func (s *Store) protected(r RunSize) string {
	switch {
	case s.writing(r.ID):
		return "being written"
	case r.Pinned:
		return "pinned"
	}
	return ""
}

// removeRun marks a run as going, so that opening the store finishes what a kill interrupts, and drops it.
func (s *Store) removeRun(run exchange.ID) error {
	if err := s.update(func(txn *badger.Txn) error { return txn.Set(pruneKey(run), nil) }); err != nil {
		return err
	}
	return s.dropRun(run)
}

// dropRun removes everything of a run: first what lies outside its own prefixes, then these, the mark last.
func (s *Store) dropRun(run exchange.ID) error {
	var outside [][]byte
	if err := s.view(func(txn *badger.Txn) error {
		return eachBlock(txn, run, func(id blockID, b *block) error {
			bucket := ""
			for i := range b.slots {
				e := &b.slots[i]
				row, err := decodeRow(e.row)
				if err != nil {
					return err
				}
				outside = append(outside, takeKey(row.Key, location{run: run, seq: e.seq, id: e.id}))
				if own := string(e.id[:bucketLen]); own != bucket { // one page may be named several times
					bucket = own
					outside = append(outside, pageKey(bucket, run, id))
				}
			}
			return nil
		})
	}); err != nil {
		return err
	}
	if err := s.deleteKeys(outside); err != nil {
		return err
	}
	if err := s.dropPrefixes(inRun(blockPrefix, run), inRun(blobPrefix, run)); err != nil {
		return err
	}
	return s.deleteKeys([][]byte{pendingKey(run), runKey(run), pruneKey(run)})
}

// dropPrefixes needs the database for itself: Badger refuses writes meanwhile, and readers would see it half done.
func (s *Store) dropPrefixes(prefixes ...[]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	return s.db.DropPrefix(prefixes...)
}

// collect rewrites value log files until none has a fifth of garbage.
func (s *Store) collect(ctx context.Context) error {
	for ctx.Err() == nil {
		switch err := s.collectFile(); {
		case errors.Is(err, badger.ErrNoRewrite):
			return nil
		case err != nil:
			return fmt.Errorf("collect garbage: %w", err)
		}
	}
	return ctx.Err()
}

// collectFile rewrites one value log file. It lets go of the store after each, so that a recording, whose batches wait
// meanwhile, never stands still for longer: Badger looks at the version of its memtable without a lock here, which writes
// must not meet.
func (s *Store) collectFile() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	return s.db.RunValueLogGC(0.2)
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
