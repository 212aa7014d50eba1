package recorder

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// has reports whether a key exists. A store that cannot be read has nothing.
func (s *Store) has(key []byte) bool {
	return s.view(func(txn *badger.Txn) error {
		_, err := txn.Get(key)
		return err
	}) == nil
}

// hasRecord reports whether a record exists. A store that cannot be read has none.
func (s *Store) hasRecord(id exchange.ID) bool {
	return s.view(func(txn *badger.Txn) error {
		_, err := findRecord(txn, id)
		return err
	}) == nil
}

// place is where a record lies: slot of a block of its run.
type place struct {
	run  exchange.ID
	in   blockID
	slot int
}

// findRecord asks the index pages of the bucket of id. The error is badger.ErrKeyNotFound when none has it.
func findRecord(txn *badger.Txn, id exchange.ID) (p place, err error) {
	if !exchange.ValidID(string(id)) {
		return p, badger.ErrKeyNotFound
	}
	it := txn.NewIterator(badger.IteratorOptions{Prefix: bucketPrefix(string(id[:bucketLen]))})
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		slot := -1
		if err := it.Item().Value(func(v []byte) error {
			slot = slotInPage(id, v)
			return nil
		}); err != nil {
			return p, fmt.Errorf("read index page %q: %w", it.Item().Key(), err)
		}
		if slot >= 0 {
			_, p.run, p.in, err = parsePageKey(it.Item().Key())
			p.slot = slot
			return p, err
		}
	}
	return p, badger.ErrKeyNotFound
}

// readBlock lets read look at a block, which it must not keep.
func readBlock(txn *badger.Txn, run exchange.ID, id blockID, read func(b *block) error) error {
	item, err := txn.Get(blockKey(run, id))
	if err != nil {
		return fmt.Errorf("read block %d of run %s: %w", id.no, run, err)
	}
	return blockOf(item, read)
}

func blockOf(item *badger.Item, read func(b *block) error) error {
	return item.Value(func(v []byte) error {
		b, err := parseBlock(v)
		if err != nil {
			return fmt.Errorf("%q: %w", item.Key(), err)
		}
		return read(b)
	})
}

// eachBlock visits the blocks of a run in the order of acceptance of their first records.
func eachBlock(txn *badger.Txn, run exchange.ID, visit func(id blockID, b *block) error) error {
	return eachKey(txn, inRun(blockPrefix, run), func(item *badger.Item) error {
		_, id, err := parseBlockKey(item.Key())
		if err != nil {
			return err
		}
		return blockOf(item, func(b *block) error { return visit(id, b) })
	})
}

// Exchange is the recorded exchange, as it was sealed and masked, with its summary row. The error wraps
// exchange.ErrMiss when there is none of that id, exchange.ErrDamaged when it cannot be read whole.
func (s *Store) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	var x *exchange.Exchange
	var row exchange.Summary
	err := s.view(func(txn *badger.Txn) error {
		at, err := findRecord(txn, id)
		if err != nil {
			return err
		}
		if err := readBlock(txn, at.run, at.in, func(b *block) error {
			e, err := b.slot(at.slot, id)
			if err != nil {
				return err
			}
			if x, err = s.readExchange(txn, at.run, b, e); err != nil {
				return err
			}
			row, err = decodeRow(e.row)
			return err
		}); err != nil {
			return damaged(err)
		}
		return nil
	})
	switch {
	case errors.Is(err, badger.ErrKeyNotFound) && !errors.Is(err, exchange.ErrDamaged):
		return nil, row, notFound("read exchange", string(id))
	case err != nil:
		return nil, row, &exchange.Error{Op: "read exchange", Object: string(id), Side: exchange.SideStore, Cause: err, Hint: "store check tells what is damaged"}
	}
	return x, row, nil
}

func damaged(err error) error { return fmt.Errorf("%w: %w", exchange.ErrDamaged, err) }

// slot is slot n, which must be that of id.
func (b *block) slot(n int, id exchange.ID) (*slot, error) {
	if n < 0 || n >= len(b.slots) || b.slots[n].id != id {
		return nil, fmt.Errorf("read record %s: it is not in slot %d of its block", id, n)
	}
	return &b.slots[n], nil
}

// readExchange puts an exchange together from its manifest and bodies.
func (s *Store) readExchange(txn *badger.Txn, run exchange.ID, b *block, e *slot) (*exchange.Exchange, error) {
	m, err := parseRecord(s.dec, e.manifest)
	if err != nil {
		return nil, err
	}
	if err := s.readBodies(txn, run, b, m, e); err != nil {
		return nil, err
	}
	if m.reads.size > 0 {
		parts, err := s.readBlob(txn, run, m.reads)
		if err != nil {
			return nil, fmt.Errorf("read reads: %w", err)
		}
		if m.x.Timeline.Reads, err = unpackReads(s.dec, joined(parts)); err != nil {
			return nil, err
		}
	}
	return m.x, nil
}

// readBodies gives the exchange of a manifest its bodies.
func (s *Store) readBodies(txn *badger.Txn, run exchange.ID, b *block, m *manifest, e *slot) (err error) {
	if m.x.Request.Body.Chunks, err = s.readBody(txn, run, b, m.request, e.bodies[0]); err != nil {
		return fmt.Errorf("read request body: %w", err)
	}
	if m.x.Response.Body.Chunks, err = s.readBody(txn, run, b, m.response, e.bodies[1]); err != nil {
		return fmt.Errorf("read response body: %w", err)
	}
	return nil
}

