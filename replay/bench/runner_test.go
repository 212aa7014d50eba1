package bench

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

var quick = sim.Options{TTFT: 100 * time.Millisecond, DecodeTPS: 100, Answer: 64, Timings: true, Usage: sim.UsageAlways}

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > want*0.02 {
		t.Errorf("%s = %v, want about %v", what, got, want)
	}
}

func TestCellsGetTheirRecords(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick, "b": quick}}
	p.play(t, planOf([]string{"a", "b"}, []string{"text_short", "multi_turn"}, 3, 1, 4), nil, func(t *testing.T, out *played) {
		if out.err != nil || len(out.records) != 8 || out.sum != (Summary{OK: 8, Planned: 8}) {
			t.Fatalf("err %v, %d records, %+v", out.err, len(out.records), out.sum)
		}
		r := out.records["a__cpu__m__text_short"]
		near(t, "decode_tps", r.DecodeTPS, 100)
		near(t, "ttft_ms", r.TTFTms, 100)
		near(t, "aggregate_decode_tps", r.AggregateDecodeTPS, 100)
		if r.Status != matrix.StatusOK || r.DecodeSource != measure.SourceStreamWindow || r.UsageBasis != exchange.BasisReported || r.Repeats != 3 ||
			len(r.Exchanges) != 3 || len(r.Warmups) != 1 || r.Run != "run-a__cpu__m" || r.OutputText == "" || r.Spreads["decode_tps"].N != 3 || r.EngineDecodeTPS == nil {
			t.Errorf("record %+v", r)
		}
		four := out.records["b__cpu__m__text_short__c4"]
		near(t, "aggregate of four", four.AggregateDecodeTPS, 400)
		near(t, "steady of four", four.SteadyTPS, 400)
		if four.RequestsOK != 4 || len(four.Exchanges) != 12 || len(four.Warmups) != 0 || four.Detail != "4/4 parallel requests ok" {
			t.Errorf("record of four %+v", four)
		}
	})
}

func TestARunHoldsAllCells(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick}}
	p.play(t, planOf([]string{"a"}, []string{"text_short", "multi_turn"}, 3, 1, 4), nil, func(t *testing.T, out *played) {
		talk := out.records["a__cpu__m__multi_turn"]
		if talk.Turns != 1 || talk.TurnsExpected != 1 || talk.ToolCallOK != nil {
			t.Errorf("%d/%d turns, tools %v", talk.Turns, talk.TurnsExpected, talk.ToolCallOK)
		}
		run := out.place.runs["a__cpu__m"]
		if run.Items.Complete != 30 || run.Items.Warmups != 1 || run.Incomplete != "" || len(run.Cases) != 30 {
			t.Errorf("run of a: %+v, %d cases, %q", run.Items, len(run.Cases), run.Incomplete)
		}
		ids := map[string]bool{}
		for _, c := range run.Cases {
			ids[c.ID] = true
		}
		if len(ids) != len(run.Cases) {
			t.Errorf("%d ids of %d cases", len(ids), len(run.Cases))
		}
	})
}

// TestAConversationThatStops holds that it is ok as far as it came, and says where it stopped and that its calls are not.
func TestAConversationThatStops(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick}}
	p.play(t, planOf([]string{"a"}, []string{"agentic"}, 1, 1, 2), nil, func(t *testing.T, out *played) {
		for _, r := range out.records {
			if r.Status != matrix.StatusOK || r.Turns >= r.TurnsExpected || !strings.Contains(r.Detail, "conversation stopped after turn 2/3: the answer makes no structured call") || r.ToolCallOK == nil || *r.ToolCallOK {
				t.Errorf("%s %q, turns %d/%d, tools %v", r.Status, r.Detail, r.Turns, r.TurnsExpected, r.ToolCallOK)
			}
		}
		if out.sum.OK != 2 {
			t.Errorf("%+v", out.sum)
		}
	})
}

