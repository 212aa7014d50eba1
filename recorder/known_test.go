package recorder

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func idRecord(id exchange.ID) *record { return &record{loc: location{id: id}} }

// TestKnownIDsForgetNone holds that an id that was added is in doubt for ever, whatever the order and the number.
func TestKnownIDsForgetNone(t *testing.T) {
	k := &knownIDs{floor: exchange.NewID(day)}
	if !k.mayHave(k.floor) || !k.mayHave(exchange.NewID(day.Add(-time.Hour))) || k.mayHave(exchange.NewID(day.Add(time.Hour))) {
		t.Error("the floor does not part new ids from old ones")
	}
	r := rand.New(rand.NewPCG(31, 32))
	var all []exchange.ID
	for range 2*maxKnown + maxKnown/2 {
		id := exchange.NewID(day.Add(time.Duration(r.IntN(3600)) * time.Second))
		k.add([]*record{idRecord(id)})
		all = append(all, id)
	}
	for _, id := range all {
		if !k.mayHave(id) {
			t.Fatalf("id %s is forgotten", id)
		}
	}
	if len(k.ids) > maxKnown {
		t.Errorf("%d ids are kept", len(k.ids))
	}
	if k.mayHave(exchange.NewID(day.Add(2 * time.Hour))) {
		t.Error("a new id is in doubt")
	}
}

// TestDuplicatesAreFoundAfterReopening holds that an id of an earlier owner is never written again.
func TestDuplicatesAreFoundAfterReopening(t *testing.T) {
	dir := t.TempDir()
	x, y := streamed(`{"a":1}`, "first"), streamed(`{"a":2}`, "second")
	s := openStore(t, dir, Options{})
	recordAll(t, s, "one", x)
	closeChecked(t, s)

	s = openStore(t, dir, Options{})
	if floor := s.known.floor; floor != x.ID {
		t.Errorf("highest id %q, want %q", floor, x.ID)
	}
	var g gathered
	w := newWriter(t, s, exchange.Run{Name: "two"}, g.options())
	for _, z := range []*exchange.Exchange{x, y, y} {
		w.Offer(z)
	}
	if run := closeWriter(t, w); run.Counts.Stored != 1 || run.Counts.DropWhy[string(DropDuplicate)] != 2 {
		t.Errorf("stored %d, dropped %v", run.Counts.Stored, run.Counts.DropWhy)
	}
	if got := g.ids(); len(got) != 1 || got[0] != y.ID {
		t.Errorf("stored %v, want %s", got, y.ID)
	}
}

// TestKnownBlobsAskWhenInDoubt holds that a blob which memory does not know is looked for in the store, as soon as
// memory may be wrong.
func TestKnownBlobsAskWhenInDoubt(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{}, WriterOptions{Derive: deriveStub})
	x := noise(2*maxInline, 1) // too large for a block
	w.Offer(x)
	closeWriter(t, w)
	sum, other := sum256(x.Response.Body.Chunks...), sum256([]byte("never"))
	if stored, sure := w.known.has(sum); !stored || !sure {
		t.Fatalf("a committed blob: %t, sure %t", stored, sure)
	}
	if stored, sure := w.known.has(other); stored || !sure {
		t.Fatalf("a blob that never was: %t, sure %t", stored, sure)
	}
	w.known.doubt()
	if stored, sure := w.known.has(sum); !stored || !sure {
		t.Errorf("doubt took back what is sure: %t, %t", stored, sure)
	}
	if _, sure := w.known.has(other); sure {
		t.Error("sure of a blob after a failed write")
	}

	for i := range maxKnown + 1 {
		w.known.add([]blob{{sum: digest{byte(i), byte(i >> 8), byte(i >> 16)}}})
	}
	if len(w.known.sums) > maxKnown {
		t.Errorf("%d digests are kept", len(w.known.sums))
	}
	if _, sure := w.known.has(sum); sure {
		t.Error("sure of a digest that was forgotten")
	}
	if !w.hasBlob(sum, 1) || w.hasBlob(sum, 2) || w.hasBlob(other, 1) {
		t.Error("the store was not asked, or gave another answer")
	}
}
