package recorder

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// A batch is committed when it is this old, this large or this long. The last bound keeps its index entries, which
// must go in one transaction, below the 15 % of a memtable that Badger allows.
const (
	batchDelay   = 50 * time.Millisecond
	batchBytes   = 1 << 20
	batchRecords = 256
)

// maxTxnBytes bounds the blobs of one transaction.
const maxTxnBytes = 4 << 20

// commitAll is the one goroutine that writes: it gathers prepared records and commits them in batches, until the last
// worker has ended.
func (w *Writer) commitAll() {
	defer close(w.done)
	timer := time.NewTimer(batchDelay)
	defer timer.Stop()
	for batch := range w.ready {
		timer.Reset(batchDelay)
		size := sizeOf(batch)
	gather:
		for size < batchBytes && len(batch)+handRecords <= batchRecords {
			select {
			case more, ok := <-w.ready:
				if !ok {
					break gather
				}
				batch, size = append(batch, more...), size+sizeOf(more)
			case <-timer.C:
				break gather
			}
		}
		w.commit(batch)
	}
}

func sizeOf(records []*record) (n int64) {
	for _, r := range records {
		n += r.size()
	}
	return n
}

// commit stores a batch and acknowledges its records, or drops them all with the reason.
func (w *Writer) commit(batch []*record) {
	if _, ok := w.store.enoughSpace(); !ok {
		w.setDegraded(string(DropNoSpace))
		w.dropAll(batch, DropNoSpace)
		return
	}
	if w.store.gone() != nil {
		w.setDegraded(string(DropStoreGone))
		w.dropAll(batch, DropStoreGone)
		return
	}
	batch = w.dropDuplicates(batch)
	if len(batch) == 0 {
		return
	}
	w.store.known.add(batch)
	if err := w.writeCounted(batch); err != nil {
		w.known.doubt()
		w.store.o.log().Error("commit records", "run", w.run.ID, "records", len(batch), "err", err)
		w.setDegraded(string(DropStoreError))
		w.dropAll(batch, DropStoreError)
		return
	}
	w.setDegraded("")
	w.acknowledge(batch)
	release(batch)
}

// writeCounted writes a batch and publishes the counts of the run with it.
func (w *Writer) writeCounted(batch []*record) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	next, err := w.write(batch)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &w.run.Counts
	c.Stored, c.Truncated, c.Outcomes = next.Counts.Stored, next.Counts.Truncated, next.Counts.Outcomes
	w.bytes = next.Bytes
	for _, r := range batch {
		w.queueBytes -= r.cost
	}
	w.acked += int64(len(batch))
	return nil
}

func (w *Writer) dropAll(batch []*record, why DropReason) {
	for _, r := range batch {
		w.drop(r.loc.id, r.cost, why)
	}
}

// dropDuplicates keeps the first record of an id, in the batch and in the store: a record is never overwritten.
func (w *Writer) dropDuplicates(batch []*record) []*record {
	seen := make(map[exchange.ID]bool, len(batch))
	kept := batch[:0]
	for _, r := range batch {
		if seen[r.loc.id] || w.store.known.mayHave(r.loc.id) && w.store.hasRecord(r.loc.id) {
			w.drop(r.loc.id, r.cost, DropDuplicate)
			continue
		}
		seen[r.loc.id] = true
		kept = append(kept, r)
	}
	return kept
}

// counted is the run as it will be with the batch committed, which adds so many bytes.
func (w *Writer) counted(batch []*record, added int64) RunSize {
	w.mu.Lock()
	next := RunSize{Run: cloneRun(w.run), Bytes: w.bytes + added}
	w.mu.Unlock()
	for _, r := range batch {
		countStored(&next.Counts, &r.summary)
	}
	return next
}

func countStored(c *exchange.RunCounts, s *exchange.Summary) {
	c.Stored++
	if s.State == exchange.StateTruncated {
		c.Truncated++
	}
	if s.Outcome != "" {
		if c.Outcomes == nil {
			c.Outcomes = map[exchange.Outcome]int64{}
		}
		c.Outcomes[s.Outcome]++
	}
}

