package recorder

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestRunKeepsItsPlan(t *testing.T) {
	for why, want := range map[string]exchange.RunState{"": exchange.RunComplete, "2 of 3 items did not end": exchange.RunIncomplete} {
		s := openStore(t, t.TempDir(), Options{})
		planned := exchange.Replay{Plan: "p1:1", Items: exchange.ItemCounts{Planned: 3, Unsent: 3}}
		w := newWriter(t, s, exchange.Run{Name: "plan", Mode: "replay", Replay: &planned}, WriterOptions{Derive: deriveStub})
		if got, err := s.Run("plan"); err != nil || got.Replay == nil || got.Replay.Plan != "p1:1" || got.Replay.Items.Unsent != 3 {
			t.Errorf("while open: %+v, %v", got.Replay, err)
		}
		x := streamed(`{"a":1}`, "b")
		x.Item = &exchange.PlanItem{Item: "i", Conversation: "c", Turn: 1, Turns: 2, Repeat: 3, Attempt: 4, Warmup: true}
		x.Origin = &exchange.Origin{Exchange: "o", Key: "h1:2", Occurrence: 5}
		x.Timeline.Intended = exchange.MarkAt(-7_000_000)
		drafted := int64(7)
		x.Counters = &exchange.Counters{Source: "vllm /metrics", After: exchange.CounterReading{Drafted: &drafted}}
		w.Offer(x)
		w.Drain(t.Context())
		if got := w.Run(); got.State != exchange.RunOpen || got.Counts.Stored != 1 {
			t.Errorf("drained: %+v", got)
		}
		if !w.Replay(exchange.Replay{Plan: "p1:1", Items: exchange.ItemCounts{Planned: 3, Complete: 1}, Incomplete: why}) {
			t.Error("the plan was not taken")
		}
		if got := closeWriter(t, w).State; got != want {
			t.Errorf("%q: state %s, want %s", why, got, want)
		}
		if w.Replay(exchange.Replay{}) {
			t.Error("a closed run took a plan")
		}
		got, err := s.Run("plan")
		if err != nil || got.Replay.Items.Complete != 1 || got.Replay.Incomplete != why {
			t.Errorf("%+v, %v", got.Replay, err)
		}
		y, _, err := s.Exchange(x.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(x.Item, y.Item); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(x.Counters, y.Counters); diff != "" {
			t.Error(diff)
		}
		if ns, ok := y.Timeline.Intended.NS(); !ok || ns != -7_000_000 || *y.Origin != *x.Origin {
			t.Errorf("intended %d, %v; origin %+v", ns, ok, y.Origin)
		}
		closeChecked(t, s)
	}
}

// TestManifestsOfOlderVersions reads what a store of the time before plans holds.
func TestManifestsOfOlderVersions(t *testing.T) {
	x := streamed(`{"a":1}`, "b")
	var w fieldWriter
	writeManifest(&w, &manifest{x: x})
	now, err := decodeManifest(w.b)
	if err != nil {
		t.Fatal(err)
	}
	for version, less := range map[byte]int{
		oldestManifest:  3, // without item, intended mark and counters, of which there are none
		plannedManifest: 1, // without counters
	} {
		got, err := decodeManifest(append([]byte{version}, w.b[1:len(w.b)-less]...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := same(now.x, got.x); diff != "" {
			t.Errorf("version %d: %s", version, diff)
		}
	}
	for _, v := range []byte{oldestManifest - 1, manifestVersion + 1} {
		if _, err := decodeManifest(append([]byte{v}, w.b[1:]...)); err == nil {
			t.Errorf("version %d was read", v)
		}
	}
}
