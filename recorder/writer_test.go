package recorder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestStoredExchangeComesBackWhole(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	noisy := streamed(`{"z":1}`, strings.Split(strings.Repeat("x", 90_000), "")...) // reads too many for the manifest
	r, at := rand.New(rand.NewPCG(1, 1)), int64(5000)
	for i := range noisy.Timeline.Reads {
		at += r.Int64N(1 << 20)
		noisy.Timeline.Reads[i].At, noisy.Timeline.Reads[i].Write = at, r.Int64N(1<<16)
	}
	xs := []*exchange.Exchange{
		streamed(`{"z":1,"a":2}`, answer(100, 1)...),
		streamed("", ""),
		streamed("not json \x00\xff", "a", "", "b"),
		streamed(strings.Repeat("long ", 1<<18), strings.Repeat("answer", 1<<18)),
		noisy,
	}
	run := recordAll(t, s, "all", xs...)
	if run.State != exchange.RunComplete || run.Ended == nil || run.Counts.Stored != int64(len(xs)) || run.Counts.Dropped != 0 {
		t.Errorf("run %+v", run)
	}
	if xs[0].Run != "" || xs[0].Seq != 0 || xs[0].Response.Body.Digest != "" {
		t.Error("the offered exchange was changed")
	}
	comeBack(t, s, run.ID, xs)
	if err := s.view(func(txn *badger.Txn) error {
		at, err := findRecord(txn, noisy.ID)
		if err != nil {
			return err
		}
		return readBlock(txn, run.ID, at.in, func(b *block) error {
			m, err := parseRecord(s.dec, b.slots[at.slot].manifest)
			if err == nil && m.reads.size == 0 {
				t.Error("the reads are in the manifest: this test must make more")
			}
			return err
		})
	}); err != nil {
		t.Error(err)
	}
}

// comeBack holds that the exchanges of a run are read as they were offered, with the facts in their rows.
func comeBack(t *testing.T, s *Store, run exchange.ID, xs []*exchange.Exchange) {
	t.Helper()
	for i, x := range xs {
		got, row, err := s.Exchange(x.ID)
		if err != nil {
			t.Fatal(err)
		}
		if d := same(stored(x, run, uint64(i+1)), got); d != "" {
			t.Errorf("exchange %d: %.2000s", i, d)
		}
		if row.ID != x.ID || row.Seq != uint64(i+1) || row.Model != "m" || row.ResponseSum != x.Response.Body.Sum() || row.Key != canon.RequestKey(&x.Request).Key {
			t.Errorf("row %d: %+v", i, row)
		}
	}
	rows := summaries(t, s, run)
	if len(rows) != len(xs) || rows[0].Digest == "" || rows[2].Digest != "" || !hasFlag(rows[2], FlagRawKey) || hasFlag(rows[0], FlagRawKey) {
		t.Errorf("rows %+v", rows)
	}
}

func hasFlag(s exchange.Summary, flag string) bool {
	for _, f := range s.Flags {
		if f == flag {
			return true
		}
	}
	return false
}

func TestSummariesPageInOrder(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{}, WriterOptions{Workers: 4})
	n := 2*summaryPage + 10
	for i := n; i > 0; i-- { // numbered by the proxy, offered in another order
		x := streamed(fmt.Sprintf(`{"i":%d}`, i), "a")
		x.Seq = uint64(i)
		if !w.Offer(x) {
			t.Fatal(w.Health())
		}
	}
	run := closeWriter(t, w)
	rows := summaries(t, s, run.ID)
	if len(rows) != n {
		t.Fatalf("%d rows, want %d", len(rows), n)
	}
	for i, row := range rows {
		if row.Seq != uint64(i+1) {
			t.Fatalf("row %d has seq %d", i, row.Seq)
		}
	}
	seen := 0
	for _, err := range s.Summaries(run.ID) {
		if seen++; err != nil || seen == 3 {
			break
		}
	}
	if len(summaries(t, s, exchange.NewID(day))) != 0 {
		t.Error("a run that does not exist has rows")
	}
}

func TestBodiesAreStoredOncePerRun(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	same := func() *exchange.Exchange { return streamed(`{"prompt":"one"}`, "the", "answer") }
	recordAll(t, s, "a", same(), same(), same())
	if report := mustCheck(t, s); report.Blobs != 2 || report.Exchanges != 3 {
		t.Errorf("report %+v, want 2 blobs", report)
	}
	recordAll(t, s, "b", same())
	if report := mustCheck(t, s); report.Blobs != 4 {
		t.Errorf("report %+v, want 4 blobs: runs share nothing", report)
	}
}

