package recorder

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plenty is a disk that is never full: tests must not depend on the machine's.
func plenty(string) (int64, error) { return 1 << 50, nil }

// openStore opens a store that is checked and closed when the test ends.
func openStore(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	if o.FreeSpace == nil {
		o.FreeSpace = plenty
	}
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeChecked(t, s) })
	return s
}

func closeChecked(t testing.TB, s *Store) {
	t.Helper()
	mustCheck(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// mustCheck holds that the store is clean. A closed one was checked when it was closed.
func mustCheck(t testing.TB, s *Store) CheckReport {
	t.Helper()
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return CheckReport{}
	}
	report, err := s.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Errorf("check: %s: %s", p.Object, p.Text)
	}
	return report
}

func newWriter(t testing.TB, s *Store, run exchange.Run, o WriterOptions) *Writer {
	t.Helper()
	w, err := s.NewWriter(run, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func closeWriter(t testing.TB, w *Writer) exchange.Run {
	t.Helper()
	run, err := w.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// recordAll stores exchanges in a run of their own.
func recordAll(t testing.TB, s *Store, name string, xs ...*exchange.Exchange) exchange.Run {
	t.Helper()
	w := newWriter(t, s, exchange.Run{Name: name, Mode: "record"}, WriterOptions{Derive: deriveStub})
	for _, x := range xs {
		if !w.Offer(x) {
			t.Fatalf("exchange %s refused: %+v", x.ID, w.Health())
		}
	}
	return closeWriter(t, w)
}

// deriveStub stands for the real derivation.
func deriveStub(x *exchange.Exchange) exchange.Summary {
	s := exchange.Summary{Outcome: exchange.OutcomeComplete, Model: "m", Metrics: exchange.Figures{"ttft_ms": {Value: 12, Unit: "ms", Basis: exchange.BasisMeasured}}}
	if x.End != exchange.EndEOF {
		s.Outcome = exchange.OutcomeClientAbort
	}
	return s
}

var day = time.Date(2026, 5, 17, 9, 30, 0, 123456789, time.UTC)

// streamed is a chat exchange whose answer came in the given pieces.
func streamed(request string, pieces ...string) *exchange.Exchange {
	body := strings.Join(pieces, "")
	x := &exchange.Exchange{
		ID: exchange.NewID(day), Upstream: "default", UpstreamURL: "http://127.0.0.1:8080", Mode: "record", Harness: "test",
		Request: exchange.Request{
			Method: "POST", Target: "/v1/chat/completions", Proto: "HTTP/1.1",
			Head:    []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n\r\n"),
			Headers: []exchange.Header{{Name: "Host", Value: "h"}},
			Body:    exchange.NewBody([]byte(request)),
		},
		Response: exchange.Response{
			Status: 200, Reason: "OK", Proto: "HTTP/1.1", Head: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"),
			Headers: []exchange.Header{{Name: "Content-Type", Value: "text/event-stream"}},
			Body:    exchange.NewBody([]byte(body)),
		},
		Timeline: exchange.Timeline{Wall: day, Clock: exchange.ClockRead, Accepted: exchange.MarkAt(0), SendStart: exchange.MarkAt(1000)},
		End:      exchange.EndEOF, State: exchange.StateStored,
	}
	at := int64(2000)
	for _, p := range pieces {
		x.Timeline.Reads = append(x.Timeline.Reads, exchange.Read{At: at, Write: 900, Size: len(p)})
		at += 1_000_000
	}
	return x
}

// answer is an answer of n tokens of some text, as an engine streams it.
func answer(n int, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 7))
	pieces := make([]string, n)
	for i := range pieces {
		word := make([]byte, 2+r.IntN(8))
		for j := range word {
			word[j] = byte('a' + r.IntN(26))
		}
		pieces[i] = fmt.Sprintf("data: {\"id\":\"chatcmpl-%d\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" %s\"},\"finish_reason\":null}]}\n\n", seed, word)
	}
	return pieces
}

// fill gives every field that v reaches a value of its own, so that a codec that forgets one is found out.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Interface().(type) {
	case exchange.Mark:
		v.Set(reflect.ValueOf(exchange.MarkAt(r.Int64N(1 << 40))))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1<<33), r.Int64N(1e9)).UTC()))
		return
	case exchange.Figures:
		v.Set(reflect.ValueOf(someFigures(r)))
		return
	case exchange.Body:
		b := make([]byte, 1+r.IntN(5000))
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		body := exchange.NewBody(b)
		body.Digest = body.Sum()
		v.Set(reflect.ValueOf(body))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(4), 4))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d\xff", r.IntN(1e9)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint64, reflect.Uint8:
		v.SetUint(1 + r.Uint64N(200))
	case reflect.Int64, reflect.Int:
		v.SetInt(1 + r.Int64N(1<<30))
	default:
		panic("a kind that fill does not know: " + v.Type().String())
	}
}

// someFigures are figures of every kind, under names that the row's table has and has not.
func someFigures(r *rand.Rand) exchange.Figures {
	fs := exchange.Figures{}
	for i, f := range append(slices.Clone(rowSources[:]), exchange.Figure{Basis: "guessed"}, exchange.Figure{Reason: "of_tomorrow"}, exchange.Figure{}) {
		if f.Present() {
			f.Value = [...]float64{0, 1, -17, 1 << 53, 1<<53 - 1, 0.1, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, r.NormFloat64()}[r.IntN(10)]
		}
		name := rowMetrics[r.IntN(len(rowMetrics))]
		if i%3 == 0 {
			name = fmt.Sprintf("metric_%d", r.IntN(1000))
		}
		fs[name] = f
	}
	return fs
}

// same compares exchanges by what they say, not by how their bodies are cut into chunks.
func same(a, b *exchange.Exchange) string {
	return cmp.Diff(a, b, cmp.AllowUnexported(exchange.Mark{}), cmp.Transformer("bytes", func(b exchange.Body) []any {
		return []any{b.Size, b.Kept, b.Digest, string(b.Bytes())}
	}))
}

// stored is x as the store gives it back: numbered, in its run, with digests.
func stored(x *exchange.Exchange, run exchange.ID, seq uint64) *exchange.Exchange {
	y := *x
	y.Run, y.Seq, y.Masked = run, seq, true
	y.Request.Body.Digest, y.Response.Body.Digest = x.Request.Body.Sum(), x.Response.Body.Sum()
	return &y
}

// gathered collects what callbacks tell.
type gathered struct {
	mu     sync.Mutex
	stored []exchange.Summary
	drops  map[exchange.ID]DropReason
}

func (g *gathered) options() WriterOptions {
	g.drops = map[exchange.ID]DropReason{}
	return WriterOptions{
		Derive: deriveStub,
		OnStored: func(s exchange.Summary) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.stored = append(g.stored, s)
		},
		OnDropped: func(id exchange.ID, why DropReason) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.drops[id] = why
		},
	}
}

func (g *gathered) ids() []exchange.ID {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []exchange.ID
	for _, s := range g.stored {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

func summaries(t testing.TB, s *Store, run exchange.ID) (rows []exchange.Summary) {
	t.Helper()
	for row, err := range s.Summaries(run) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func itoa(n int) string { return fmt.Sprint(n) }

func keysOf(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}

func put(t *testing.T, s *Store, key, value []byte) {
	t.Helper()
	if err := s.update(func(txn *badger.Txn) error { return txn.Set(key, value) }); err != nil {
		t.Fatal(err)
	}
}

func del(t *testing.T, s *Store, key []byte) {
	t.Helper()
	if err := s.deleteKeys([][]byte{key}); err != nil {
		t.Fatal(err)
	}
}
