package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// matched lists the pairs as the ids of both sides.
func matched(p *pairing) [][2][]exchange.ID {
	var out [][2][]exchange.ID
	for _, pr := range p.pairs {
		out = append(out, [2][]exchange.ID{ids(pr.reference), ids(pr.candidate)})
	}
	return out
}

func same2(n int, a, b string) [][2][]exchange.ID {
	var out [][2][]exchange.ID
	for i := range n {
		out = append(out, [2][]exchange.ID{{id(a, i)}, {id(b, i)}})
	}
	return out
}

func TestPairing(t *testing.T) {
	chain := func() (*Side, *Side) { // c replays b, which replays a; both are compared with each other and with a
		return replayOf(side("b", 3, 100, 50), "a"), replayOf(side("c", 3, 100, 50), "b")
	}
	for _, c := range []struct {
		name string
		make func() (*Side, *Side)
		by   string
		want [][2][]exchange.ID
	}{
		{"a recording and its replay", func() (*Side, *Side) { return side("a", 3, 100, 50), replayOf(side("b", 3, 100, 50), "a") }, ByOrigin, same2(3, "a", "b")},
		{"the replay first", func() (*Side, *Side) { return replayOf(side("b", 3, 100, 50), "a"), side("a", 3, 100, 50) }, ByOrigin, same2(3, "b", "a")},
		{"two replays of one recording", func() (*Side, *Side) {
			return replayOf(side("b", 3, 100, 50), "a"), replayOf(side("c", 3, 100, 50), "a")
		}, ByOrigin, same2(3, "b", "c")},
		{"a replay and a replay of it", chain, ByOrigin, same2(3, "b", "c")},
		{"equal requests", func() (*Side, *Side) { return side("a", 3, 100, 50), side("b", 3, 100, 50) }, ByKey, same2(3, "a", "b")},
		{"the same request several times", func() (*Side, *Side) {
			a, b := side("a", 3, 100, 50), side("b", 3, 100, 50)
			for i := range 3 {
				a.Entries[i].Row.Key, b.Entries[i].Row.Key = "k", "k"
			}
			return a, b
		}, ByKey, same2(3, "a", "b")},
		{"a run with itself", func() (*Side, *Side) { return side("a", 2, 100, 50), side("a", 2, 100, 50) }, ByKey, same2(2, "a", "a")},
		{"nothing in common", func() (*Side, *Side) { return side("a", 3, 100, 50), replayOf(side("b", 3, 100, 50), "z") }, ByOrigin, nil},
		{"items of one workload from a file", func() (*Side, *Side) {
			a, b := side("a", 2, 100, 50), side("b", 2, 100, 50)
			for _, s := range []*Side{a, b} {
				s.Run.Replay = &exchange.Replay{Workload: "w"}
				for i := range s.Entries {
					s.Entries[i].Row.Item = &exchange.PlanItem{Item: string(id("i", i%2)), Turns: 1}
					s.Entries[i].Row.Key = "other " + string(s.Run.ID)
				}
			}
			return a, b
		}, ByOrigin, same2(2, "a", "b")},
	} {
		p := match(c.make())
		if diff := cmp.Diff(c.want, matched(p)); diff != "" || p.by != c.by {
			t.Errorf("%s: by %s\n%s", c.name, p.by, diff)
		}
	}
}

func TestItemsOfOtherWorkloadsAreNotTheSame(t *testing.T) {
	a, b := side("a", 1, 100, 50), side("b", 1, 100, 50)
	for i, s := range []*Side{a, b} {
		s.Run.Replay = &exchange.Replay{Workload: string(rune('v' + i))}
		s.Entries[0].Row.Item = &exchange.PlanItem{Item: "1", Turns: 1}
	}
	r := mustCompare(t, a, b, Options{})
	if r.Pairing.Pairs != 0 || r.Pairing.Unpaired != [2]int{1, 1} || of(t, r, measure.TTFTMS).Reasons[0] != ReasonNoPairs {
		t.Errorf("%+v", r.Pairing)
	}
}