// TestTakesAreKeptInOrder holds field report AX-25: several answers to one request.
func TestTakesAreKeptInOrder(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"temperature":0}`
	spelled := `{ "temperature": 0, "messages": [{"content":"hi","role":"user"}], "stream": true, "model": "m" }`
	a, b, c := streamed(body, "alpha"), streamed(spelled, "beta"), streamed(body, "alpha")
	run1 := recordAll(t, s, "one", a, b, streamed(`{"other":1}`, "x"))
	run2 := recordAll(t, s, "two", c)
	key := canon.RequestKey(&a.Request).Key
	got, err := s.Takes(key)
	want := []Take{{a.ID, run1.ID, 1}, {b.ID, run1.ID, 2}, {c.ID, run2.ID, 1}}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("takes %+v, %v", got, err)
	}
	var texts []string
	for _, take := range got {
		x, _, err := s.Exchange(take.ID)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(x.Response.Body.Bytes()))
	}
	if d := cmp.Diff([]string{"alpha", "beta", "alpha"}, texts); d != "" {
		t.Error(d)
	}
	if confirmed, err := s.Lookup(&b.Request); err != nil || cmp.Diff(want, confirmed) != "" {
		t.Errorf("lookup %+v, %v", confirmed, err)
	}
	if none, err := s.Takes("h1:0000000000000000"); err != nil || len(none) != 0 {
		t.Errorf("takes of no key: %+v, %v", none, err)
	}
	if _, err := s.Takes("h1:00/x"); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("a key with a slash: %v", err)
	}
}

func TestCollisionIsAnError(t *testing.T) {
	s, err := Open(t.TempDir(), Options{FreeSpace: plenty})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	a, b := streamed(`{"a":1}`, "a"), streamed(`{"a":1}`, "b")
	run := recordAll(t, s, "r", a, b)
	key := canon.RequestKey(&a.Request).Key
	other := sum256([]byte("another request"))
	put(t, s, takeKey(key, location{run.ID, 2, b.ID}), other[:])
	if _, err := s.Takes(key); !errors.Is(err, ErrCollision) {
		t.Errorf("takes: %v", err)
	}
	if _, err := s.Lookup(&a.Request); !errors.Is(err, ErrCollision) {
		t.Errorf("lookup: %v", err)
	}
}

// TestFailuresAndCutRecordsAreStored holds field report AX-30: every request has its artifact, and a cut says so.
func TestFailuresAndCutRecordsAreStored(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	refused := streamed(`{"a":1}`)
	refused.Response, refused.End = exchange.Response{}, exchange.EndConnectFailed
	refused.Cause = &exchange.Cause{Side: exchange.SideEngine, Code: "connect", Text: "connection refused"}
	bad := streamed(`{"a":2}`, `{"error":{"message":"context too long"}}`)
	bad.Response.Status = 400
	cut := streamed(`{"a":3}`, "kept")
	cut.State = exchange.StateTruncated
	cut.Response.Body.Size, cut.Response.Body.Digest = 1000, exchange.DigestPrefix+"ab"
	run := recordAll(t, s, "r", refused, bad, cut)
	if run.Counts.Stored != 3 || run.Counts.Truncated != 1 || run.State != exchange.RunComplete {
		t.Errorf("run %+v", run)
	}
	for i, x := range []*exchange.Exchange{refused, bad, cut} {
		got, row, err := s.Exchange(x.ID)
		if err != nil {
			t.Fatal(err)
		}
		if d := same(stored(x, run.ID, uint64(i+1)), got); d != "" {
			t.Error(d)
		}
		if row.Status != x.Response.Status || row.State != x.State || row.ResponseBytes != x.Response.Body.Size || cmp.Diff(row.Cause, x.Cause) != "" {
			t.Errorf("row %+v", row)
		}
	}
}

// TestThousandAnswersOf100kB holds field report RR-31: nothing is missing without a sign.
func TestThousandAnswersOf100kB(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	var g gathered
	w := newWriter(t, s, exchange.Run{}, g.options())
	text := strings.Repeat("0123456789abcdef", 100<<10/16)
	var wg sync.WaitGroup
	var refused atomic.Int64
	for c := range 32 {
		wg.Go(func() {
			for i := c; i < 1000; i += 32 {
				if !w.Offer(streamed(fmt.Sprintf(`{"i":%d}`, i), fmt.Sprint(i), text)) {
					refused.Add(1)
				}
			}
		})
	}
	wg.Wait()
	run := closeWriter(t, w)
	if n := int64(len(g.ids())); n+refused.Load() != 1000 || run.Counts.Stored != n || run.Counts.Dropped != refused.Load() || int64(len(g.drops)) != refused.Load() {
		t.Errorf("%d stored, %d refused, %d told, run %+v", n, refused.Load(), len(g.drops), run.Counts)
	}
	if refused.Load() != 0 {
		t.Errorf("%d refused, though all fit in the queue", refused.Load())
	}
	if rows := summaries(t, s, run.ID); int64(len(rows)) != run.Counts.Stored {
		t.Errorf("%d rows", len(rows))
	}
}

// heldWriter is a writer whose one worker waits in its first record until release is called.
func heldWriter(t *testing.T, s *Store, g *gathered, queueBytes int64) (w *Writer, release func()) {
	t.Helper()
	hold, held := make(chan struct{}), make(chan struct{}, 100)
	o := g.options()
	o.Workers, o.QueueBytes = 1, queueBytes
	o.Derive = func(*exchange.Exchange) exchange.Summary {
		held <- struct{}{}
		<-hold
		return exchange.Summary{}
	}
	w = newWriter(t, s, exchange.Run{Name: "held"}, o)
	if !w.Offer(streamed("{}", "a")) {
		t.Fatal("an empty queue refused")
	}
	<-held
	return w, func() { close(hold) }
}

func TestOfferRefusesWithReason(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	var g gathered
	w, release := heldWriter(t, s, &g, 3*recordOverhead)
	noID, foreign := streamed("{}", "a"), streamed("{}", "a")
	noID.ID, foreign.Run = "nonsense", exchange.NewID(day)
	huge := streamed("{}", strings.Repeat("x", 4*recordOverhead)) // more than the queue holds, while something waits
	for x, want := range map[*exchange.Exchange]DropReason{noID: DropInvalid, foreign: DropInvalid, huge: DropQueueFull} {
		if w.Offer(x) || g.drops[x.ID] != want {
			t.Errorf("offer is told %q, want %q", g.drops[x.ID], want)
		}
	}
	h := w.Health()
	if want := map[string]int64{"invalid": 2, "queue_full": 1}; h.Dropped != 3 || cmp.Diff(want, h.DropWhy) != "" || h.QueueBytes == 0 || h.QueueLimit != 3*recordOverhead {
		t.Errorf("health %+v", h)
	}
	if runs, err := s.Runs(); err != nil || runs[0].State != exchange.RunOpen || runs[0].Counts.Dropped != 3 {
		t.Errorf("live run %+v, %v", runs, err)
	}
	release()
	closeWriter(t, w)
}

// TestDroppingMakesARunIncomplete holds the other end of TestOfferRefusesWithReason: what the closing write says.
func TestDroppingMakesARunIncomplete(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	var g gathered
	w, release := heldWriter(t, s, &g, recordOverhead)
	if w.Offer(streamed("{}", "a")) {
		t.Error("a full queue took a record")
	}
	release()
	run := closeWriter(t, w)
	if run.State != exchange.RunIncomplete || run.Counts.Stored != 1 || run.Counts.Dropped != 1 {
		t.Errorf("run %+v", run)
	}
	if w.Offer(streamed("{}", "late")) || w.Health().Dropped != 2 || w.Health().QueueBytes != 0 {
		t.Errorf("after close: %+v", w.Health())
	}
	if again := closeWriter(t, w); cmp.Diff(run, again) != "" {
		t.Error("the second close gives another run")
	}
	if back, err := s.Run("held"); err != nil || cmp.Diff(run, back) != "" {
		t.Errorf("stored run %+v, %v", back, err)
	}
}

func TestBiggerThanTheQueueIsTakenAlone(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{}, WriterOptions{QueueBytes: recordOverhead})
	if !w.Offer(streamed("{}", strings.Repeat("x", 10*recordOverhead))) {
		t.Error("refused by an empty queue")
	}
	closeWriter(t, w)
}

func TestDuplicateIDIsNotOverwritten(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	var g gathered
	w := newWriter(t, s, exchange.Run{}, g.options())
	x, y := streamed("{}", "first"), streamed("{}", "second")
	y.ID = x.ID
	w.Offer(x)
	w.Offer(y)
	closeWriter(t, w)
	recordAll(t, s, "other run", y)
	got, _, err := s.Exchange(x.ID)
	if err != nil || string(got.Response.Body.Bytes()) != "first" || g.drops[x.ID] != DropDuplicate {
		t.Errorf("got %v, told %v", err, g.drops)
	}
}

func TestDerivePanicKeepsTheRecord(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{}, WriterOptions{Derive: func(*exchange.Exchange) exchange.Summary { panic("bug") }})
	w.Offer(streamed("{}", "a"))
	run := closeWriter(t, w)
	rows := summaries(t, s, run.ID)
	if len(rows) != 1 || !hasFlag(rows[0], FlagDeriveFailed) || rows[0].Path != "/v1/chat/completions" {
		t.Errorf("rows %+v", rows)
	}
}

func TestCloseGivesUpWhenTold(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	var g gathered
	w, release := heldWriter(t, s, &g, 0)
	for range 9 {
		w.Offer(streamed("{}", "a"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	go func() { <-w.hurry; release() }()
	run, err := w.Close(ctx)
	if err != nil || run.Counts.Stored != 1 || run.Counts.DropWhy["shutdown"] != 9 || run.State != exchange.RunIncomplete {
		t.Errorf("run %+v, %v", run, err)
	}
}

func TestNoSpacePausesAndResumes(t *testing.T) {
	var free atomic.Int64
	free.Store(1 << 50)
	var log bytes.Buffer
	s := openStore(t, t.TempDir(), Options{FreeSpace: func(string) (int64, error) { return free.Load(), nil }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	events := make(chan string, 100)
	w := newWriter(t, s, exchange.Run{}, WriterOptions{
		OnStored:  func(exchange.Summary) { events <- "stored" },
		OnDropped: func(_ exchange.ID, why DropReason) { events <- string(why) },
	})
	offer := func(want, degraded string) {
		t.Helper()
		if !w.Offer(streamed("{}", "a")) {
			t.Fatal("refused")
		}
		if got := <-events; got != want {
			t.Fatalf("%s, want %s", got, want)
		}
		if got := w.Health().Degraded; got != degraded {
			t.Fatalf("degraded %q, want %q", got, degraded)
		}
	}
	offer("stored", "")
	free.Store(DefaultMinFree - 1)
	offer("no_space", "no_space")
	offer("no_space", "no_space")
	if _, err := s.NewWriter(exchange.Run{}, WriterOptions{}); !errors.Is(err, exchange.ErrNoSpace) {
		t.Errorf("new run on a full disk: %v", err)
	}
	free.Store(DefaultMinFree)
	offer("stored", "")
	free.Store(10)
	if _, err := w.Close(t.Context()); !errors.Is(err, exchange.ErrNoSpace) {
		t.Errorf("closing write on a full disk: %v", err)
	}
	free.Store(1 << 50)
	runs, err := s.Runs()
	if err != nil || runs[0].State != exchange.RunOpen || runs[0].Counts.Stored != 2 || runs[0].Counts.DropWhy["no_space"] != 2 {
		t.Errorf("runs %+v, %v", runs, err)
	}
	if n := strings.Count(log.String(), "recording pauses"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
}

func TestStoreCloseLeavesRunsOpen(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	w := newWriter(t, s, exchange.Run{Name: "open"}, WriterOptions{})
	for range 20 {
		w.Offer(streamed("{}", "a"))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Options{})
	run, err := s.Run("open")
	if err != nil || run.State != exchange.RunOpen || run.Counts.Stored != 20 {
		t.Errorf("run %+v, %v", run, err)
	}
	if _, err := w.Close(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("closing a run of a closed store: %v", err)
	}
}

func TestRunsAreFoundByIDAndName(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	first := recordAll(t, s, "nightly", streamed("{}", "a"))
	second := recordAll(t, s, "nightly", streamed("{}", "b"))
	for in, want := range map[string]exchange.ID{"nightly": second.ID, string(first.ID): first.ID} {
		if r, err := s.Run(in); err != nil || r.ID != want {
			t.Errorf("%s: %s, %v", in, r.ID, err)
		}
	}
	for _, in := range []string{"", "none", string(exchange.NewID(day))} {
		if _, err := s.Run(in); !errors.Is(err, exchange.ErrMiss) {
			t.Errorf("%q: %v", in, err)
		}
	}
	if _, _, err := s.Exchange(exchange.NewID(day)); !errors.Is(err, exchange.ErrMiss) || errors.Is(err, exchange.ErrDamaged) {
		t.Errorf("exchange: %v", err)
	}
	if _, err := s.NewWriter(exchange.Run{ID: first.ID}, WriterOptions{}); !errors.Is(err, errRunExists) {
		t.Errorf("a run of the same id: %v", err)
	}
	for _, bad := range []exchange.Run{{ID: "x"}, {Name: string(first.ID)}} {
		if _, err := s.NewWriter(bad, WriterOptions{}); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("run %+v: %v", bad, err)
		}
	}
	if err := s.Pin(exchange.NewID(day), true); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("pin of no run: %v", err)
	}
}
