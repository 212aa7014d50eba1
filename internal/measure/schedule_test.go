package measure

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// planned adds an answer of 75 ms that was planned at ms and sent late by lag.
func planned(s *Schedule, ms, lag float64) {
	x := newScript().texts(20, 5, 12)
	x.x.Timeline.Wall = beganAt.Add(time.Duration((ms + lag) * 1e6))
	x.x.Timeline.Intended = exchange.MarkAt(t0NS - int64(lag*1e6))
	s.Add(x.x, x.derive())
}

func TestScheduleThatWasKept(t *testing.T) {
	var s Schedule
	for i := range 100 {
		planned(&s, float64(i)*20, 1)
	}
	got, invalid := s.Result(0, DefaultMaxLagMS)
	if invalid != "" {
		t.Errorf("invalid: %s", invalid)
	}
	if got.Planned != 100 || got.Sent != 100 || *got.PlannedRate != 50 || math.Abs(*got.AchievedRate-50) > 1e-9 {
		t.Errorf("planned %d sent %d at %g of %g", got.Planned, got.Sent, *got.AchievedRate, *got.PlannedRate)
	}
	if math.Abs(*got.LagMS.P50-1) > 1e-9 || math.Abs(*got.LagMS.Max-1) > 1e-9 {
		t.Errorf("lag %g to %g ms, want 1", *got.LagMS.P50, *got.LagMS.Max)
	}
	if math.Abs(*got.SentMS.P99-75) > 1e-9 || math.Abs(*got.IntendedMS.P99-76) > 1e-9 || math.Abs(*got.IntendedTTFT.P50-21) > 1e-9 {
		t.Errorf("sent %g intended %g first token %g", *got.SentMS.P99, *got.IntendedMS.P99, *got.IntendedTTFT.P50)
	}
}

// A client that may have four requests running offers 50 a second and gets 23: the latency from the send stays, the one
// from the plan grows without bound.
func TestScheduleThatWasMissed(t *testing.T) {
	var s Schedule
	for i := range 1000 {
		at := float64(i) * 20
		planned(&s, at, float64(i/4)*175-at+0.001*float64(i%4))
	}
	got, invalid := s.Result(0, DefaultMaxLagMS)
	if !strings.HasPrefix(invalid, "schedule_not_met") {
		t.Errorf("invalid = %q", invalid)
	}
	if math.Abs(*got.AchievedRate-22.9) > 0.2 || *got.SentMS.P99 > 80 || *got.IntendedMS.P99 < 10_000 {
		t.Errorf("rate %g, from sent %g, from planned %g", *got.AchievedRate, *got.SentMS.P99, *got.IntendedMS.P99)
	}
}

func TestScheduleBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		lag    func(i int) float64
		missed int
		want   string
	}{
		"late but within the bound":  {func(int) float64 { return 49 }, 0, ""},
		"late":                       {func(int) float64 { return 51 }, 0, "lag p99 51.0 ms"},
		"never tried":                {func(int) float64 { return 0 }, 3, "3 planned requests were not sent"},
		"slower, but never that far": {func(i int) float64 { return float64(i) * 1.2 }, 0, "of 50.00 requests a second"},
	} {
		var s Schedule
		for i := range 100 {
			planned(&s, float64(i)*20, tc.lag(i))
		}
		bound := float64(DefaultMaxLagMS)
		if strings.HasPrefix(name, "slower") {
			bound = 1000
		}
		_, invalid := s.Result(tc.missed, bound)
		if tc.want == "" != (invalid == "") || !strings.Contains(invalid, tc.want) {
			t.Errorf("%s: invalid = %q, want %q in it", name, invalid, tc.want)
		}
	}
}

func TestScheduleOfNothing(t *testing.T) {
	var s Schedule
	x := newScript().texts(20, 5, 3)
	s.Add(x.x, x.derive()) // without a plan
	x.x.Timeline.Intended, x.x.Timeline.SendStart = exchange.MarkAt(0), exchange.Mark{}
	s.Add(x.x, x.derive()) // never sent
	got, invalid := s.Result(0, DefaultMaxLagMS)
	if got.Planned != 1 || got.Sent != 0 || got.PlannedRate != nil || got.LagMS.P99 != nil || got.SentMS.N != 0 || invalid != "" {
		t.Errorf("%+v, %q", got, invalid)
	}
}

func TestTotalsLeaveWarmupsOut(t *testing.T) {
	row := func(warm bool) exchange.Summary {
		s := decoding(100, 10, 50)
		s.x.Item = &exchange.PlanItem{Item: "a", Warmup: warm}
		return Summarize(s.x, s.derive())
	}
	sum := RunSummary([]exchange.Summary{row(true), row(false), row(true)})
	if sum.Exchanges != 1 || sum.Warmups != 2 || sum.Metric(DecodeTPS).Summary.N != 1 {
		t.Errorf("%d exchanges, %d warm-ups, %d samples", sum.Exchanges, sum.Warmups, sum.Metric(DecodeTPS).Summary.N)
	}
}