// TestExchangesNameTheirCell holds that a record's exchanges can be found by the cell, and that no request is sent twice.
func TestExchangesNameTheirCell(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick}}
	p.play(t, planOf([]string{"a"}, []string{"text_short", "json_mode"}, 2, 2), nil, func(t *testing.T, out *played) {
		bodies := map[string]bool{}
		for _, x := range out.place.seen {
			rec, ok := out.records[x.Cell]
			if !ok || !slices.Contains(slices.Concat(rec.Exchanges, rec.Warmups), x.ID) {
				t.Errorf("exchange %s of cell %q is in no record", x.ID, x.Cell)
			}
			bodies[string(x.Request.Body.Bytes())] = true
		}
		if len(bodies) != len(out.place.seen) || len(bodies) != 9 {
			t.Errorf("%d different requests of %d", len(bodies), len(out.place.seen))
		}
	})
}

func TestAServerThatCannotBeHad(t *testing.T) {
	p := &place{options: map[string]sim.Options{"c": quick}, refuse: map[string]error{
		"a__cpu__m": errors.New("llama-server was not ready in 600 s"),
		"b__cpu__m": &NotHere{matrix.Unreachable("http://127.0.0.1:1", errors.New("connection refused"))},
	}}
	p.play(t, planOf([]string{"a", "b", "c"}, []string{"text_short"}, 1, 1, 2), nil, func(t *testing.T, out *played) {
		if out.err != nil || out.sum != (Summary{OK: 2, Failed: 2, Skipped: 2, Planned: 6}) {
			t.Fatalf("err %v, %+v", out.err, out.sum)
		}
		a, b := out.records["a__cpu__m__text_short"], out.records["b__cpu__m__text_short__c2"]
		if a.Status != matrix.StatusFail || a.Detail != "llama-server was not ready in 600 s" {
			t.Errorf("a: %s %q", a.Status, a.Detail)
		}
		if b.Status != matrix.StatusSkipped || b.SkipKind != string(matrix.SkipUnreachable) || !strings.Contains(b.Detail, "connection refused") {
			t.Errorf("b: %s %q %q", b.Status, b.SkipKind, b.Detail)
		}
		if diff := cmp.Diff([]string{"c__cpu__m"}, out.place.closed); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAServerThatDies holds that its other cells fail with the reason, that nothing more is sent to it, and that the next
// engine is measured.
func TestAServerThatDies(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick, "b": quick}, dies: map[string]int{"a": 3}}
	p.play(t, planOf([]string{"a", "b"}, []string{"text_short", "json_mode", "multi_turn"}, 1, 1), nil, func(t *testing.T, out *played) {
		if out.err != nil || out.sum != (Summary{OK: 4, Failed: 2, Planned: 6}) {
			t.Fatalf("err %v, %+v", out.err, out.sum)
		}
		for _, cell := range []string{"a__cpu__m__json_mode", "a__cpu__m__multi_turn"} {
			if r := out.records[cell]; r.Status != matrix.StatusFail || r.Detail != "the engine ended with code 3" {
				t.Errorf("%s: %s %q", cell, r.Status, r.Detail)
			}
		}
		if r := out.records["a__cpu__m__json_mode"]; len(r.Exchanges) != 1 || r.Started == nil {
			t.Errorf("the cell that was asked when it died names the exchanges %v", r.Exchanges)
		}
		if r := out.records["a__cpu__m__multi_turn"]; len(r.Exchanges) != 0 {
			t.Errorf("the cell that was never asked names the exchanges %v", r.Exchanges)
		}
	})
}

// TestEnded holds that cells which were measured keep their records, that the one that was cut has none, and that the run
// says so.
func TestEnded(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick, "b": quick}}
	end := func(e Event) bool { return e.Kind == EventTurn && e.Cell.Scenario == "json_mode" }
	p.play(t, planOf([]string{"a", "b"}, []string{"text_short", "json_mode"}, 1, 1), end, func(t *testing.T, out *played) {
		if out.err == nil || out.err.Error() != "ended by signal: interrupt" || len(out.records) != 1 || len(out.place.opened) != 1 || len(out.place.closed) != 1 {
			t.Fatalf("err %v, records %v, opened %v, closed %v", out.err, len(out.records), out.place.opened, out.place.closed)
		}
		if run := out.place.runs["a__cpu__m"]; !strings.Contains(run.Incomplete, "ended by signal") {
			t.Errorf("run: %q", run.Incomplete)
		}
	})
}

