package recorder

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// keeping runs a keeper until the test ends and gives what it tells.
func keeping(t *testing.T, s *Store, keep Retention) (removed chan PruneReport, failed chan error) {
	t.Helper()
	removed, failed = make(chan PruneReport, 100), make(chan error, 100)
	k := NewKeeper(s, KeeperOptions{Keep: keep, Every: time.Millisecond,
		Removed: func(r PruneReport) { removed <- r }, Failed: func(err error) {
			select {
			case failed <- err:
			default:
			}
		}})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { k.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return removed, failed
}

// TestKeeperKeepsTheStoreSmall records run after run under a limit of size: the disk use stays bounded, the oldest runs
// go, and neither the one that is written nor a pinned one does.
func TestKeeperKeepsTheStoreSmall(t *testing.T) {
	const runs, perRun, limit = 16, 20, 10 << 20 // 4 MB a run
	s := openStore(t, t.TempDir(), Options{valueLogFile: 4 << 20})
	pinned := recordAll(t, s, "pinned", noise(200<<10, 999))
	if err := s.Pin(pinned.ID, true); err != nil {
		t.Fatal(err)
	}
	removed, failed := keeping(t, s, Retention{MaxBytes: limit})
	names := map[string]bool{}
	for n := range runs {
		var xs []*exchange.Exchange
		for i := range perRun {
			xs = append(xs, noise(200<<10, uint64(n*1000+i)))
		}
		if run := recordAll(t, s, fmt.Sprint("run", n), xs...); run.State != exchange.RunComplete || run.Counts.Stored != perRun {
			t.Fatalf("run %d: %+v", n, run)
		}
		if n < 2 {
			continue
		}
		r := <-removed // each run from the third on pushes one out
		for _, gone := range r.Removed {
			names[gone.Name] = true
		}
		if r.BytesAfter > limit+24<<20 {
			t.Errorf("after run %d the store takes %d bytes", n, r.BytesAfter)
		}
		if n == runs-1 {
			t.Logf("%d MB were recorded; the store took %d and takes %d bytes", runs*4, r.BytesBefore, r.BytesAfter)
		}
	}
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
	if names["pinned"] || names[fmt.Sprint("run", runs-1)] || !names["run0"] {
		t.Errorf("removed %v", names)
	}
	left, err := s.Runs()
	if err != nil || len(left) < 2 || left[0].Name != "pinned" {
		t.Errorf("left %+v, %v", left, err)
	}
}

// TestKeeperLeavesTheRunThatIsWritten holds it by size and by age, while records are added and after: its records are
// all there.
func TestKeeperLeavesTheRunThatIsWritten(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	old := clock.Now().Add(-1000 * time.Hour)
	begun := newWriter(t, s, exchange.Run{Name: "old", Started: old}, WriterOptions{})
	begun.Offer(noise(100<<10, 1))
	closeWriter(t, begun)
	w := newWriter(t, s, exchange.Run{Name: "now", Started: old}, WriterOptions{})
	removed, _ := keeping(t, s, Retention{MaxAge: time.Hour, MaxBytes: 1})
	if r := <-removed; len(r.Removed) != 1 || r.Removed[0].Name != "old" {
		t.Errorf("removed %+v", r.Removed)
	}
	for i := range 50 {
		if !w.Offer(noise(10<<10, uint64(100+i))) {
			t.Fatalf("%+v", w.Health())
		}
	}
	w.Drain(t.Context())
	select {
	case r := <-removed:
		t.Errorf("removed %+v", r.Removed)
	default:
	}
	if rows := summaries(t, s, w.run.ID); len(rows) != 50 {
		t.Errorf("%d of 50 records are left", len(rows))
	}
	run := closeWriter(t, w) // now it is a run like others
	if r := <-removed; len(r.Removed) != 1 || r.Removed[0].ID != run.ID || r.BytesBefore == 0 {
		t.Errorf("removed %+v", r)
	}
}

// TestKeeperTellsErrors holds that an error is told and does not end it.
func TestKeeperTellsErrors(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	put(t, s, []byte(runPrefix+"x"), []byte("no JSON"))
	_, failed := keeping(t, s, Retention{MaxBytes: 1})
	for range 2 {
		if err := <-failed; err == nil || !strings.Contains(err.Error(), "read run") {
			t.Errorf("failed with %v", err)
		}
	}
	del(t, s, []byte(runPrefix+"x"))
}

// TestKeeperEndsWithItsContext holds that an end in the middle of a look is no failure.
func TestKeeperEndsWithItsContext(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	recordAll(t, s, "r", streamed("{}", "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	told := errors.New("nothing")
	NewKeeper(s, KeeperOptions{Keep: Retention{MaxBytes: 1}, Failed: func(err error) { told = err }}).Run(ctx)
	if told.Error() != "nothing" {
		t.Error(told)
	}
	if runs, err := s.Runs(); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v", runs, err)
	}
}
