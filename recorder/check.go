package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// CheckReport is what Check found.
type CheckReport struct {
	Schema     int       `json:"schema"` // of this document
	Runs       int       `json:"runs"`
	OpenRuns   int       `json:"open_runs"` // being written, or their owner died
	Exchanges  int       `json:"exchanges"`
	Blobs      int       `json:"blobs"`
	BlobBytes  int64     `json:"blob_bytes"`  // uncompressed
	StaleBlobs int       `json:"stale_blobs"` // blobs that no record uses: left by a failed commit, harmless
	Goldens    int       `json:"goldens"`
	Replies    int       `json:"golden_replies"` // of references to what gates asked
	Problems   []Problem `json:"problems"`
}

// Problem is one thing that is not as it must be.
type Problem struct {
	Object string `json:"object"` // run, exchange or key
	Text   string `json:"text"`
}

// OK reports whether nothing is wrong.
func (r *CheckReport) OK() bool { return len(r.Problems) == 0 }

// maxProblems bounds the report of a store that is broken throughout.
const maxProblems = 1000

// checker is one pass over a store.
type checker struct {
	s      *Store
	ctx    context.Context
	report CheckReport
	counts map[exchange.ID]exchange.RunCounts // by run, as found
	used   map[string]bool                    // blobs that records use, by key prefix
	bodies map[string]bodyPlace               // bodies in blocks that records use, by the key prefix that a blob would have
	found  map[exchange.ID]foundRecord        // records that an index page leads to
}

// foundRecord is where an index page led to, and the seq found there.
type foundRecord struct {
	place
	seq uint64
}

// Check reads everything and holds that it fits: every index page leads to records, rows and takes of the same
// requests; every body has its digest and is stored once; reads sum up to the body and stamps are in order; runs have
// the counts they state. The error says that the check could not be made; what it found is in the report.
func (s *Store) Check(ctx context.Context) (CheckReport, error) {
	c := &checker{
		s: s, ctx: ctx, report: CheckReport{Schema: 1, Problems: []Problem{}}, counts: map[exchange.ID]exchange.RunCounts{},
		used: map[string]bool{}, bodies: map[string]bodyPlace{}, found: map[exchange.ID]foundRecord{},
	}
	if err := s.view(c.all); err != nil {
		return c.report, &exchange.Error{Op: "check store", Object: s.dir, Side: exchange.SideStore, Cause: err}
	}
	if err := c.checkGoldens(); err != nil {
		c.problem(goldensDir, "%v", err)
	}
	return c.report, nil
}

