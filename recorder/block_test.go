package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// someRecords are records with bodies of which some are alike; seqs and ids are in no order.
func someRecords(r *rand.Rand, n int) (records []*record) {
	random := func(n int) []byte {
		b := make([]byte, r.IntN(n))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return b
	}
	for _, seq := range r.Perm(n) {
		rec := &record{
			loc: location{run: exchange.NewID(day), seq: uint64(seq + 1), id: exchange.NewID(day.Add(time.Duration(r.IntN(3000)) * time.Millisecond))},
			row: random(2000), manifest: random(4000),
		}
		for i := range rec.bodies {
			text := fmt.Appendf(nil, "body %d", r.IntN(n))
			switch r.IntN(3) {
			case 0:
				rec.bodies[i] = body{sum: sum256(text), small: true, parts: [][]byte{text[:3], text[3:]}, raw: len(text)}
			case 1:
				rec.bodies[i] = body{sum: sum256(text), small: true, packed: append([]byte{codecRaw}, text...)}
			}
		}
		records = append(records, rec)
	}
	return records
}

// TestBlocksKeepEveryRecord holds that the blocks of several batches give back what was put in, and every body once.
func TestBlocksKeepEveryRecord(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	var known knownBodies
	b := blockBuilder{known: &known}
	read := map[blockID]*block{}
	bodies := map[string]bool{}
	total := 0
	for _, n := range []int{1, 3, batchRecords, 40} {
		records := someRecords(r, n)
		want := slices.Clone(records)
		seen := 0
		for _, built := range b.build(records) {
			blk, err := parseBlock(bytes.Clone(built.value))
			if err != nil {
				t.Fatal(err)
			}
			read[built.id] = blk
			if blk.slots[0].seq != built.id.seq || len(blk.slots) != len(built.records) {
				t.Errorf("block %+v begins with %d and has %d records of %d", built.id, blk.slots[0].seq, len(blk.slots), len(built.records))
			}
			for _, packed := range blk.bodies {
				if bodies[string(packed)] {
					t.Errorf("%q is stored twice", packed)
				}
				bodies[string(packed)] = true
			}
			for i := range blk.slots {
				e := &blk.slots[i]
				rec := want[slices.IndexFunc(want, func(r *record) bool { return r.loc.id == e.id })]
				if e.seq != rec.loc.seq || !bytes.Equal(e.row, rec.row) || !bytes.Equal(e.manifest, rec.manifest) {
					t.Fatalf("record %s came back as another", e.id)
				}
				for k, p := range e.bodies {
					sameBody(t, read, blk, p, &rec.bodies[k])
				}
				seen++
			}
		}
		known.add(b.fresh)
		if total += seen; seen != n {
			t.Errorf("%d records of %d", seen, n)
		}
	}
	if len(read) < 8 || int(b.next) != len(read) {
		t.Errorf("%d blocks, the next is %d: this test must make more", len(read), b.next)
	}
}

// sameBody holds that a place holds the body that was put there.
func sameBody(t *testing.T, read map[blockID]*block, own *block, p bodyPlace, want *body) {
	t.Helper()
	if p.n == 0 {
		if want.small {
			t.Errorf("a small body has no place")
		}
		return
	}
	if p.in != (blockID{}) {
		own = read[p.in]
	}
	if own == nil || int(p.n) > len(own.bodies) || !bytes.Equal(own.bodies[p.n-1], want.appendTo(nil)) {
		t.Errorf("place %+v does not hold the body", p)
	}
}

