// Package recorder keeps exchanges: a Badger store owned by one process, and a writer that never makes a stream wait.
//
// The path of an exchange: Writer.Offer puts it in a queue bounded in bytes; a worker masks, keys, digests and
// compresses it (prepare.go); one goroutine gathers prepared records into batches and commits them (batch.go); after
// the commit WriterOptions.OnStored is called, and from then on the record survives the death of the process. Reading
// is in read.go and list.go, goldens and the replies of references are in golden.go and goldenreply.go, the layout of keys in keys.go, the form of values in block.go, codec.go, row.go and blob.go.
//
// Invariants:
//
//   - Acknowledged is durable: OnStored is called after the commit. Without Options.Sync an acknowledged record
//     survives the death of the process; the loss of power can take the last second.
//   - A record exists exactly when an index page lists it. Its blobs are committed before; the page, the block with its
//     manifest, summary row and small bodies, and the take in one transaction after.
//   - A body is stored once per run: small ones in a block, which the writer remembers, others as blobs.
//   - A run is written open and becomes complete only by the closing write of a writer that dropped nothing.
//   - What is not stored is counted with a reason, in the run and in Health.
//   - Nothing is written below the free-space floor: a full disk kills a process that has a Badger store open.
//   - A store of another format is refused before anything in it is touched.
//   - No credential is stored: masking happens before keys, digests of heads and values are made.
package recorder
