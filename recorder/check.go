package recorder

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"

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
}

// Check reads everything and holds that it fits: every index entry leads to a record, row and take of the same
// request; every blob has its digest; reads sum up to the body and stamps are in order; runs have the counts they
// state. The error says that the check could not be made; what it found is in the report.
func (s *Store) Check(ctx context.Context) (CheckReport, error) {
	c := &checker{s: s, ctx: ctx, report: CheckReport{Schema: 1, Problems: []Problem{}}, counts: map[exchange.ID]exchange.RunCounts{}, used: map[string]bool{}}
	for _, pass := range []func(*badger.Txn) error{c.records, c.strays, c.blobs, c.runs} {
		if err := s.view(pass); err != nil {
			return c.report, &exchange.Error{Op: "check store", Object: s.dir, Side: exchange.SideStore, Cause: err}
		}
	}
	if err := s.checkGoldens(); err != nil {
		c.problem(goldensDir, "%v", err)
	}
	return c.report, nil
}

func (c *checker) problem(object, format string, args ...any) {
	if len(c.report.Problems) < maxProblems {
		c.report.Problems = append(c.report.Problems, Problem{Object: object, Text: fmt.Sprintf(format, args...)})
	}
}

// records follows every index entry.
func (c *checker) records(txn *badger.Txn) error {
	return eachKey(txn, []byte(indexPrefix), func(item *badger.Item) error {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		c.report.Exchanges++
		id := exchange.ID(item.Key()[len(indexPrefix):])
		v, err := item.ValueCopy(nil)
		if err != nil {
			c.problem(string(id), "read index entry: %v", err)
			return nil
		}
		loc, err := parseIndex(id, v)
		if err != nil {
			c.problem(string(id), "%v", err)
			return nil
		}
		c.record(txn, loc)
		return nil
	})
}

// record holds one record together: manifest, blobs, row and take.
func (c *checker) record(txn *badger.Txn, loc location) {
	id := string(loc.id)
	m, err := c.s.readManifest(txn, loc)
	if err != nil {
		c.problem(id, "%v", err)
		return
	}
	for _, ref := range []blobRef{m.request, m.response, m.reads} {
		if ref.size > 0 {
			c.used[string(blobPrefixOf(loc.run, ref.sum))] = true
		}
	}
	x, err := c.s.readExchange(txn, loc)
	if err != nil {
		c.problem(id, "%v", err)
		return
	}
	for _, p := range exchangeProblems(x) {
		c.problem(id, "%s", p)
	}
	if x.ID != loc.id || x.Run != loc.run || x.Seq != loc.seq {
		c.problem(id, "manifest is of %s, run %s, seq %d", x.ID, x.Run, x.Seq)
	}
	c.row(txn, loc, x)
}

// row compares the summary row and the take of a record with the record.
func (c *checker) row(txn *badger.Txn, loc location, x *exchange.Exchange) {
	id := string(loc.id)
	row, err := readSummary(txn, loc)
	if err != nil {
		c.problem(id, "%v", err)
		return
	}
	counts := c.counts[loc.run]
	countStored(&counts, &row)
	c.counts[loc.run] = counts

	key := canon.RequestKey(&x.Request)
	if row.ID != x.ID || row.Key != key.Key || row.RequestSum != x.Request.Body.Digest || row.ResponseSum != x.Response.Body.Digest {
		c.problem(id, "summary row is of another exchange")
	}
	want := sum256(key.Canonical)
	if v, err := getValue(txn, takeKey(row.Key, loc)); err != nil {
		c.problem(id, "read take: %v", err)
	} else if string(v) != string(want[:]) {
		c.problem(id, "take is of another request")
	}
}

// exchangeProblems are the ways in which an exchange contradicts itself.
func exchangeProblems(x *exchange.Exchange) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for name, b := range map[string]*exchange.Body{"request": &x.Request.Body, "response": &x.Response.Body} {
		kept := exchange.Body{Size: b.Kept, Kept: b.Kept, Chunks: b.Chunks}
		held := int64(len(joined(b.Chunks)))
		switch {
		case held != b.Kept || b.Kept > b.Size:
			add("%s body: %d bytes held, %d kept, %d in all", name, held, b.Kept, b.Size)
		case b.Whole() && kept.Sum() != b.Digest:
			add("%s body does not have its digest", name)
		case !b.Whole() && x.State != exchange.StateTruncated:
			add("%s body is cut and the record does not say so", name)
		}
	}
	sum, last := int64(0), int64(0)
	for i, r := range x.Timeline.Reads {
		if r.At < last || r.Size < 0 {
			add("read %d: stamp %d after %d, size %d", i, r.At, last, r.Size)
			break
		}
		sum, last = sum+int64(r.Size), r.At
	}
	if x.State == exchange.StateStored && sum != x.Response.Body.Size {
		add("reads sum up to %d bytes, the body has %d", sum, x.Response.Body.Size)
	}
	return append(problems, markProblems(&x.Timeline)...)
}

// markProblems are marks out of order. Only orders that every clock keeps are held: a client may leave, and an engine
// may answer, at any time.
func markProblems(t *exchange.Timeline) (problems []string) {
	type named struct {
		name string
		mark exchange.Mark
	}
	chains := [][]named{
		{{"accepted", t.Accepted}, {"request_read", t.RequestRead}, {"send_start", t.SendStart}, {"send_done", t.SendDone}},
		{{"upstream_dialed", t.Dialed}, {"send_start", t.SendStart}, {"header_read", t.HeaderRead}},
		{{"first_read", t.FirstRead}, {"last_read", t.LastRead}, {"body_end", t.BodyEnd}},
		{{"accepted", t.Accepted}, {"client_done", t.ClientDone}},
	}
	for _, chain := range chains {
		last, name := int64(0), "the origin"
		for _, m := range chain {
			ns, ok := m.mark.NS()
			if !ok {
				continue
			}
			if ns < last {
				problems = append(problems, fmt.Sprintf("%s is before %s", m.name, name))
			}
			last, name = ns, m.name
		}
	}
	return problems
}

// strays finds manifests, rows and takes that no index entry leads to.
func (c *checker) strays(txn *badger.Txn) error {
	for _, prefix := range []string{recordPrefix, summaryPrefix, takePrefix} {
		if err := eachKey(txn, []byte(prefix), func(item *badger.Item) error {
			loc, err := parseLocation(item.Key())
			if err != nil {
				c.problem(fmt.Sprintf("%q", item.Key()), "%v", err)
				return c.ctx.Err()
			}
			v, err := getValue(txn, indexKey(loc.id))
			if err != nil || string(v) != string(indexValue(loc)) {
				c.problem(fmt.Sprintf("%q", item.Key()), "no index entry leads here")
			}
			return c.ctx.Err()
		}); err != nil {
			return err
		}
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
		if c.s.writing(id) {
			return // the counts move while we look
		}
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

// checkGoldens holds that the goldens, when there are any, can be opened.
func (s *Store) checkGoldens() error {
	dir := s.GoldensDir()
	if _, err := os.Stat(dir); err != nil {
		return ignoreGone(err)
	}
	db, err := openBadger(dir, &s.o)
	if err != nil {
		return fmt.Errorf("open goldens: %w", err)
	}
	return errors.Join(db.VerifyChecksum(), db.Close())
}
