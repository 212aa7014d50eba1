package recorder

import (
	"cmp"
	"maps"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// What the store holds already is asked several times for every record, and nearly always the answer is that it is
// new. The two sets below know that from memory; where they do not, Badger is asked.

// maxKnown bounds each set, in entries: about a megabyte.
const maxKnown = 16 << 10

// knownIDs tells ids that cannot be in the store. Ids begin with the time, so one above the highest that the store had
// is new unless it was added since.
type knownIDs struct {
	mu    sync.Mutex
	floor exchange.ID              // ids up to this one may be in the store
	ids   map[exchange.ID]struct{} // ids above the floor that may be too
}

// mayHave reports whether the store can hold id.
func (k *knownIDs) mayHave(id exchange.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.ids[id]
	return ok || id <= k.floor
}

// add notes ids that are about to be written. A write that fails, or is pruned later, leaves them in doubt, which is
// all that being in the set means.
func (k *knownIDs) add(batch []*record) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ids == nil {
		k.ids = map[exchange.ID]struct{}{}
	}
	for _, r := range batch {
		k.ids[r.loc.id] = struct{}{}
	}
	if len(k.ids) <= maxKnown {
		return
	}
	for id := range k.ids {
		k.floor = max(k.floor, id)
	}
	clear(k.ids)
}

// highestID is the highest id of the index, "" in a store without records. It is on one of the pages of the last bucket.
func (s *Store) highestID() (highest exchange.ID, err error) {
	err = s.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Reverse: true})
		defer it.Close()
		it.Seek([]byte(indexPrefix + "\xff"))
		if !it.ValidForPrefix([]byte(indexPrefix)) {
			return nil
		}
		bucket, _, _, err := parsePageKey(it.Item().Key())
		for ; err == nil && it.ValidForPrefix(bucketPrefix(bucket)); it.Next() {
			err = it.Item().Value(func(v []byte) error {
				return eachInPage(bucket, v, func(id exchange.ID, _ int) error {
					highest = max(highest, id)
					return nil
				})
			})
		}
		return err
	})
	return highest, err
}

// maxBodies bounds the bodies that blocks of one run take, and with it the memory that knows them: about 12 MB. A small
// body beyond is a blob, which Badger itself finds.
const maxBodies = 256 << 10

// shortSum is half a sha256: enough to tell bodies apart.
type shortSum [16]byte

func (d digest) short() shortSum { return shortSum(d[:16]) }

// knownBodies are the bodies in the blocks of one run. None is ever forgotten: only this knows that they are there, and
// that they are stored once.
type knownBodies struct {
	mu     sync.Mutex
	limit  int // 0 = maxBodies
	places map[shortSum]bodyPlace
}

func (k *knownBodies) place(sum shortSum) (p bodyPlace, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok = k.places[sum]
	return p, ok
}

func (k *knownBodies) has(sum shortSum) bool {
	_, ok := k.place(sum)
	return ok
}

// full reports whether blocks take no more bodies beside the given number of new ones.
func (k *knownBodies) full(fresh int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.places)+fresh >= cmp.Or(k.limit, maxBodies)
}

// add notes bodies that were committed.
func (k *knownBodies) add(fresh map[shortSum]bodyPlace) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.places == nil {
		k.places = map[shortSum]bodyPlace{}
	}
	maps.Copy(k.places, fresh)
}

// knownBlobs are blobs of one run, which only its writer writes to.
type knownBlobs struct {
	mu   sync.Mutex
	sums map[digest]struct{} // committed, with a record that uses them
	part bool                // there may be others
}

// has reports whether the run has the blob, and whether that is sure.
func (k *knownBlobs) has(sum digest) (stored, sure bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, stored = k.sums[sum]
	return stored, stored || !k.part
}

// add notes blobs that were committed with the records that use them.
func (k *knownBlobs) add(blobs []blob) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.sums)+len(blobs) > maxKnown {
		k.part = true
		clear(k.sums)
	}
	if k.sums == nil {
		k.sums = map[digest]struct{}{}
	}
	for i := range blobs {
		k.sums[blobs[i].sum] = struct{}{}
	}
}

// doubt follows a write that failed: what of it is in the store, only the store knows.
func (k *knownBlobs) doubt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.part = true
}

// hasBlob reports whether the run holds the whole blob of so many chunks: they are committed in order.
func (w *Writer) hasBlob(sum digest, chunks int) bool {
	if stored, sure := w.known.has(sum); sure {
		return stored
	}
	return w.store.has(blobKey(w.run.ID, sum, chunks-1))
}
