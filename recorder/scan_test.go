package recorder

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// all wants every exchange of a piece.
func all(exchange.ID, uint64) bool { return true }

// pieces gives the parts of a run.
func pieces(t *testing.T, s *Store, run exchange.ID) []Piece {
	t.Helper()
	ps, err := s.Pieces(run)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// TestPiecesHaveEveryExchangeOnce holds that reading a run by pieces gives what reading it by ids does, but for the reads.
func TestPiecesHaveEveryExchangeOnce(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	var xs []*exchange.Exchange
	for i := range 300 {
		x := streamed(fmt.Sprintf(`{"n":%d}`, i%7), answer(20, uint64(i))...) // requests come again: their bodies lie in other blocks
		if i%100 == 0 {
			x.Response.Body = exchange.NewBody([]byte(strings.Repeat("long ", 1<<18))) // a blob
			x.Timeline.Reads = []exchange.Read{{At: 2000, Size: 5 << 18}}
		}
		x.ID, x.Seq = exchange.NewID(day), uint64(i+1)
		xs = append(xs, x)
	}
	run := recordAll(t, s, "r", xs...)
	recordAll(t, s, "other", streamed(`{}`, "data: x\n\n"))
	ps := pieces(t, s, run.ID)
	if len(ps) < 2 {
		t.Fatalf("%d pieces", len(ps))
	}
	seen := map[exchange.ID]bool{}
	for _, p := range ps {
		last := uint64(0)
		if err := s.ReadPiece(p, all, func(x *exchange.Exchange) error {
			if seen[x.ID] || x.Seq <= last {
				t.Errorf("exchange %d comes twice or late", x.Seq)
			}
			seen[x.ID], last = true, x.Seq
			whole, _, err := s.Exchange(x.ID)
			if err != nil {
				return err
			}
			whole.Timeline.Reads = nil
			if diff := same(whole, x); diff != "" {
				t.Errorf("exchange %d: %s", x.Seq, diff)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != len(xs) {
		t.Errorf("%d of %d exchanges", len(seen), len(xs))
	}
}

// TestPieceGivesWhatIsWanted holds the ends of reading a piece: what is not wanted is not read, visit can stop it, and a run
// that was removed or is damaged is told.
func TestPieceGivesWhatIsWanted(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	a, b := streamed(`{"n":1}`, "data: a\n\n"), streamed(`{"n":2}`, "data: b\n\n")
	a.ID, b.ID, b.Seq = exchange.NewID(day), exchange.NewID(day), 1
	run := recordAll(t, s, "r", a, b)
	p := pieces(t, s, run.ID)[0]
	var got []exchange.ID
	visit := func(x *exchange.Exchange) error {
		got = append(got, x.ID)
		return nil
	}
	if err := s.ReadPiece(p, func(id exchange.ID, seq uint64) bool { return id == b.ID && seq == 1 }, visit); err != nil || !slices.Equal(got, []exchange.ID{b.ID}) {
		t.Errorf("%v, %v", got, err)
	}
	enough := errors.New("enough")
	if err := s.ReadPiece(p, all, func(*exchange.Exchange) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("a visit that stops: %v", err)
	}
	var value []byte
	if err := s.view(func(txn *badger.Txn) (err error) {
		value, err = getValue(txn, blockKey(p.run, p.id))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	put(t, s, blockKey(p.run, p.id), value[:len(value)-1])
	if err := s.ReadPiece(p, all, visit); !errors.Is(err, exchange.ErrDamaged) {
		t.Errorf("a torn piece: %v", err)
	}
	put(t, s, blockKey(p.run, p.id), value)
	if err := s.ReadPiece(Piece{run: run.ID, id: blockID{seq: 99}}, all, visit); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("a piece that is gone: %v", err)
	}
	if none := pieces(t, s, exchange.NewID(day)); len(none) != 0 {
		t.Errorf("%d pieces of no run", len(none))
	}
}

// TestTakesComeByPages holds that pages of takes together are all of them, in order.
func TestTakesComeByPages(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	for r := range 3 {
		var xs []*exchange.Exchange
		for i := range 7 {
			x := streamed(`{"same":true}`, answer(1, uint64(i))...)
			x.ID, x.Seq = exchange.NewID(day), uint64(i+1)
			xs = append(xs, x)
		}
		recordAll(t, s, itoa(r), xs...)
	}
	runs, err := s.Runs()
	if err != nil {
		t.Fatal(err)
	}
	key := summaries(t, s, runs[0].ID)[0].Key
	want, err := s.Takes(key)
	if err != nil || len(want) != 21 {
		t.Fatalf("%d takes, %v", len(want), err)
	}
	for _, limit := range []int{1, 4, 7, 21, 100} {
		var got []Take
		for more, after := true, (Take{}); more; {
			var page []Take
			if page, more, err = s.TakesAfter(key, after, limit); err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 || len(page) > limit {
				t.Fatalf("a page of %d", len(page))
			}
			got, after = append(got, page...), page[len(page)-1]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %d: %s", limit, diff)
		}
	}
	if takes, more, err := s.TakesAfter("h1:0000000000000000", Take{}, 5); len(takes) != 0 || more || err != nil {
		t.Errorf("of no request: %v %v %v", takes, more, err)
	}
	if _, _, err := s.TakesAfter("h1:00/x", Take{}, 5); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("of no key: %v", err)
	}
	last := want[len(want)-1]
	put(t, s, takeKey(key, location{run: last.Run, seq: last.Seq, id: last.ID}), make([]byte, 32))
	if _, _, err := s.TakesAfter(key, want[5], 100); !errors.Is(err, ErrCollision) {
		t.Errorf("of two requests: %v", err)
	}
	del(t, s, takeKey(key, location{run: last.Run, seq: last.Seq, id: last.ID}))
	put(t, s, takeKey(key, location{run: last.Run, seq: last.Seq, id: last.ID}), digestOf(t, s, key, want[0]))
}

// digestOf is what is stored of a take.
func digestOf(t *testing.T, s *Store, key string, of Take) (v []byte) {
	t.Helper()
	if err := s.view(func(txn *badger.Txn) (err error) {
		v, err = getValue(txn, takeKey(key, location{run: of.Run, seq: of.Seq, id: of.ID}))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return v
}