// all makes every pass over one snapshot: records that are written meanwhile would be strays to a pass that sees them
// when the one before did not.
func (c *checker) all(txn *badger.Txn) error {
	for _, pass := range []func(*badger.Txn) error{c.records, c.strays, c.blobs, c.runs} {
		if err := pass(txn); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) problem(object, format string, args ...any) {
	if len(c.report.Problems) < maxProblems {
		c.report.Problems = append(c.report.Problems, Problem{Object: object, Text: fmt.Sprintf(format, args...)})
	}
}

// records follows every index page.
func (c *checker) records(txn *badger.Txn) error {
	return eachKey(txn, []byte(indexPrefix), func(item *badger.Item) error {
		key := fmt.Sprintf("%q", item.Key())
		bucket, run, id, err := parsePageKey(item.Key())
		if err != nil {
			c.problem(key, "%v", err)
			return c.ctx.Err()
		}
		v, err := item.ValueCopy(nil)
		if err != nil {
			c.problem(key, "read index page: %v", err)
			return c.ctx.Err()
		}
		if err := readBlock(txn, run, id, func(b *block) error {
			return eachInPage(bucket, v, func(x exchange.ID, slot int) error {
				c.report.Exchanges++
				c.record(txn, b, x, place{run: run, in: id, slot: slot})
				return nil
			})
		}); err != nil {
			c.problem(key, "%v", err)
		}
		return c.ctx.Err()
	})
}

// record holds one record together: manifest, bodies, row and take.
func (c *checker) record(txn *badger.Txn, b *block, id exchange.ID, at place) {
	object := string(id)
	e, err := b.slot(at.slot, id)
	if err != nil {
		c.problem(object, "%v", err)
		return
	}
	if _, twice := c.found[id]; twice {
		c.problem(object, "two records have this id")
	}
	c.found[id] = foundRecord{place: at, seq: e.seq}
	m, err := parseRecord(c.s.dec, e.manifest)
	if err != nil {
		c.problem(object, "%v", err)
		return
	}
	c.body(at, m.request, e.bodies[0])
	c.body(at, m.response, e.bodies[1])
	c.body(at, m.reads, bodyPlace{})
	x, err := c.s.readExchange(txn, at.run, b, e)
	if err != nil {
		c.problem(object, "%v", err)
		return
	}
	for _, p := range exchange.Problems(x) {
		c.problem(object, "%s", p)
	}
	if m.request.size > 0 && sum256(x.Request.Body.Chunks...) != m.request.sum || m.response.size > 0 && sum256(x.Response.Body.Chunks...) != m.response.sum {
		c.problem(object, "a body is not the one that the manifest names")
	}
	if x.ID != id || x.Run != at.run || x.Seq != e.seq {
		c.problem(object, "manifest is of %s, run %s, seq %d", x.ID, x.Run, x.Seq)
	}
	c.row(txn, location{run: at.run, seq: e.seq, id: id}, x, e.row)
}

// body notes that a record uses a body, which must lie in one place only.
func (c *checker) body(user place, ref blobRef, at bodyPlace) {
	if ref.size == 0 {
		return
	}
	name := string(blobPrefixOf(user.run, ref.sum))
	if at.n == 0 {
		c.used[name] = true
	} else if at.in == (blockID{}) {
		at.in = user.in
	}
	if before, ok := c.bodies[name]; ok && before != at {
		c.problem(fmt.Sprintf("body %x", ref.sum), "run %s holds it twice", user.run)
	}
	c.bodies[name] = at
}

// row compares the summary row and the take of a record with the record.
func (c *checker) row(txn *badger.Txn, loc location, x *exchange.Exchange, coded []byte) {
	id := string(loc.id)
	row, err := decodeRow(coded)
	if err != nil {
		c.problem(id, "%v", err)
		return
	}
	counts := c.counts[loc.run]
	countStored(&counts, &row)
	c.counts[loc.run] = counts

	key := canon.RequestKey(&x.Request)
	if row.ID != x.ID || row.Seq != x.Seq || row.Key != key.Key || row.RequestSum != x.Request.Body.Digest || row.ResponseSum != x.Response.Body.Digest {
		c.problem(id, "summary row is of another exchange")
	}
	want := sum256(key.Canonical)
	if v, err := getValue(txn, takeKey(row.Key, loc)); err != nil {
		c.problem(id, "read take: %v", err)
	} else if string(v) != string(want[:]) {
		c.problem(id, "take is of another request")
	}
}

// strays finds blocks with records, and takes, that no index page leads to, and counts the bodies in blocks.
func (c *checker) strays(txn *badger.Txn) error {
	if err := eachKey(txn, []byte(blockPrefix), func(item *badger.Item) error {
		key := fmt.Sprintf("%q", item.Key())
		run, id, err := parseBlockKey(item.Key())
		if err == nil {
			err = blockOf(item, func(b *block) error { return c.block(key, run, id, b) })
		}
		if err != nil {
			c.problem(key, "%v", err)
		}
		return c.ctx.Err()
	}); err != nil {
		return err
	}
	return eachKey(txn, []byte(takePrefix), func(item *badger.Item) error {
		key := fmt.Sprintf("%q", item.Key())
		loc, err := parseLocation(item.Key())
		if err != nil {
			c.problem(key, "%v", err)
		} else if at, ok := c.found[loc.id]; !ok || at.run != loc.run || at.seq != loc.seq {
			c.problem(key, "no index page leads to its record")
		}
		return c.ctx.Err()
	})
}

func (c *checker) block(key string, run exchange.ID, id blockID, b *block) error {
	for i := range b.slots {
		e := &b.slots[i]
		if at, ok := c.found[e.id]; !ok || at.place != (place{run: run, in: id, slot: i}) {
			c.problem(string(e.id), "no index page leads to slot %d of block %s", i, key)
		}
		if e.seq < id.seq {
			c.problem(string(e.id), "seq %d is below that of its block %s", e.seq, key)
		}
	}
	for i, packed := range b.bodies {
		body, err := unpack(c.s.dec, packed)
		if err != nil {
			return fmt.Errorf("body %d: %w", i+1, err)
		}
		c.report.Blobs++
		c.report.BlobBytes += int64(len(body))
	}
	return nil
}

// blobs holds that every blob, used or not, is what its digest says.
func (c *checker) blobs(txn *badger.Txn) error {
	var prefix string
	hash := sha256.New()
	finish := func() {
		if prefix == "" {
			return
		}
		c.report.Blobs++
		if !c.used[prefix] {
			c.report.StaleBlobs++ // it may be half written: its digest says nothing
			return
		}
		if want := prefix[len(prefix)-1-hash.Size() : len(prefix)-1]; string(hash.Sum(nil)) != want {
			c.problem(fmt.Sprintf("blob %x", want), "does not have its digest")
		}
	}
	err := eachKey(txn, []byte(blobPrefix), func(item *badger.Item) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		key := item.Key()
		if at := string(key[:len(key)-4]); at != prefix {
			finish()
			prefix = at
			hash.Reset()
		}
		err := item.Value(func(v []byte) error {
			b, err := unpack(c.s.dec, v)
			hash.Write(b)
			c.report.BlobBytes += int64(len(b))
			return err
		})
		if err != nil {
			c.problem(fmt.Sprintf("%q", key), "%v", err)
		}
		return nil
	})
	if err == nil {
		finish()
	}
	return err
}

