package recorder

import (
	"errors"
	"fmt"
	"iter"
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

// Exchange is the recorded exchange, as it was sealed and masked, with its summary row. The error wraps
// exchange.ErrMiss when there is none of that id, exchange.ErrDamaged when it cannot be read whole.
func (s *Store) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	var x *exchange.Exchange
	var row exchange.Summary
	err := s.view(func(txn *badger.Txn) error {
		v, err := getValue(txn, indexKey(id))
		if err != nil {
			return err
		}
		loc, err := parseIndex(id, v)
		if err != nil {
			return damaged(err)
		}
		if x, err = s.readExchange(txn, loc); err != nil {
			return damaged(err)
		}
		if row, err = readSummary(txn, loc); err != nil {
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

// readExchange puts an exchange together from its manifest and blobs.
func (s *Store) readExchange(txn *badger.Txn, loc location) (*exchange.Exchange, error) {
	m, err := s.readManifest(txn, loc)
	if err != nil {
		return nil, err
	}
	if m.x.Request.Body.Chunks, err = s.readBlob(txn, loc.run, m.request); err != nil {
		return nil, fmt.Errorf("read request body: %w", err)
	}
	if m.x.Response.Body.Chunks, err = s.readBlob(txn, loc.run, m.response); err != nil {
		return nil, fmt.Errorf("read response body: %w", err)
	}
	if m.reads.size > 0 {
		parts, err := s.readBlob(txn, loc.run, m.reads)
		if err != nil {
			return nil, fmt.Errorf("read reads: %w", err)
		}
		if m.x.Timeline.Reads, err = unpackReads(s.dec, joined(parts)); err != nil {
			return nil, err
		}
	}
	return m.x, nil
}

func joined(parts [][]byte) []byte { return exchange.Body{Chunks: parts}.Bytes() }

func (s *Store) readManifest(txn *badger.Txn, loc location) (*manifest, error) {
	v, err := getValue(txn, recordKey(loc))
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return parseRecord(s.dec, v)
}

func readSummary(txn *badger.Txn, loc location) (row exchange.Summary, err error) {
	item, err := txn.Get(summaryKey(loc))
	if err != nil {
		return row, fmt.Errorf("read summary: %w", err)
	}
	return itemSummary(item)
}

func itemSummary(item *badger.Item) (row exchange.Summary, err error) {
	err = item.Value(func(v []byte) error {
		row, err = decodeRow(v)
		return err
	})
	return row, err
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

// summaryPage is how many rows are read at a time, so that no reader holds a snapshot while its consumer works.
const summaryPage = 256

// Summaries are the rows of a run in the order of acceptance. The first error ends the sequence.
func (s *Store) Summaries(run exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		var after []byte
		for {
			rows, last, err := s.summaryPage(run, after)
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if err != nil {
				yield(exchange.Summary{}, &exchange.Error{Op: "read summaries", Object: string(run), Side: exchange.SideStore, Cause: err})
				return
			}
			if len(rows) < summaryPage {
				return
			}
			after = last
		}
	}
}

// summaryPage reads rows behind the key after, and gives the key of the last one.
func (s *Store) summaryPage(run exchange.ID, after []byte) (rows []exchange.Summary, last []byte, err error) {
	prefix := inRun(summaryPrefix, run)
	err = s.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix, PrefetchValues: true, PrefetchSize: 64})
		defer it.Close()
		start := prefix
		if after != nil {
			start = append(append([]byte(nil), after...), 0)
		}
		for it.Seek(start); it.Valid() && len(rows) < summaryPage; it.Next() {
			row, err := itemSummary(it.Item())
			if err != nil {
				return fmt.Errorf("%w: %q: %w", exchange.ErrDamaged, it.Item().Key(), err)
			}
			rows = append(rows, row)
			last = it.Item().KeyCopy(nil)
		}
		return nil
	})
	return rows, last, err
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

func (s *Store) takes(key string, want *digest) ([]Take, error) {
	var takes []Take
	fail := func(cause error) error {
		return &exchange.Error{Op: "look up key", Object: key, Side: exchange.SideStore, Cause: cause}
	}
	if strings.Contains(key, "/") {
		return nil, fail(fmt.Errorf("%w: not a key", exchange.ErrUsage))
	}
	err := s.view(func(txn *badger.Txn) error {
		return eachKey(txn, []byte(takePrefix+key+"/"), func(item *badger.Item) error {
			loc, err := parseLocation(item.Key())
			if err != nil {
				return damaged(err)
			}
			v, err := item.ValueCopy(nil)
			if err != nil {
				return err
			}
			if want == nil {
				want = new(digest)
				copy(want[:], v)
			}
			if string(v) != string(want[:]) {
				return fmt.Errorf("%w: see record %s", ErrCollision, loc.id)
			}
			takes = append(takes, Take{ID: loc.id, Run: loc.run, Seq: loc.seq})
			return nil
		})
	})
	if err != nil {
		return nil, fail(err)
	}
	return takes, nil
}
