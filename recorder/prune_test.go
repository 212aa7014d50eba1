package recorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// noise is an exchange whose answer does not compress.
func noise(n int, seed uint64) *exchange.Exchange {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return streamed(fmt.Sprintf(`{"seed":%d}`, seed), string(b))
}

// TestPruneGivesSpaceBack is field report RR-32.
func TestPruneGivesSpaceBack(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{valueLogFile: 4 << 20})
	var runs []exchange.Run
	for r := range 4 {
		var xs []*exchange.Exchange
		for i := range 40 {
			xs = append(xs, noise(200<<10, uint64(r*1000+i)))
		}
		runs = append(runs, recordAll(t, s, fmt.Sprint("run", r), xs...))
	}
	if err := s.Pin(runs[1].ID, true); err != nil {
		t.Fatal(err)
	}
	keep := Retention{Runs: []exchange.ID{runs[0].ID, runs[1].ID, runs[2].ID}, DryRun: true}
	dry, err := s.Prune(t.Context(), keep)
	if err != nil || len(dry.Removed) != 2 || dry.Kept[string(runs[1].ID)] != "pinned" || !dry.DryRun || dry.BytesBefore != dry.BytesAfter {
		t.Errorf("dry run %+v, %v", dry, err)
	}
	if report := mustCheck(t, s); report.Exchanges != 160 {
		t.Errorf("a dry run left %d exchanges", report.Exchanges)
	}
	keep.DryRun = false
	report, err := s.Prune(t.Context(), keep)
	if err != nil || len(report.Removed) != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	t.Logf("disk use %d -> %d", report.BytesBefore, report.BytesAfter)
	if freed := report.BytesBefore - report.BytesAfter; freed < 8<<20 {
		t.Errorf("removing 16 MB freed %d bytes: %d -> %d", freed, report.BytesBefore, report.BytesAfter)
	}
	if got := mustCheck(t, s); got.Exchanges != 80 || got.Runs != 2 || got.StaleBlobs != 0 {
		t.Errorf("left %+v", got)
	}
	if takes, err := s.Takes("h1:"); err != nil || len(takes) != 0 {
		t.Errorf("takes %v, %v", takes, err)
	}
	for _, x := range summaries(t, s, runs[3].ID) {
		if _, _, err := s.Exchange(x.ID); err != nil {
			t.Error(err)
		}
	}
	recordAll(t, s, "after", streamed("{}", "a"))
}

func TestRetentionByAgeAndSize(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	begin := func(name string, age time.Duration) *Writer {
		return newWriter(t, s, exchange.Run{Name: name, Started: clock.Now().Add(-age)}, WriterOptions{})
	}
	var sizes []int64
	for i, age := range []time.Duration{300 * time.Hour, 200 * time.Hour, 100 * time.Hour} {
		w := begin(fmt.Sprint("r", i), age)
		w.Offer(noise(50<<10, uint64(i)))
		closeWriter(t, w)
	}
	open := begin("open", 400*time.Hour)
	defer closeWriter(t, open)
	stats, err := s.Stats()
	if err != nil || len(stats.Runs) != 4 || stats.Exchanges != 3 || stats.DiskBytes == 0 || stats.Format != FormatVersion || stats.FreeBytes != 1<<50 || stats.GoldenBytes != 0 {
		t.Fatalf("stats %+v, %v", stats, err)
	}
	for _, r := range stats.Runs {
		sizes = append(sizes, r.Bytes)
	}
	if sizes[3] < 50<<10 || sizes[0] != 0 {
		t.Fatalf("sizes %v", sizes)
	}
	names := func(keep Retention) (names []string) {
		keep.DryRun = true
		report, err := s.Prune(t.Context(), keep)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Removed {
			names = append(names, r.Name)
		}
		return names
	}
	for want, keep := range map[string]Retention{
		"[]":         {},
		"[r0]":       {MaxAge: 250 * time.Hour},
		"[r0 r1]":    {MaxBytes: sizes[3] + 10},
		"[r0 r1 r2]": {MaxBytes: 1},
	} {
		if got := fmt.Sprint(names(keep)); got != want {
			t.Errorf("%+v removes %s, want %s", keep, got, want)
		}
	}
	report, err := s.Prune(t.Context(), Retention{Runs: []exchange.ID{open.run.ID}})
	if err != nil || len(report.Removed) != 0 || report.Kept[string(open.run.ID)] != "being written" {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := s.Prune(t.Context(), Retention{Runs: []exchange.ID{exchange.NewID(day)}}); !errors.Is(err, exchange.ErrMiss) {
		t.Errorf("pruning no run: %v", err)
	}
}

func TestPinOfARunBeingWritten(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{Name: "r"}, WriterOptions{})
	if err := s.Pin(w.run.ID, true); err != nil {
		t.Fatal(err)
	}
	w.Offer(streamed("{}", "a"))
	if run := closeWriter(t, w); !run.Pinned {
		t.Error("the closing write lost the pin")
	}
	if run, err := s.Run("r"); err != nil || !run.Pinned {
		t.Errorf("run %+v, %v", run, err)
	}
}

func TestCheckOpensGoldens(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	db, err := openBadger(s.GoldensDir(), &s.o)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := s.Check(t.Context()); err != nil || report.OK() {
		t.Errorf("goldens that are locked: %+v, %v", report, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, s)
}
