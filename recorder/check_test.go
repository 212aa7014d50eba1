package recorder

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/dgraph-io/badger/v4"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// damage is a store with one record of small bodies, whose block is taken apart to be written with a fault.
type damage struct {
	t    *testing.T
	s    *Store
	loc  location
	row  exchange.Summary
	in   blockID
	slot slot
	body [2][]byte // coded
}

func newDamage(t *testing.T, s *Store) *damage {
	x := streamed(`{"a":1}`, "answer")
	run := recordAll(t, s, "r", x)
	mustCheck(t, s)
	d := &damage{t: t, s: s, loc: location{run: run.ID, seq: 1, id: x.ID}, row: summaries(t, s, run.ID)[0]}
	err := s.view(func(txn *badger.Txn) error {
		at, err := findRecord(txn, x.ID)
		if err != nil {
			return err
		}
		d.in = at.in
		return readBlock(txn, run.ID, at.in, func(b *block) error {
			d.slot = b.slots[at.slot]
			d.slot.row, d.slot.manifest = bytes.Clone(d.slot.row), bytes.Clone(d.slot.manifest)
			d.body = [2][]byte{bytes.Clone(b.bodies[0]), bytes.Clone(b.bodies[1])}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *damage) blockKey() []byte { return blockKey(d.loc.run, d.in) }
func (d *damage) pageKey() []byte  { return pageKey(string(d.loc.id[:bucketLen]), d.loc.run, d.in) }

// write writes the block as it stands now.
func (d *damage) write() {
	d.t.Helper()
	r := &record{loc: location{run: d.loc.run, seq: d.slot.seq, id: d.slot.id}, row: d.slot.row, manifest: d.slot.manifest}
	for i := range r.bodies {
		r.bodies[i] = body{sum: digest{byte(i + 1)}, small: true, packed: d.body[i]}
	}
	b := blockBuilder{known: &knownBodies{}, next: d.in.no}
	put(d.t, d.s, d.blockKey(), b.build([]*record{r})[0].value)
}

// TestCheckFindsDamage breaks one thing at a time and holds that Check sees it.
func TestCheckFindsDamage(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, s *Store, d *damage){
		"no block":  func(t *testing.T, s *Store, d *damage) { del(t, s, d.blockKey()) },
		"no take":   func(t *testing.T, s *Store, d *damage) { del(t, s, takeKey(d.row.Key, d.loc)) },
		"no index":  func(t *testing.T, s *Store, d *damage) { del(t, s, d.pageKey()) },
		"no run":    func(t *testing.T, s *Store, d *damage) { del(t, s, runKey(d.loc.run)) },
		"no bodies": func(_ *testing.T, _ *Store, d *damage) { d.body = [2][]byte{{codecRaw}, {codecRaw}}; d.write() },
		"other body": func(_ *testing.T, _ *Store, d *damage) {
			d.body[1] = []byte("\x00answeR")
			d.write()
		},
		"bad body":    func(_ *testing.T, _ *Store, d *damage) { d.body[1] = []byte{9, 1}; d.write() },
		"no manifest": func(_ *testing.T, _ *Store, d *damage) { d.slot.manifest = nil; d.write() },
		"no row":      func(_ *testing.T, _ *Store, d *damage) { d.slot.row = nil; d.write() },
		"bad row":     func(_ *testing.T, _ *Store, d *damage) { d.slot.row = []byte{rowVersion, 0}; d.write() },
		"newer row": func(t *testing.T, _ *Store, d *damage) {
			d.row.Version = exchange.SummaryVersion + 1
			d.slot.row = rowOf(t, d.row)
			d.write()
		},
		"other row": func(t *testing.T, _ *Store, d *damage) {
			d.row.ResponseSum = ""
			d.slot.row = rowOf(t, d.row)
			d.write()
		},
		"other id":    func(_ *testing.T, _ *Store, d *damage) { d.slot.id = exchange.NewID(day); d.write() },
		"other seq":   func(_ *testing.T, _ *Store, d *damage) { d.slot.seq = 7; d.write() },
		"bad block":   func(t *testing.T, s *Store, d *damage) { put(t, s, d.blockKey(), []byte{blockVersion, 1}) },
		"newer block": func(t *testing.T, s *Store, d *damage) { put(t, s, d.blockKey(), []byte{blockVersion + 1, 0, 0}) },
		"bad page":    func(t *testing.T, s *Store, d *damage) { put(t, s, d.pageKey(), []byte("x")) },
		"bad page key": func(t *testing.T, s *Store, _ *damage) {
			put(t, s, []byte("i/00000000/short"), nil)
		},
		"bad block key": func(t *testing.T, s *Store, _ *damage) { put(t, s, []byte("x/short"), nil) },
		"two pages": func(t *testing.T, s *Store, d *damage) {
			p := pagesOf([]*record{{loc: d.loc}})[0]
			put(t, s, d.pageKey(), append(p.value, p.value...))
		},
		"two bodies": func(t *testing.T, s *Store, d *damage) { // the record's own, and a blob that another record uses
			other := streamed(`{"a":2}`, "answer")
			w := newWriter(t, s, exchange.Run{}, WriterOptions{})
			w.run.ID = d.loc.run // the same run, by a writer that does not know what is there
			p, err := newPreparer(w)
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.prepare(&queued{x: other, seq: 2})
			if err != nil {
				t.Fatal(err)
			}
			w.builder.next = 5
			w.commit([]*record{r})
			closeWriter(t, w)
		},
	} {
		t.Run(name, func(t *testing.T) { findDamage(t, spoil) })
	}
}

// TestCheckFindsDamageAround does the same to what belongs to the record outside of its block.
func TestCheckFindsDamageAround(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, s *Store, d *damage){
		"bad run": func(t *testing.T, s *Store, d *damage) { put(t, s, runKey(d.loc.run), []byte("{")) },
		"other take": func(t *testing.T, s *Store, d *damage) {
			put(t, s, takeKey(d.row.Key, d.loc), make([]byte, 32))
		},
		"stray take": func(t *testing.T, s *Store, d *damage) {
			d.loc.seq = 2
			put(t, s, takeKey(d.row.Key, d.loc), make([]byte, 32))
		},
		"bad take": func(t *testing.T, s *Store, _ *damage) { put(t, s, []byte("h/short"), nil) },
		"bad counts": func(t *testing.T, s *Store, d *damage) {
			if err := s.putRun(RunSize{Run: exchange.Run{ID: d.loc.run, State: exchange.RunComplete, Counts: exchange.RunCounts{Stored: 7, Dropped: 1}}}); err != nil {
				t.Fatal(err)
			}
		},
		"bad state": func(t *testing.T, s *Store, _ *damage) {
			if err := s.putRun(RunSize{Run: exchange.Run{ID: "other", State: "odd"}}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { findDamage(t, spoil) })
	}
}

func findDamage(t *testing.T, spoil func(t *testing.T, s *Store, d *damage)) {
	t.Helper()
	s, err := Open(t.TempDir(), Options{FreeSpace: plenty})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	spoil(t, s, newDamage(t, s))
	report, err := s.Check(t.Context())
	if err != nil || report.OK() {
		t.Errorf("check found nothing: %+v, %v", report, err)
	}
}

// TestCheckFindsDamagedBlobs is the same for a body with entries of its own.
func TestCheckFindsDamagedBlobs(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, s *Store, key []byte){
		"no blob":    func(t *testing.T, s *Store, key []byte) { del(t, s, key) },
		"other blob": func(t *testing.T, s *Store, key []byte) { put(t, s, key, []byte("\x00answeR")) },
		"bad blob":   func(t *testing.T, s *Store, key []byte) { put(t, s, key, []byte{9, 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.TempDir(), Options{FreeSpace: plenty})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			x := noise(2*maxInline, 1)
			run := recordAll(t, s, "r", x)
			mustCheck(t, s)
			spoil(t, s, blobKey(run.ID, sum256(x.Response.Body.Chunks...), 0))
			report, err := s.Check(t.Context())
			if err != nil || report.OK() {
				t.Errorf("check found nothing: %+v, %v", report, err)
			}
		})
	}
}

// TestCheckBesideWriter holds that a check sees one state of a store that is being written to: no record is a stray to
// it, and the counts of the open run are those of the records it found.
func TestCheckBesideWriter(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	underway := make(chan struct{}, handRecords)
	w := newWriter(t, s, exchange.Run{Name: "live"}, WriterOptions{
		Derive: deriveStub, OnStored: func(exchange.Summary) { <-underway },
	})
	stop := make(chan struct{})
	var offering sync.WaitGroup
	offering.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case underway <- struct{}{}:
				w.Offer(streamed(fmt.Sprintf(`{"a":%d}`, n), "answer"))
			}
		}
	})
	for grown, before := 0, 0; grown < 4 && !t.Failed(); {
		report := mustCheck(t, s)
		if report.Exchanges > before {
			grown, before = grown+1, report.Exchanges
		}
	}
	close(stop)
	offering.Wait()
	closeWriter(t, w)
}
