package measure

import (
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// readings are counters before and after: drafted, accepted, steps and generated, -1 for one that is not counted.
func readings(before, after [4]int64) *exchange.Counters {
	reading := func(v [4]int64) exchange.CounterReading {
		var p [4]*int64
		for i := range v {
			if v[i] >= 0 {
				p[i] = &v[i]
			}
		}
		return exchange.CounterReading{Drafted: p[0], Accepted: p[1], Steps: p[2], Generated: p[3]}
	}
	return &exchange.Counters{Source: "vllm /metrics", Before: reading(before), After: reading(after)}
}

// TestDraftCountersStandBehindTheAnswer holds when counters of the whole engine speak for one request: the answer of 125
// tokens had 120 drafted ones, of which 84 were accepted in 40 steps.
func TestDraftCountersStandBehindTheAnswer(t *testing.T) {
	start := [4]int64{1000, 500, 400, 9000}
	end := [4]int64{1120, 584, 440, 9125}
	own := func(drafted, accepted int64) *wire.Timings {
		return &wire.Timings{DraftN: &drafted, DraftAccepted: &accepted}
	}
	whole := own(120, 84)
	whole.DraftSteps = ref(int64(41))
	for _, tc := range []struct {
		name     string
		own      *wire.Timings
		counters *exchange.Counters
		want     bool
	}{
		{"nothing of its own", nil, readings(start, end), true},
		{"the end mark was counted", nil, readings(start, [4]int64{1120, 584, 440, 9126}), true},
		{"generated tokens are not counted", nil, readings([4]int64{1000, 500, 400, -1}, [4]int64{1120, 584, 440, -1}), true},
		{"not read", nil, nil, false},
		{"another client's tokens moved them too", nil, readings(start, [4]int64{1120, 584, 440, 9300}), false},
		{"the engine was started anew", nil, readings(start, [4]int64{120, 84, 40, 125}), false},
		{"no draft counters", nil, readings([4]int64{-1, -1, -1, 9000}, [4]int64{-1, -1, -1, 9125}), false},
		{"more accepted than drafted", nil, readings(start, [4]int64{1050, 584, 440, 9125}), false},
		{"nothing moved", nil, readings(start, [4]int64{1000, 500, 400, 9125}), false},
		{"steps are missing", own(120, 84), readings(start, end), true},
		{"steps of other drafts", own(60, 30), readings(start, end), false},
		{"all of its own", whole, readings(start, end), false},
	} {
		s := newScript().texts(100, 20, 51).usage(10, 125)
		s.t.Timings = tc.own
		before := s.derive()
		s.x.Counters = tc.counters
		a := s.derive()
		if a.Flagged(FlagDraftCounters) != tc.want {
			t.Errorf("%s: flags %q", tc.name, a.Flags)
		}
		if tc.want {
			wantValue(t, a, TokensPerStep, 3.1, rptd)
			wantValue(t, a, DraftAcceptance, 0.7, rptd)
		} else if a.Figures[TokensPerStep] != before.Figures[TokensPerStep] {
			t.Errorf("%s: tokens per step became %+v", tc.name, a.Figures[TokensPerStep])
		}
	}
	page := newScript().read(5)
	page.t = &wire.Transcript{Framing: wire.FramingJSON}
	page.x.Counters = readings(start, end)
	if page.derive().Flagged(FlagDraftCounters) {
		t.Error("an exchange without a dialect borrows counters")
	}
}
