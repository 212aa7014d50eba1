package compare

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

func TestParseObjectives(t *testing.T) {
	got, err := ParseObjectives("ttft=200ms, tpot=20ms,e2e=1.5s,decode_tps=30")
	want := []Objective{{measure.TTFTMS, 200}, {measure.TPOTMS, 20}, {measure.TotalWallMS, 1500}, {measure.DecodeTPS, 30}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, bad := range []string{"", "ttft", "ttft=", "ttft=200", "ttft=-1ms", "ttft=0s", "speed=3", "decode_tps=fast", "decode_tps=NaN", "ttft=200ms,"} {
		if _, err := ParseObjectives(bad); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestGoodput(t *testing.T) {
	s := side("a", 10, 100, 50)
	s.Entries[0].figure(measure.TTFTMS, 300)
	s.Entries[1].figure(measure.DecodeTPS, 10)
	s.Entries[2].Row.Outcome = exchange.OutcomeStreamError // a failure is never good, however fast
	s.Entries[3].absent(measure.DecodeTPS, measure.ReasonTooFewTokens)
	s.Entries[4].absent(measure.DecodeTPS, measure.ReasonBuffered) // nobody knows
	r := mustCompare(t, s, side("b", 10, 100, 50), Options{Objectives: []Objective{{measure.TTFTMS, 200}, {measure.DecodeTPS, 30}}})
	g := r.Reference.Load.Goodput
	if g.Part != 6 || g.Whole != 10 || math.Abs(*g.PerS-6/r.Reference.Load.WholeS) > 1e-9 || r.Candidate.Load.Goodput.Part != 10 {
		t.Errorf("%+v", g)
	}
}

// TestLoadMeterIsTheLoadOfAComparison gathers exchanges as they end, and comes to what a comparison derives of them: the
// last attempt at a request counts, warm-ups and listings do not.
func TestLoadMeterIsTheLoadOfAComparison(t *testing.T) {
	objectives := []Objective{{measure.TTFTMS, 200}}
	m := NewLoadMeter(objectives)
	var takes []*Entry
	add := func(item exchange.PlanItem, dialect string, startS, ttftMS float64, outcome exchange.Outcome, counts bool) {
		x := &exchange.Exchange{Item: &item}
		x.Timeline.Wall = time.Unix(1_800_000_000, 0).Add(time.Duration(startS * float64(time.Second)))
		x.Timeline.SendStart, x.Timeline.BodyEnd = exchange.MarkAt(0), exchange.MarkAt(2_000_000_000)
		row := exchange.Summary{Dialect: dialect, Outcome: outcome, Metrics: exchange.Figures{}}
		for name, v := range map[string]float64{measure.TTFTMS: ttftMS, measure.LastTokenMS: 2000, measure.CompletionTokens: 100} {
			row.Metrics[name] = exchange.Figure{Value: v, Basis: exchange.BasisMeasured}
		}
		m.Add(x, &row)
		if counts {
			takes = append(takes, &Entry{Row: row, instants: instantsOf(&x.Timeline, row.Metrics)})
		}
	}
	add(exchange.PlanItem{Item: "a", Warmup: true}, "chat", -9, 100, exchange.OutcomeComplete, false)
	add(exchange.PlanItem{Item: "a", Attempt: 1}, "chat", 1, 100, exchange.OutcomeComplete, true)
	add(exchange.PlanItem{Item: "a"}, "chat", 0, 100, exchange.OutcomeUpstreamError, false) // derived behind what followed it
	add(exchange.PlanItem{Item: "b"}, "chat", 0, 100, exchange.OutcomeUpstreamError, false)
	add(exchange.PlanItem{Item: "b", Attempt: 1}, "chat", 2, 300, exchange.OutcomeComplete, true) // too late to be good
	add(exchange.PlanItem{Item: "b", Repeat: 1}, "chat", 3, 100, exchange.OutcomeStreamError, true)
	add(exchange.PlanItem{Item: "c"}, "", 99, 100, exchange.OutcomeComplete, false)
	got, want := m.Load(), loadOf(takes, objectives)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-comparison +meter:\n%s", d)
	}
	if got.Requests != 3 || got.Complete != 2 || got.Goodput.Part != 1 || got.WholeS != 4 || got.Drain != 0.5 {
		t.Errorf("%+v", got)
	}
}

func TestLoadOfARun(t *testing.T) {
	s := side("a", 4, 100, 50)
	for i := range s.Entries { // two at a time, 100 tokens in two seconds each
		e := &s.Entries[i]
		e.sent = float64(2 * (i / 2))
		e.first, e.last, e.end = e.sent, e.sent+2, e.sent+2
	}
	var takes []*Entry
	for i := range s.Entries {
		takes = append(takes, &s.Entries[i])
	}
	l := loadOf(takes, nil)
	if l.InFlight != 2 || l.Peak != 2 || l.WholeS != 4 || math.Abs(*l.WholeTPS-100) > 1e-9 || l.Drain != 0.5 || *l.RequestsPS != 1 || l.Goodput != nil {
		t.Errorf("%+v", l)
	}
	if l := loadOf(nil, nil); l.Requests != 0 || l.InFlight != 0 || l.WholeTPS != nil || l.RequestsPS != nil {
		t.Errorf("of nothing: %+v", l)
	}
}
