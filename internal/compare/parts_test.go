package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// suite makes every entry of s a case of a suite, two scenarios in turn, in waves of four requests with these rates.
func suite(s *Side, model string, rates ...float64) *Side {
	s.Run.Replay = &exchange.Replay{Workload: "w1:1"}
	for i := range s.Entries {
		e := &s.Entries[i]
		name := fmt.Sprintf("case-%d", i)
		e.Row.Model, e.Row.Item = model, &exchange.PlanItem{Item: name, Turns: 1}
		scenario := []string{"short", "long"}[i/4%2]
		e.Row.Wave = fmt.Sprintf("w%d", i/4)
		s.Run.Replay.Cases = append(s.Run.Replay.Cases, exchange.PlannedCase{Case: exchange.Case{ID: name, Scenario: scenario}})
	}
	for i, rate := range rates {
		w := exchange.WaveRate{Wave: fmt.Sprintf("w%d", i), Streams: 4, Figures: exchange.Figures{}}
		for _, name := range waveMetrics {
			if w.Figures[name] = exchange.Absent("tok/s", measure.ReasonMemberFailed); rate > 0 {
				w.Figures[name] = exchange.Figure{Value: rate, Unit: "tok/s", Basis: exchange.BasisMeasured}
			}
		}
		s.Run.Replay.Waves = append(s.Run.Replay.Waves, w)
	}
	return s
}

// TestPartsAreComparedAlone holds that each scenario has ratios of its own, and that a loss in one is not hidden by a gain in
// the other.
func TestPartsAreComparedAlone(t *testing.T) {
	reference, candidate := suite(side("a", 32, 100, 50), "m"), suite(side("b", 32, 100, 50), "m.gguf")
	for i := range candidate.Entries {
		e, v := &candidate.Entries[i], 100.0
		if i/4%2 == 1 {
			v = 25
		}
		e.figure(measure.DecodeTPS, v)
	}
	r := mustCompare(t, reference, candidate, Options{Margin: DefaultMargin})
	if len(r.Parts) != 2 {
		t.Fatalf("%d parts", len(r.Parts))
	}
	for i, want := range []struct {
		scenario string
		ratio    float64
		verdict  Verdict
	}{{"short", 2, Better}, {"long", 0.5, Worse}} {
		p := &r.Parts[i]
		m := (&Report{Metrics: p.Metrics}).mustMetric(t, measure.DecodeTPS)
		if p.Scenario != want.scenario || p.Model != "m" || p.Pairs != 16 || m.N != 16 || math.Abs(*m.Ratio-want.ratio) > 0.05 || m.Verdict != want.verdict || len(m.Exchanges) != 2*behind {
			t.Errorf("part %d: %s of %s, %d pairs: %+v", i, p.Scenario, p.Model, p.Pairs, m)
		}
	}
	if alone := mustCompare(t, side("a", 12, 100, 50), side("b", 12, 100, 50), Options{}); alone.Parts != nil || alone.Waves != nil {
		t.Errorf("one kind of request: %+v", alone.Parts)
	}
}

func (r *Report) mustMetric(t *testing.T, name string) Metric {
	t.Helper()
	return of(t, r, name)
}

// TestWavesAreCompared holds that rates of waves are compared by scenario, without the waves that lost a member, and not at all
// where one side has none.
func TestWavesAreCompared(t *testing.T) {
	reference := suite(side("a", 32, 100, 50), "m", 100, 10, 101, 10.1, 99, 9.9, 100, 0)
	candidate := suite(side("b", 32, 100, 50), "m.gguf", 200, 0, 201, 0, 199, 0, 202, 0)
	r := mustCompare(t, reference, candidate, Options{Margin: DefaultMargin})
	if len(r.Waves) != 2 {
		t.Fatalf("%+v", r.Waves)
	}
	for _, w := range r.Waves {
		for _, m := range w.Metrics {
			switch {
			case w.Model != "m" || w.Streams != 4:
				t.Errorf("%+v", w.kind)
			case w.Scenario == "short" && (m.Verdict != Better || math.Abs(*m.Ratio-2) > 0.02 || m.Takes != [2]int{4, 4} || len(m.Exchanges) != 2*behind):
				t.Errorf("%s: %+v", w.Scenario, m)
			case w.Scenario == "long" && (m.Verdict != Incomparable || m.Ratio != nil || m.Reasons[0] != measure.ReasonMemberFailed || m.Exchanges != nil):
				t.Errorf("%s: %+v", w.Scenario, m)
			}
		}
	}
	candidate.Run.State = exchange.RunOpen
	for _, w := range mustCompare(t, reference, candidate, Options{}).Waves {
		for _, m := range w.Metrics {
			if m.Ratio != nil || m.Reasons[0] != ReasonIncomplete {
				t.Errorf("of a refused comparison: %+v", m)
			}
		}
	}
}

// TestReportIsReadBack holds that the JSON of a report reads back as what was written.
func TestReportIsReadBack(t *testing.T) {
	r := mustCompare(t, suite(side("a", 32, 100, 50), "m", 100, 99), suite(side("b", 32, 90, 60), "m", 110, 111), Options{Margin: DefaultMargin})
	first, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Read(first)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := json.Marshal(again); string(second) != string(first) {
		t.Errorf("%s\n%s", first, second)
	}
	for name, text := range map[string]string{"nothing": "", "no report": "{}", "a list": "[]", "newer": `{"schema":99,"metrics":[]}`, "a report of benchproxy report": `{"schema":1,"title":"x","sections":[]}`} {
		if _, err := Read([]byte(text)); err == nil {
			t.Errorf("%s is read", name)
		}
	}
}