func TestRepeatsAreTakesOfOnePair(t *testing.T) {
	a, b := side("a", 1, 100, 50), replayOf(side("b", 1, 120, 50), "a")
	for i := range 5 {
		again := b.Entries[0]
		again.Row.ID, again.sent, again.end = id("b", 10+i), again.sent+10*float64(i+1), again.end+10*float64(i+1)
		b.Entries = append(b.Entries, again)
		ref := a.Entries[0] // a warm-up is none
		ref.Row.ID, ref.Row.Item = id("a", 10+i), &exchange.PlanItem{Warmup: true}
		a.Entries = append(a.Entries, ref)
	}
	m := of(t, mustCompare(t, a, b, Options{}), measure.TTFTMS)
	if m.N != 1 || m.Takes != [2]int{1, 6} || m.Reasons[0] != ReasonTooFew {
		t.Errorf("%+v", m)
	}
}

func TestALaterAttemptReplacesAnEarlierOne(t *testing.T) {
	a, b := side("a", 6, 100, 50), replayOf(side("b", 6, 100, 50), "a")
	for i := range b.Entries {
		b.Entries[i].Row.Item = &exchange.PlanItem{Item: string(id("i", i)), Turns: 1, Attempt: 1}
	}
	busy := b.Entries[2]
	busy.Row.ID, busy.Row.Outcome, busy.Row.Status = "b9", exchange.OutcomeUpstreamError, 503
	busy.Row.Item = &exchange.PlanItem{Item: "i2", Turns: 1}
	b.Entries = append([]Entry{busy}, b.Entries...)
	r := mustCompare(t, a, b, Options{})
	if r.Candidate.Retries != 1 || r.Candidate.Failed != 0 || of(t, r, measure.TTFTMS).N != 6 {
		t.Errorf("%+v: %+v", r.Candidate, of(t, r, measure.TTFTMS))
	}
}

// A conversation that stopped early gives no ratio, with none of its turns; the missing turn is told.
func TestTurnCountsAreCompared(t *testing.T) {
	a, b := side("a", 9, 100, 50), replayOf(side("b", 9, 100, 50), "a")
	for i := range b.Entries {
		talk := string(id("talk", i/3))
		b.Entries[i].Row.Item = &exchange.PlanItem{Item: talk, Conversation: talk, Turn: i % 3, Turns: 3}
	}
	b.Entries[1].Row.Outcome = exchange.OutcomeUpstreamError // turn 2 of 3 fails, turn 3 is never sent
	b.Entries = append(b.Entries[:2], b.Entries[3:]...)
	r := mustCompare(t, a, b, Options{})
	want := []Partial{{Side: "candidate", Conversation: "talk0", Turns: 1, Planned: 3}}
	if diff := cmp.Diff(want, r.Partials); diff != "" {
		t.Error(diff)
	}
	m := of(t, r, measure.TTFTMS)
	if m.N != 6 || m.Excluded[ReasonPartial] != 1 || m.Excluded[ReasonFailed] != 1 || r.Pairing.Unpaired != [2]int{1, 0} {
		t.Errorf("%+v, unpaired %v", m, r.Pairing.Unpaired)
	}
	if k := checkNamed(t, r, "same turns"); k.Answer != Differs || k.Forbids != ReasonPartial {
		t.Errorf("%+v", k)
	}
	if len(r.Failures) != 1 || r.Failures[0].Item != "talk0" || r.Candidate.Failed != 1 {
		t.Errorf("%+v", r.Failures)
	}
	if m := of(t, mustCompare(t, a, b, Options{Accept: []exchange.Reason{ReasonPartial}}), measure.TTFTMS); m.N != 7 {
		t.Errorf("accepted: %+v", m)
	}
}

func TestWithoutAPlanAMissingTurnForbids(t *testing.T) {
	a, b := side("a", 8, 100, 50), side("b", 7, 100, 50)
	r := mustCompare(t, a, b, Options{})
	if diff := cmp.Diff([]exchange.Reason{ReasonUnpaired}, r.Refused); diff != "" || r.Pairing.IDs[0][0] != "a7" {
		t.Errorf("%s, %v", diff, r.Pairing.IDs)
	}
}
