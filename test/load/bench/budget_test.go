package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/stat"
)

func TestVerdicts(t *testing.T) {
	for value, want := range map[float64]string{0.9: verdictAim, 1: verdictAim, 1.01: verdictMust, 1.3: verdictMust, 1.31: verdictNot} {
		b := budgetRow{Value: &value, Must: 1.3, Aim: 1}
		if got := b.verdict(); got != want {
			t.Errorf("%g: %s, want %s", value, got, want)
		}
	}
	if got := (budgetRow{Must: 1, Aim: 1}).verdict(); got != verdictMissing {
		t.Errorf("nothing was measured: %s", got)
	}
}

// peersRun is a report of the scenarios that ratio budgets rest on: 12 rounds in which direct takes what base says, nginx
// adds 100 us, ReverseProxy 200, and record own times nginx.
func peersRun(base func(round int) float64, own float64) *report {
	cfg := config{rounds: 12, large: 1, targets: targetNames, only: []string{"events", "ttft", "load"}, noise: noisy}
	r := newReport(cfg)
	for round := range cfg.rounds {
		for _, name := range cfg.only {
			played := map[string]batch{}
			for target, added := range map[string]float64{direct: 0, proxied: 90, records: 100 * own, compare: 200, nginx: 100, haproxy: 110} {
				us := base(round) + added
				played[target] = batch{samples: []float64{us}, requests: 1, units: 1, cpu: time.Duration(us * 1000), wall: time.Second}
			}
			r.add(scenario{name: name, per: "event", queue: name == "load"}, played)
		}
	}
	r.finish(cfg)
	return r
}

func (r *report) verdicts() string {
	var out []string
	for _, b := range r.Budgets {
		out = append(out, b.Verdict)
	}
	return strings.Join(out, "; ")
}

func TestJudge(t *testing.T) {
	still := func(int) float64 { return 10 }
	noise := func(round int) float64 { return float64(10 + 10*round) } // quartiles 55 apart around 65
	for name, x := range map[string]struct {
		report *report
		want   string
		code   int
	}{
		"quiet, within budget": {peersRun(still, 0.5), "meets aim; meets aim; meets aim; meets aim; meets aim; meets aim; meets aim", 0},
		"quiet, must only":     {peersRun(still, 1.2), "meets must; meets must; meets must; meets must; not met; meets aim; meets aim", exitNotMet},
		"quiet, over budget":   {peersRun(still, 2), "not met; not met; not met; not met; not met; meets aim; meets aim", exitNotMet},
		"noisy":                {peersRun(noise, 2), strings.Repeat(verdictNoisy+"; ", 5) + "meets aim; meets aim", exitNoJudge},
	} {
		if got := x.report.verdicts(); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
		err := x.report.judge()
		var judged verdictError
		if errors.As(err, &judged); judged.code != x.code || (err == nil) != (x.code == 0) {
			t.Errorf("%s: %v with code %d, want %d", name, err, judged.code, x.code)
		}
	}
}

// TestNoVerdictOnANoisyMachine holds that the table refuses in words, and shows the figures all the same.
func TestNoVerdictOnANoisyMachine(t *testing.T) {
	var table bytes.Buffer
	if err := peersRun(func(round int) float64 { return float64(10 + 10*round) }, 2).print(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.00 [2.00..2.00]", "noisy: not judged", "85 % noisy"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

// TestMissingFigureIsNotJudged holds that a comparison that failed makes no verdict and no success.
func TestMissingFigureIsNotJudged(t *testing.T) {
	cfg := config{rounds: 1, large: 1, targets: targetNames, only: []string{"events"}, noise: noisy}
	r := newReport(cfg)
	played := map[string]batch{}
	for _, name := range targetNames {
		played[name] = batch{samples: []float64{100}, requests: 1, units: 1, wall: time.Second}
	}
	played[nginx] = batch{requests: 8, failed: 8}
	r.add(scenario{name: "events", per: "event"}, played)
	r.finish(cfg)
	if b := r.Budgets[0]; b.Verdict != verdictMissing {
		t.Errorf("%s: %s", b.What, b.Verdict)
	}
	var judged verdictError
	if err := r.judge(); !errors.As(err, &judged) || judged.code != exitNoJudge {
		t.Errorf("judged as %v", err)
	}
	var table bytes.Buffer
	if err := r.print(&table); err != nil || !strings.Contains(table.String(), "8 of 8") {
		t.Errorf("the failures are not in the table: %v\n%s", err, table.String())
	}
}

// TestUnsureVerdict holds that a limit within the interval is said, and that a limit at its upper end is not within.
func TestUnsureVerdict(t *testing.T) {
	value := 1.2
	for _, x := range []struct {
		in   stat.Interval
		want string
	}{
		{stat.Interval{Lo: 1.1, Hi: 1.25}, "meets must"},
		{stat.Interval{Lo: 1.1, Hi: 1.3}, "meets must"},
		{stat.Interval{Lo: 1.1, Hi: 1.4}, "meets must, unsure"},
		{stat.Interval{Lo: 0.9, Hi: 1.25}, "meets must, unsure"},
	} {
		r := &report{Ratios: []ratioRow{{Own: records, Scenario: "events", Figure: "cpu_us", Against: map[string]ratio{nginx: {&value, &x.in}}}}}
		r.Budgets = []budgetRow{r.ofRatio(budgetRow{Must: 1.3, Aim: 1}, "events", "cpu_us", nginx)}
		rows := r.budgetSheet().rows
		if got := rows[0][len(rows[0])-1]; got != x.want {
			t.Errorf("%+v: %s, want %s", x.in, got, x.want)
		}
	}
}

// TestUnsureIsNeitherMetNorNotMet holds that a figure over its limit fails a run only when its interval is over it too.
func TestUnsureIsNeitherMetNorNotMet(t *testing.T) {
	for unsure, want := range map[bool]int{true: exitNoJudge, false: exitNotMet} {
		r := &report{Budgets: []budgetRow{{What: "x", Verdict: verdictNot, Unsure: unsure}, {What: "y", Verdict: verdictMust, Unsure: true}}}
		var judged verdictError
		if err := r.judge(); !errors.As(err, &judged) || judged.code != want || strings.Contains(err.Error(), "y") {
			t.Errorf("unsure %v: %v with code %d, want %d", unsure, err, judged.code, want)
		}
	}
}

func TestFailuresOfBenchproxyAreOverBudget(t *testing.T) {
	r := peersRun(func(int) float64 { return 10 }, 0.5)
	r.Budgets, r.Ratios = nil, nil
	r.Scenarios[0].Targets[records].Failed = 1
	r.Memory = []memoryRow{{Target: records, PerStream: 10 << 10, Failed: 2}}
	r.finish(config{targets: targetNames})
	var judged verdictError
	if err := r.judge(); !errors.As(err, &judged) || judged.code != exitNotMet || !strings.Contains(err.Error(), "cut, record") {
		t.Errorf("judged as %v", err)
	}
	if n := r.failures(records); n != 3 {
		t.Errorf("%d failures, want 3", n)
	}
}
