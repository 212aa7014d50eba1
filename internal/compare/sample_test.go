package compare

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// repeatsOf is a replay of n requests of the run "a", so many times each; make makes the take of a repeat.
func repeatsOf(name string, n, repeats int, make func(e *Entry, repeat int)) *Side {
	s := &Side{Run: exchange.Run{ID: exchange.ID(name), State: exchange.RunComplete, Mode: "replay", Started: born, Harness: "test"}}
	for repeat := range repeats {
		for i := range n {
			e := entry(name, repeat*n+i, 100, 50)
			e.Row.Key = fmt.Sprintf("h1:%016x", i)
			e.Row.Origin = &exchange.Origin{Exchange: id("a", i)}
			e.Row.Item = &exchange.PlanItem{Item: string(id("a", i)), Turns: 1, Repeat: repeat}
			e.again = repeat > 0
			make(&e, repeat)
			s.Entries = append(s.Entries, e)
		}
	}
	return s
}

// warm makes an answer as fast as one whose prompt is in the cache.
func warm(e *Entry) {
	e.figure(measure.TTFTMS, 20)
	e.figure(measure.CachedTokens, 48)
}

// A run that repeats its requests finds its own prompts in the cache. That makes it no faster engine.
func TestWarmRepeatsAreNotSetAgainstColdTakes(t *testing.T) {
	warmLater := func(e *Entry, repeat int) {
		if repeat > 0 {
			warm(e)
		}
	}
	unknown := func(e *Entry, repeat int) {
		warmLater(e, repeat)
		e.absent(measure.CachedTokens, measure.ReasonNotReported)
	}
	notReported := func(s *Side) *Side {
		for i := range s.Entries {
			s.Entries[i].absent(measure.CachedTokens, measure.ReasonNotReported)
		}
		return s
	}
	for _, c := range []struct {
		name      string
		ref, cand *Side
		n         int
		takes     [2]int
		left      map[exchange.Reason]int
	}{
		{"once against three times", side("a", 8, 100, 50), repeatsOf("b", 8, 3, warmLater), 8, [2]int{8, 8}, map[exchange.Reason]int{ReasonCache: 16}},
		{"three times against once", repeatsOf("b", 8, 3, warmLater), side("a", 8, 100, 50), 8, [2]int{8, 8}, map[exchange.Reason]int{ReasonCircumstances: 16}},
		{"both three times", repeatsOf("b", 8, 3, warmLater), repeatsOf("c", 8, 3, warmLater), 16, [2]int{24, 24}, map[exchange.Reason]int{}},
		{"twice against four times", repeatsOf("b", 8, 2, warmLater), repeatsOf("c", 8, 4, warmLater), 16, [2]int{16, 32}, map[exchange.Reason]int{}},
		{"a cache that is not told", notReported(side("a", 8, 100, 50)), repeatsOf("b", 8, 3, unknown), 8, [2]int{8, 8}, map[exchange.Reason]int{ReasonCache: 16}},
		{"a cache that one side tells", side("a", 8, 100, 50), repeatsOf("b", 8, 3, unknown), 8, [2]int{8, 8}, map[exchange.Reason]int{ReasonCache: 16}},
	} {
		r := mustCompare(t, c.ref, c.cand, Options{Margin: DefaultMargin})
		m := of(t, r, measure.TTFTMS)
		if m.Verdict != Indistinguishable || math.Abs(*m.Ratio-1) > 0.02 || m.N != c.n || m.Takes != c.takes {
			t.Errorf("%s: %+v, ratio %v", c.name, m, *m.Ratio)
		}
		if diff := cmp.Diff(c.left, m.LeftOut); diff != "" {
			t.Errorf("%s: takes left out:\n%s", c.name, diff)
		}
		if d := of(t, r, measure.DecodeTPS); d.N != 8 || len(d.LeftOut) != 0 {
			t.Errorf("%s: decoding does not depend on the cache: %+v", c.name, d)
		}
	}
	both := mustCompare(t, side("a", 8, 100, 50), repeatsOf("b", 8, 3, warmLater), Options{Accept: []exchange.Reason{ReasonCache}})
	if m := of(t, both, measure.TTFTMS); m.Takes != [2]int{8, 24} || m.Verdict != Better {
		t.Errorf("accepted: %+v", m)
	}
}

func TestNonceMakesEveryRepeatNew(t *testing.T) {
	d := &exchange.Detail{Summary: exchange.Summary{Item: &exchange.PlanItem{Repeat: 1}, Metrics: exchange.Figures{}}}
	if e := NewEntry(d, nil); !e.again {
		t.Error("the same prompt again is new")
	}
	d.Interventions = []exchange.Intervention{{Kind: exchange.KindNonce}}
	if e := NewEntry(d, nil); e.again {
		t.Error("a prompt with a nonce was sent before")
	}
}

// One take that cannot be used does not take the others of its pair with it.
func TestOddTakeLeavesItsPair(t *testing.T) {
	odd := func(e *Entry, repeat int) {
		if repeat == 0 {
			e.absent(measure.DecodeTPS, measure.ReasonBuffered)
			e.figure(measure.EngineDecodeTPS, 50)
		}
	}
	m := of(t, mustCompare(t, side("a", 8, 100, 50), repeatsOf("b", 8, 3, odd), Options{}), measure.DecodeTPS)
	if m.N != 8 || m.Takes != [2]int{8, 16} || len(m.Excluded) != 0 || m.LeftOut[measure.ReasonBuffered] != 8 {
		t.Errorf("%+v", m)
	}
}

// A wave that lost a member left the engine to the others.
func TestWaveWithAFailedMemberIsNotCompared(t *testing.T) {
	waves := func(e *Entry, i int) { e.Row.Wave = fmt.Sprintf("w%d", i/4+1) }
	make := func(change func(s *Side)) *Report {
		ref, cand := side("a", 16, 100, 50), side("b", 16, 100, 50)
		for i := range 16 {
			waves(&ref.Entries[i], i)
			waves(&cand.Entries[i], i)
		}
		change(cand)
		return mustCompare(t, ref, cand, Options{})
	}
	failed := make(func(s *Side) { s.Entries[5].Row.Outcome = exchange.OutcomeStreamError })
	unsent := make(func(s *Side) {
		s.Run.Replay = &exchange.Replay{Waves: []exchange.WaveRate{{Wave: "w1"}, {Wave: "w2", Failed: 1}}}
	})
	for name, c := range map[string]struct {
		r    *Report
		want map[exchange.Reason]int
	}{
		"failed": {failed, map[exchange.Reason]int{ReasonFailed: 1, ReasonWave: 3}},
		"unsent": {unsent, map[exchange.Reason]int{ReasonWave: 4}},
	} {
		m := of(t, c.r, measure.TTFTMS)
		if diff := cmp.Diff(c.want, m.Excluded); diff != "" || m.N != 12 {
			t.Errorf("%s: %d pairs\n%s", name, m.N, diff)
		}
	}
}