// TestTurnsOfSeveralServers holds that repeats that are spread over launches come to one record.
func TestTurnsOfSeveralServers(t *testing.T) {
	plan := planOf([]string{"a", "b"}, []string{"text_short"}, 2, 1)
	plan.Steps = nil
	for r := range 2 {
		for g := range 2 {
			plan.Steps = append(plan.Steps, matrix.Step{Groups: []int{g}, Turns: []matrix.Turn{{Group: g, Repeat: r}}})
		}
	}
	p := &place{options: map[string]sim.Options{"a": quick, "b": quick}}
	p.play(t, plan, nil, func(t *testing.T, out *played) {
		if diff := cmp.Diff([]string{"a__cpu__m", "b__cpu__m", "a__cpu__m", "b__cpu__m"}, out.place.opened); diff != "" {
			t.Error(diff)
		}
		r := out.records["a__cpu__m__text_short"]
		if out.sum.OK != 2 || r.Repeats != 2 || len(r.Exchanges) != 2 || len(r.Warmups) != 2 {
			t.Errorf("%+v, repeats %d, %d exchanges, %d warm-ups", out.sum, r.Repeats, len(r.Exchanges), len(r.Warmups))
		}
	})
}

// TestWhatIsOddOfAServer holds that a record says when something else used the machine, and when the server lists other
// models.
func TestWhatIsOddOfAServer(t *testing.T) {
	for _, odd := range []bool{false, true} {
		var r matrix.Record
		if about(&r, &Facts{Busy: odd, Unlisted: odd}); slices.Contains(r.Flags, FlagBusyMachine) != odd || slices.Contains(r.Flags, FlagUnlisted) != odd {
			t.Errorf("odd %t: %v", odd, r.Flags)
		}
	}
}

func TestWavesAcrossTooFewSlots(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick}, slots: map[string]int{"a": 2}}
	p.play(t, planOf([]string{"a"}, []string{"text_short"}, 1, 2, 4), nil, func(t *testing.T, out *played) {
		two, four := out.records["a__cpu__m__text_short__c2"], out.records["a__cpu__m__text_short__c4"]
		if slices.Contains(two.Flags, FlagQueued) || two.SteadyTPS == nil {
			t.Errorf("two on two slots: %v %v", two.Flags, two.SteadyTPS)
		}
		if !slices.Contains(four.Flags, FlagQueued) || four.SteadyTPS != nil || four.Absent["steady_tps"] != FlagQueued || four.AggregateDecodeTPS == nil {
			t.Errorf("four on two slots: %v %v %v", four.Flags, four.SteadyTPS, four.Absent)
		}
	})
}

// TestHalfOfTheBudget holds that an answer of less is asked for once more under another nonce, and that a second one of
// less leaves the cell without a rate.
func TestHalfOfTheBudget(t *testing.T) {
	short := quick
	short.Answer = 20
	plan := planOf([]string{"a"}, []string{"loom_decode"}, 1, 1)
	plan.Groups[0].Cells[0].MaxTokens = 300
	p := &place{options: map[string]sim.Options{"a": short}}
	p.play(t, plan, nil, func(t *testing.T, out *played) {
		for _, r := range out.records {
			if r.Status != matrix.StatusOK || r.DecodeTPS != nil || r.Absent["decode_tps"] != measure.FlagShortAnswer || r.DecodeSource != "" || len(r.Exchanges) != 2 {
				t.Errorf("%s %q decode %v (%v), %d exchanges, flags %v", r.Status, r.Detail, r.DecodeTPS, r.Absent, len(r.Exchanges), r.Flags)
			}
		}
	})
}

