package build

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
)

// suiteRig is a run of a suite of two scenarios, the second of which decodes at another pace, in waves of four.
func suiteRig(t testing.TB, name, label string, short, long float64) *rig {
	t.Helper()
	run := exchange.Run{ID: idOf(name, 0), Name: label, Mode: "bench", State: exchange.RunComplete, Started: origin, Harness: "test", Replay: &exchange.Replay{Workload: "w1:1", Driver: "waves"}}
	var answers []answer
	for i := range 32 {
		pace, scenario := short, "short"
		if i/4%2 == 1 {
			pace, scenario = long, "long"
		}
		item := &exchange.PlanItem{Item: fmt.Sprintf("case-%d", i), Turns: 1}
		run.Replay.Cases = append(run.Replay.Cases, exchange.PlannedCase{Case: exchange.Case{ID: item.Item, Scenario: scenario}})
		answers = append(answers, answer{seq: i + 1, model: "m", prompt: 100, tokens: 20, ttft: 50 + float64(i%3), gap: 10*pace + float64(i%5)/50, limit: 20, item: item, wave: fmt.Sprintf("w%d", i/4)})
		if i%4 == 0 {
			rate := exchange.Figure{Value: 400/pace + float64(i%5), Unit: "tok/s", Basis: exchange.BasisMeasured}
			run.Replay.Waves = append(run.Replay.Waves, exchange.WaveRate{Wave: fmt.Sprintf("w%d", i/4), Streams: 4, PeakLive: 4,
				Figures: exchange.Figures{measure.AggregateDecodeTPS: rate, measure.BatchTPS: rate, measure.SteadyTPS: exchange.Absent("tok/s", measure.ReasonMemberFailed)}})
		}
	}
	return rigOf(t, run, nil, name, answers)
}

// TestScenariosOfRunsAreCompared holds that each scenario of two runs has its own ratios, waves too, that means are over the
// scenarios, and that a loss in one scenario stands among the losses.
func TestScenariosOfRunsAreCompared(t *testing.T) {
	before, after := suiteRig(t, "AAAA", "before", 1, 1), suiteRig(t, "BBBB", "after", 0.5, 2)
	e := &Evidence{Runs: []*Run{before.run, after.run}, Comparisons: []Compared{after.against(t, before)}}
	c := &e.Comparisons[0]
	kinds := c.kindsPart()
	if len(kinds.Table.Rows) != 9 { // two scenarios and their mean, three metrics
		t.Fatalf("%d rows", len(kinds.Table.Rows))
	}
	for _, row := range kinds.Table.Rows {
		scenario, _ := row[1].Words()
		metric, _ := row[2].Words()
		ratio := row[6].Show(report.Column{Digits: 1})
		want := map[string]string{"short": "2.0", "long": "0.5", "all, geometric mean": "1.0"}[scenario]
		if metric == measure.DecodeTPS && ratio != want {
			t.Errorf("%s: %s, want %s", scenario, ratio, want)
		}
		if scenario == "all, geometric mean" && row[7].Show(report.Column{}) != "— (fewer than 11 scenarios)" {
			t.Errorf("the interval of a mean: %s", row[7].Show(report.Column{}))
		}
	}
	waves := c.wavesPart()
	if len(waves.Table.Rows) != 6 {
		t.Fatalf("%d rows of waves", len(waves.Table.Rows))
	}
	for _, row := range waves.Table.Rows {
		scenario, _ := row[1].Words()
		metric, _ := row[3].Words()
		want := map[string]string{"short": "2.0", "long": "0.5"}[scenario]
		if metric == measure.SteadyTPS {
			want = "—"
		}
		if got := row[7].Show(report.Column{Digits: 1}); got != want || metric != measure.SteadyTPS && row[9].Show(report.Column{}) != "4" {
			t.Errorf("%s of %s: %s, n %s", metric, scenario, got, row[9].Show(report.Column{}))
		}
	}
	_, slower, _ := e.standings(nil)
	found := map[string]bool{}
	for _, s := range slower {
		found[s.what+" "+s.where] = true
	}
	for _, want := range []string{"decode_tps after / before, m, long", "batch_tps after / before, m, long, 4 at a time"} {
		if !found[want] {
			t.Errorf("%q is not among the losses: %v", want, found)
		}
	}
	s, _ := e.wavesSection()
	if len(s.Table.Rows) != 4 {
		t.Errorf("waves of two scenarios and runs: %d rows", len(s.Table.Rows))
	}
	for _, part := range []report.Section{kinds, waves} {
		if !strings.HasSuffix(part.Title, c.name()) {
			t.Errorf("%q does not name the runs", part.Title)
		}
	}
}

// TestComparisonOfAFile holds that a saved comparison is a report of its own, with the runs behind it and the bounds it was held
// to, and that one of the same runs stands beside it.
func TestComparisonOfAFile(t *testing.T) {
	before, after := suiteRig(t, "AAAA", "before", 1, 1), suiteRig(t, "BBBB", "after", 0.5, 2)
	made := after.against(t, before)
	saved := made
	copied := *made.Report
	saved.Report, saved.File = &copied, "old.json"
	value := 0.5
	saved.Report.Bounds = []compare.BoundResult{{Bound: "decode_tps<0.9", Violated: true, Value: &value}, {Bound: "ttft_ms>2", Value: &value}, {Bound: "identical<1", Reasons: []exchange.Reason{compare.ReasonNoPairs}}}
	for name, e := range map[string]*Evidence{"alone": {Comparisons: []Compared{saved}}, "beside": {Runs: []*Run{before.run, after.run}, Comparisons: []Compared{made, saved}}} {
		e.Title = "t"
		var md bytes.Buffer
		if err := Document(e).Markdown(&md); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"- comparison: after / before \\[old.json\\]", "#### The runs behind after / before \\[old.json\\]", "Bound decode\\_tps&lt;0.9: holds at 0.5: a regression", "Bound ttft\\_ms&gt;2: does not hold", "no number, no pairs", "after / before \\[old.json\\], m, long"} {
			if !strings.Contains(md.String(), want) {
				t.Errorf("%s: there is no %q", name, want)
			}
		}
	}
}