// acknowledge tells OnStored.
func (w *Writer) acknowledge(batch []*record) {
	if w.o.OnStored == nil {
		return
	}
	for _, r := range batch {
		w.o.OnStored(r.summary)
	}
}

// write commits a batch and gives the run with it: first the blobs, when there are any, then in one transaction all
// that makes its records exist. In between, the pending key says what a killed process left unfinished.
func (w *Writer) write(batch []*record) (next RunSize, err error) {
	blocks := w.builder.build(batch)
	todo, blobs := w.newBlobs(batch)
	if len(blobs) > 0 {
		if err := w.writeBlobs(todo, blobs); err != nil {
			return next, fmt.Errorf("write blobs: %w", err)
		}
	}
	next = w.counted(batch, addedBytes(blocks, blobs))
	runValue, err := json.Marshal(next)
	if err != nil {
		return next, fmt.Errorf("code run: %w", err)
	}
	if err := w.store.update(func(txn *badger.Txn) error {
		for i := range blocks {
			if err := w.setBlock(txn, &blocks[i]); err != nil {
				return err
			}
		}
		if len(blobs) > 0 {
			if err := txn.Delete(pendingKey(w.run.ID)); err != nil {
				return err
			}
		}
		return txn.Set(runKey(w.run.ID), runValue)
	}); err != nil {
		return next, fmt.Errorf("write blocks: %w", err)
	}
	w.known.add(blobs)
	w.bodies.add(w.builder.fresh)
	return next, nil
}

// setBlock writes a block and what leads to its records: the index pages and the takes.
func (w *Writer) setBlock(txn *badger.Txn, b *builtBlock) error {
	if err := txn.Set(blockKey(w.run.ID, b.id), b.value); err != nil {
		return err
	}
	for _, p := range pagesOf(b.records) {
		if err := txn.Set(pageKey(p.bucket, w.run.ID, b.id), p.value); err != nil {
			return err
		}
	}
	for _, r := range b.records {
		if err := txn.Set(takeKey(r.summary.Key, r.loc), r.canonical[:]); err != nil {
			return err
		}
	}
	return nil
}

// addedBytes is what a batch adds to the store.
func addedBytes(blocks []builtBlock, blobs []blob) (n int64) {
	for i := range blocks {
		n += int64(len(blocks[i].value))
	}
	for _, b := range blobs {
		n += b.bytes()
	}
	return n
}

// newBlobs are the blobs of a batch that the store does not have, each once, and the pending key that names them. The
// blocks are made already: a small body that none of them took is a blob.
func (w *Writer) newBlobs(batch []*record) (pending, []blob) {
	var todo pending
	seen := map[digest]bool{}
	var blobs []blob
	for _, r := range batch {
		p := pendingRecord{ID: r.loc.id}
		add := func(b blob) {
			// It may have been committed since the worker looked; then it must not be named as the batch's own.
			if len(b.chunks) == 0 || seen[b.sum] || w.hasBlob(b.sum, len(b.chunks)) {
				return
			}
			seen[b.sum] = true
			p.Blobs = append(p.Blobs, b.sum)
			blobs = append(blobs, b)
		}
		for _, b := range r.blobs {
			add(b)
		}
		for i := range r.bodies {
			if q := &r.bodies[i]; q.small && q.place.n == 0 {
				add(blob{sum: q.sum, chunks: [][]byte{q.appendTo(nil)}})
			}
		}
		todo = append(todo, p)
	}
	return todo, blobs
}

// writeBlobs commits blobs in transactions of bounded size, the pending key with the first.
func (w *Writer) writeBlobs(todo pending, blobs []blob) error {
	type entry struct{ key, value []byte }
	entries := []entry{{pendingKey(w.run.ID), encodePending(todo)}}
	for _, b := range blobs {
		for n, c := range b.chunks {
			entries = append(entries, entry{blobKey(w.run.ID, b.sum, n), c})
		}
	}
	for len(entries) > 0 {
		n, size := 0, 0
		for n < len(entries) && n < 2*batchRecords+1 && (n == 0 || size+len(entries[n].value) <= maxTxnBytes) {
			size += len(entries[n].value)
			n++
		}
		if err := w.store.update(func(txn *badger.Txn) error {
			for _, e := range entries[:n] {
				if err := txn.Set(e.key, e.value); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}