func TestDraftsThatDoNotHappen(t *testing.T) {
	plan := planOf([]string{"a"}, []string{"text_short"}, 1, 1)
	plan.Groups[0].Cells[0].MTP = true
	p := &place{options: map[string]sim.Options{"a": quick}}
	p.play(t, plan, nil, func(t *testing.T, out *played) {
		for _, r := range out.records {
			if r.Acceptance != nil || !slices.Contains(r.Flags, FlagDraftsUnknown) && !slices.Contains(r.Flags, FlagNotSpeculating) {
				t.Errorf("flags %v, acceptance %v", r.Flags, r.Acceptance)
			}
		}
	})
}

func TestSkippedCellsHaveRecords(t *testing.T) {
	plan := planOf([]string{"a"}, []string{"text_short", "image"}, 1, 1)
	c := &plan.Groups[0].Cells[1]
	c.Do, c.Skip = matrix.DoSkip, &matrix.Skip{Kind: matrix.SkipModality, Reason: "model m takes no images"}
	plan.Steps[0].Turns = plan.Steps[0].Turns[:1]
	p := &place{options: map[string]sim.Options{"a": quick}}
	p.play(t, plan, nil, func(t *testing.T, out *played) {
		r := out.records["a__cpu__m__image"]
		if r.Status != matrix.StatusSkipped || r.Detail != "model m takes no images" || out.sum != (Summary{OK: 1, Skipped: 1, Planned: 2}) {
			t.Errorf("%s %q, %+v", r.Status, r.Detail, out.sum)
		}
		if _, err := os.Stat(filepath.Join(out.dir, filepath.FromSlash(PlanFile))); err != nil {
			t.Error(err)
		}
	})
}

func TestResultsAreOfOneSitting(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	first, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(dir); !errors.Is(err, exchange.ErrLocked) {
		t.Errorf("a second claim: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestRefusedAtFirst holds that a request which had to come again did not run with the others.
func TestRefusedAtFirst(t *testing.T) {
	p := &place{options: map[string]sim.Options{"a": quick}}
	p.play(t, planOf([]string{"a"}, []string{"text_short"}, 1, 2), nil, func(t *testing.T, out *played) {
		w := &replay.SuiteWave{Name: "w"}
		for _, x := range out.place.seen[1:] { // behind the warm-up
			c := &replay.SuiteCase{Member: scenario.Member{Scenario: scenario.Scenario{Turns: 1}}}
			c.Exchanges = []*exchange.Exchange{x}
			w.Cases = append(w.Cases, c)
		}
		if s := sampleOf(w, true); s.ok != 2 || slices.Contains(s.flags, FlagRetried) || !s.wave.Figures[measure.AggregateDecodeTPS].Present() {
			t.Errorf("together: ok %d, flags %v, wave %+v", s.ok, s.flags, s.wave)
		}
		w.Cases[1].Exchanges[0].Item.Attempt = 1
		if s := sampleOf(w, true); s.ok != 2 || !slices.Contains(s.flags, FlagRetried) || s.wave.Failed != 1 || s.wave.Figures[measure.AggregateDecodeTPS].Present() {
			t.Errorf("one came again: ok %d, flags %v, wave %+v", s.ok, s.flags, s.wave)
		}
	})
}

func TestResultsThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &place{}
	err := New(Options{Plan: planOf([]string{"a"}, []string{"text_short"}, 1, 1), Results: file, Place: p}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "directory of results") || len(p.opened) > 0 {
		t.Errorf("err %v, opened %v", err, p.opened)
	}
}