func joined(parts [][]byte) []byte { return exchange.Body{Chunks: parts}.Bytes() }

// readBody gives a body from the block of its record, from another one, or from a blob.
func (s *Store) readBody(txn *badger.Txn, run exchange.ID, own *block, ref blobRef, at bodyPlace) (parts [][]byte, err error) {
	if at.n == 0 {
		return s.readBlob(txn, run, ref)
	}
	unpackIn := func(b *block) error {
		if int(at.n) > len(b.bodies) {
			return fmt.Errorf("body %d of a block that has %d", at.n, len(b.bodies))
		}
		body, err := unpack(s.dec, b.bodies[at.n-1])
		if err == nil && int64(len(body)) != ref.size {
			err = fmt.Errorf("body %x has %d bytes, want %d", ref.sum, len(body), ref.size)
		}
		parts = [][]byte{body}
		return err
	}
	if at.in == (blockID{}) {
		return parts, unpackIn(own)
	}
	err = readBlock(txn, run, at.in, unpackIn)
	return parts, err
}

func (s *Store) readPacked(txn *badger.Txn, key []byte) (b []byte, err error) {
	item, err := txn.Get(key)
	if err != nil {
		return nil, err
	}
	err = item.Value(func(v []byte) error {
		b, err = unpack(s.dec, v)
		return err
	})
	return b, err
}

// readBlob gives the chunks of a blob and holds that they have its length; the digest is for Check.
func (s *Store) readBlob(txn *badger.Txn, run exchange.ID, ref blobRef) ([][]byte, error) {
	var parts [][]byte
	left := ref.size
	for n := range chunkCount(ref.size) {
		c, err := s.readPacked(txn, blobKey(run, ref.sum, n))
		if err != nil {
			return nil, fmt.Errorf("read chunk %d of blob %x: %w", n, ref.sum, err)
		}
		parts = append(parts, c)
		left -= int64(len(c))
	}
	if left != 0 {
		return nil, fmt.Errorf("read blob %x: %d bytes missing", ref.sum, left)
	}
	return parts, nil
}

// Take is one recording under a key.
type Take struct {
	ID  exchange.ID `json:"id"`
	Run exchange.ID `json:"run"`
	Seq uint64      `json:"seq"`
}

// ErrCollision says that two different requests have one key.
var ErrCollision = errors.New("two different requests share this key")

// Takes are the recordings under a key, oldest run first and in the order of acceptance within a run; none is not an
// error. The error wraps ErrCollision when they are not all of one request.
func (s *Store) Takes(key string) ([]Take, error) { return s.takes(key, nil) }

// Lookup are the recordings of the same request, as Takes, each confirmed against the canonical form of req: a
// collision is an error, never another request's answer.
func (s *Store) Lookup(req *exchange.Request) ([]Take, error) {
	masked := *req
	masked.Target = redact.Target(req.Target)
	key := canon.RequestKey(&masked)
	want := sum256(key.Canonical)
	return s.takes(key.Key, &want)
}

// TakesAfter are at most limit of the recordings that Takes gives, those behind after, which is one of them or zero for the
// first ones, and whether there are more. They are held against the request of the first recording under the key.
func (s *Store) TakesAfter(key string, after Take, limit int) (takes []Take, more bool, err error) {
	var start []byte
	if after != (Take{}) {
		start = append(takeKey(key, location{run: after.Run, seq: after.Seq, id: after.ID}), 0)
	}
	err = s.eachTake(key, start, nil, func(t Take) bool {
		more = len(takes) == limit
		if !more {
			takes = append(takes, t)
		}
		return !more
	})
	if err != nil {
		return nil, false, err
	}
	return takes, more, nil
}

func (s *Store) takes(key string, want *digest) (takes []Take, err error) {
	err = s.eachTake(key, nil, want, func(t Take) bool {
		takes = append(takes, t)
		return true
	})
	if err != nil {
		return nil, err
	}
	return takes, nil
}

// eachTake visits the recordings under a key from the entry start on, nil for the first, while visit says so. All must be of
// the request with the digest want, nil for that of the first one under the key.
func (s *Store) eachTake(key string, start []byte, want *digest, visit func(Take) bool) error {
	fail := func(cause error) error {
		return &exchange.Error{Op: "look up key", Object: key, Side: exchange.SideStore, Cause: cause}
	}
	if strings.Contains(key, "/") {
		return fail(fmt.Errorf("%w: not a key", exchange.ErrUsage))
	}
	err := s.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(takePrefix + key + "/")})
		defer it.Close()
		if it.Rewind(); want == nil && it.Valid() {
			v, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			want = new(digest)
			copy(want[:], v)
		}
		if start != nil {
			it.Seek(start)
		}
		for ; it.Valid(); it.Next() {
			loc, err := parseLocation(it.Item().Key())
			if err != nil {
				return damaged(err)
			}
			if err := sameRequest(it.Item(), want); err != nil {
				return fmt.Errorf("%w: see record %s", err, loc.id)
			}
			if !visit(Take{ID: loc.id, Run: loc.run, Seq: loc.seq}) {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return nil
}

// sameRequest holds that a take is of the request with the digest want.
func sameRequest(item *badger.Item, want *digest) error {
	return item.Value(func(v []byte) error {
		if string(v) != string(want[:]) {
			return ErrCollision
		}
		return nil
	})
}