// runs compares the counts of every run with the records found, and finds records without a run.
func (c *checker) runs(txn *badger.Txn) error {
	seen := map[exchange.ID]bool{}
	err := eachKey(txn, []byte(runPrefix), func(item *badger.Item) error {
		c.report.Runs++
		id := exchange.ID(item.Key()[len(runPrefix):])
		seen[id] = true
		r, err := decodeRun(item)
		if err != nil {
			c.problem(string(id), "%v", err)
			return c.ctx.Err()
		}
		c.run(id, &r.Run)
		return c.ctx.Err()
	})
	for id := range c.counts {
		if !seen[id] {
			c.problem(string(id), "records of a run that does not exist")
		}
	}
	return err
}

func (c *checker) run(id exchange.ID, r *exchange.Run) {
	if r.ID != id {
		c.problem(string(id), "run row is of %s", r.ID)
	}
	switch r.State {
	case exchange.RunOpen:
		c.report.OpenRuns++
	case exchange.RunComplete:
		if r.Counts.Dropped > 0 || r.Ended == nil {
			c.problem(string(id), "complete, with %d records dropped and end %v", r.Counts.Dropped, r.Ended)
		}
	case exchange.RunIncomplete:
	default:
		c.problem(string(id), "unknown state %q", r.State)
	}
	found := c.counts[id]
	a, _ := json.Marshal(found.Outcomes)
	b, _ := json.Marshal(r.Counts.Outcomes)
	if found.Stored != r.Counts.Stored || found.Truncated != r.Counts.Truncated || string(a) != string(b) {
		c.problem(string(id), "states %d stored, %d truncated, outcomes %s; found %d, %d, %s",
			r.Counts.Stored, r.Counts.Truncated, b, found.Stored, found.Truncated, a)
	}
}