func TestBlockRefusesDamage(t *testing.T) {
	b := blockBuilder{known: &knownBodies{}}
	good := bytes.Clone(b.build(someRecords(rand.New(rand.NewPCG(43, 44)), 3))[0].value)
	for n := range good {
		if _, err := parseBlock(good[:n]); !errors.Is(err, exchange.ErrDamaged) {
			t.Fatalf("the first %d of %d bytes give %v", n, len(good), err)
		}
	}
	for name, bad := range map[string][]byte{
		"a byte too many": append(bytes.Clone(good), 0),
		"newer":           append([]byte{blockVersion + 1}, good[1:]...),
		"many records":    {blockVersion, 0xff, 0xff, 0xff, 0xff, 0x7f, 0},
	} {
		if _, err := parseBlock(bad); !errors.Is(err, exchange.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzBlock holds: what parses lies within the value, and never overlaps: the parts are as long as the value at most.
func FuzzBlock(f *testing.F) {
	b := blockBuilder{known: &knownBodies{}}
	f.Add(bytes.Clone(b.build(someRecords(rand.New(rand.NewPCG(45, 46)), 3))[0].value))
	f.Add([]byte{blockVersion, 0, 0})
	f.Fuzz(func(t *testing.T, v []byte) {
		blk, err := parseBlock(v)
		if err != nil {
			return
		}
		n := 0
		for i := range blk.slots {
			n += len(blk.slots[i].id) + len(blk.slots[i].row) + len(blk.slots[i].manifest)
		}
		for _, p := range blk.bodies {
			n += len(p)
		}
		if n > len(v) {
			t.Errorf("%d bytes in a value of %d", n, len(v))
		}
	})
}

// TestPagesFindEveryID holds that each id is on the page of its bucket, once, with its slot.
func TestPagesFindEveryID(t *testing.T) {
	records := someRecords(rand.New(rand.NewPCG(47, 48)), 200)
	pages := pagesOf(records)
	if len(pages) < 3 || len(pages) > 5 {
		t.Errorf("%d pages for ids of three seconds", len(pages))
	}
	found := map[exchange.ID]int{}
	for _, p := range pages {
		if err := eachInPage(p.bucket, p.value, func(id exchange.ID, slot int) error {
			if _, twice := found[id]; twice || slotInPage(id, p.value) != slot {
				t.Errorf("%s: slot %d, looked up %d, seen before %t", id, slot, slotInPage(id, p.value), twice)
			}
			found[id] = slot
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range records {
		if slot, ok := found[r.loc.id]; !ok || slot != i {
			t.Errorf("record %d is in slot %d, %t", i, slot, ok)
		}
	}
	if slotInPage(exchange.NewID(day), pages[0].value) != -1 {
		t.Error("a page has an id that it has not")
	}
	for _, bad := range [][]byte{nil, {1}, pages[0].value[1:]} {
		if err := eachInPage("00000000", bad, func(exchange.ID, int) error { return nil }); !errors.Is(err, exchange.ErrDamaged) {
			t.Errorf("%d bytes: %v", len(bad), err)
		}
	}
	stop := errors.New("stop")
	if err := eachInPage(pages[0].bucket, pages[0].value, func(exchange.ID, int) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the visit goes on: %v", err)
	}
}

// TestBodiesBeyondTheLimitAreBlobs holds that a body stays stored once when blocks take no more.
func TestBodiesBeyondTheLimitAreBlobs(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{}, WriterOptions{})
	w.bodies.limit = 5
	p, err := newPreparer(w)
	if err != nil {
		t.Fatal(err)
	}
	var xs []*exchange.Exchange
	for round := range 4 {
		var batch []*record
		for i := range 6 {
			x := streamed(fmt.Sprintf(`{"a":%d}`, i/2), fmt.Sprint("answer ", i%4))
			xs = append(xs, x)
			r, err := p.prepare(&queued{x: x, seq: uint64(6*round + i + 1)})
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, r)
		}
		w.commit(batch)
	}
	run := closeWriter(t, w)
	if report := mustCheck(t, s); report.Blobs != 3+4 || report.StaleBlobs != 0 || report.Exchanges != len(xs) {
		t.Errorf("%+v", report)
	}
	blobs := 0
	if err := s.view(func(txn *badger.Txn) error {
		return eachKey(txn, inRun(blobPrefix, run.ID), func(*badger.Item) error { blobs++; return nil })
	}); err != nil || blobs != 2 {
		t.Errorf("%d blobs beside 5 bodies in blocks, %v", blobs, err)
	}
	for i, x := range xs {
		got, _, err := s.Exchange(x.ID)
		if err != nil {
			t.Fatal(err)
		}
		if d := same(stored(x, run.ID, uint64(i+1)), got); d != "" {
			t.Error(d)
		}
	}
}

// TestRowsOfLongAnswersAreInOrder holds that a listing is in the order of acceptance although an answer that was
// accepted first ended in a block with late ones.
func TestRowsOfLongAnswersAreInOrder(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{}, WriterOptions{})
	p, err := newPreparer(w)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(49, 50))
	const n = 3 * summaryPage
	var late []int // long answers, which end last
	var order []int
	for i := 1; i <= n; i++ {
		if r.IntN(20) == 0 {
			late = append(late, i)
		} else {
			order = append(order, i)
		}
	}
	order = append(order, late...)
	for len(order) > 0 {
		var batch []*record
		for _, seq := range order[:min(1+r.IntN(60), len(order))] {
			rec, err := p.prepare(&queued{x: streamed(fmt.Sprintf(`{"seq":%d}`, seq), "a"), seq: uint64(seq)})
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, rec)
		}
		order = order[len(batch):]
		w.commit(batch)
	}
	run := closeWriter(t, w)
	var got []uint64
	for _, row := range summaries(t, s, run.ID) {
		got = append(got, row.Seq)
	}
	want := make([]uint64, n)
	for i := range want {
		want[i] = uint64(i + 1)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
