package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// suiteShelf is the record of a suite at an engine.
func suiteShelf(t *testing.T, r suiteRig, o SuiteOptions) (s *shelf) {
	t.Helper()
	r.play(t, o, func(t *testing.T, h *heard) {
		for _, x := range h.sink.xs { // as a recorder does
			sealDigests(x)
		}
		s = newShelf(h.sink.xs...)
		report := h.suite.Report(h.err)
		// As a store gives it back.
		b, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		s.run.Mode, s.run.Replay = "gate", &exchange.Replay{}
		if err := json.Unmarshal(b, s.run.Replay); err != nil {
			t.Fatal(err)
		}
		s.run.Counts.Stored = int64(len(h.sink.xs))
		if report.Incomplete != "" {
			s.run.State = exchange.RunIncomplete
		}
	})
	return s
}

// wrongAt is an engine that answers a turn of the first case of a scenario wrongly.
func wrongAt(scenario string, turn int, says pupilSays) suiteRig {
	return suiteRig{pupil: pupil{wrong: func(tag string, at int) *pupilSays {
		if tag == scenario+"-c1-r0-i0" && at == turn {
			return &says
		}
		return nil
	}}}
}

func judgedCaseOf(t *testing.T, r *Revalidated, id string) *CaseJudged {
	t.Helper()
	i := slices.IndexFunc(r.Cases, func(c *CaseJudged) bool { return c.Case == id })
	if i < 0 {
		t.Fatalf("no case %s", id)
	}
	return r.Cases[i]
}

// TestRevalidateSuites holds that the record of a suite is judged as its cases were: refusals that are wanted pass, and
// turns are judged together; from a store and from a file alike.
func TestRevalidateSuites(t *testing.T) {
	for suite, cases := range map[string]int{scenario.SuiteValidation: 65, scenario.SuitePolicies: 30} {
		t.Run(suite, func(t *testing.T) {
			s := suiteShelf(t, suiteRig{}, validation(suite))
			r, all := judgedRun(t, s, RevalidateOptions{})
			for _, c := range r.Cases {
				if c.Status != exchange.VerdictOK || c.Original != exchange.VerdictOK {
					t.Errorf("%s: %s, was %s: %s", c.Case, c.Status, c.Original, c.Reason)
				}
			}
			if len(r.Cases) != cases || r.Judged != len(s.rows) || r.ChangesTotal != 0 || r.Verdict() != nil {
				t.Errorf("%d cases of %d exchanges, %d changes: %v", len(r.Cases), r.Judged, r.ChangesTotal, r.Verdict())
			}
			for _, j := range all {
				if j.Status != "" && j.Case == "" || len(j.Evidence) != 1 || j.Evidence[0].ID != string(j.ID) {
					t.Errorf("%s: case %q, evidence %v", j.ID, j.Case, j.Evidence)
				}
			}
			var file bytes.Buffer
			if _, err := Export(context.Background(), s, &s.run, ExportTo{Main: &file}, ExportOptions{Format: FormatJSONL}); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(t.TempDir(), "suite.jsonl")
			if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			again, err := RevalidateFile(context.Background(), OpenFile(name, FileOptions{}), RevalidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r.Cases, again.Cases, cmp.AllowUnexported(CaseJudged{})); diff != "" && again.Verdict() != nil {
				t.Errorf("the file: %v\n%s", again.Verdict(), diff)
			}
		})
	}
}

// TestRevalidateSuiteFailures holds that what failed when it was sent has failed, and that a conversation that stopped has.
func TestRevalidateSuiteFailures(t *testing.T) {
	for name, c := range map[string]struct {
		rig       suiteRig
		suite, at string
		why       string
	}{
		"a wrong answer": {wrongAt("short", 0, pupilSays{content: "43"}), scenario.SuiteValidation, "short", "exact: want"},
		"it stopped":     {wrongAt("multi_turn", 0, pupilSays{content: "No"}), scenario.SuiteValidation, "multi_turn", "behind turn 1/2"},
		"a second turn":  {wrongAt("multi_turn", 1, pupilSays{content: "birch-1"}), scenario.SuiteValidation, "multi_turn", "exact: "},
		"not refused":    {wrongAt("invalid_schema", 0, pupilSays{content: "fine"}), scenario.SuitePolicies, "invalid_schema", "tool_policy: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := suiteShelf(t, c.rig, validation(c.suite, slices.Compact([]string{"short", c.at})...))
			r, _ := judgedRun(t, s, RevalidateOptions{})
			for _, j := range r.Cases {
				want := exchange.VerdictOK
				if j.Case == c.at+"-c1-r0-i0" {
					want = exchange.VerdictFail
				}
				if j.Status != want || want == exchange.VerdictFail && !strings.Contains(j.Reason, c.why) {
					t.Errorf("%s: %s: %s", j.Case, j.Status, j.Reason)
				}
			}
			if !errors.Is(r.Verdict(), exchange.ErrGate) || r.ChangesTotal != 0 || r.Remained != 0 {
				t.Errorf("%v; %d changes, %d remained", r.Verdict(), r.ChangesTotal, r.Remained)
			}
		})
	}
}

// TestRevalidateChangedRule holds a run against a rule that is another one than when it was recorded: what fails now fails,
// what failed then stays failed, both are listed, and no byte of the record is another one.
func TestRevalidateChangedRule(t *testing.T) {
	s := suiteShelf(t, wrongAt("short", 0, pupilSays{content: "43"}), validation(scenario.SuiteValidation, "short", "multi_turn"))
	before := map[exchange.ID]string{}
	for id, x := range s.xs {
		before[id] = x.Request.Body.Sum() + x.Response.Body.Sum()
	}
	for i := range s.run.Replay.Cases {
		c := &s.run.Replay.Cases[i]
		for k := range c.Checks {
			if c.Checks[k].Gate == "exact" && c.Scenario == "short" {
				c.Checks[k].Params = json.RawMessage(`{"text":"43"}`)
			}
		}
	}
	r, _ := judgedRun(t, s, RevalidateOptions{})
	once := judgedCaseOf(t, r, "short-c1-r0-i0")
	if once.Status != exchange.VerdictFail || !strings.HasPrefix(once.Reason, "the original failure remains: ") || r.Remained != 1 {
		t.Errorf("%s: %s; %d remained", once.Status, once.Reason, r.Remained)
	}
	if four := judgedCaseOf(t, r, "short-c4-r0-i2"); four.Status != exchange.VerdictFail || four.Original != exchange.VerdictOK {
		t.Errorf("%s, was %s", four.Status, four.Original)
	}
	var changes []string
	for _, c := range r.Changes {
		changes = append(changes, c.Gate+" "+c.Was+" "+c.Now)
	}
	want := []string{"exact fail ok", "exact ok fail", "exact ok fail", "exact ok fail", "exact ok fail"}
	if diff := cmp.Diff(want, changes); diff != "" || !errors.Is(r.Verdict(), exchange.ErrGate) {
		t.Errorf("%v: %s", r.Verdict(), diff)
	}
	after := map[exchange.ID]string{}
	for id, x := range s.xs {
		after[id] = x.Request.Body.Sum() + x.Response.Body.Sum()
	}
	if !maps.Equal(before, after) {
		t.Error("the record was changed")
	}
}

// TestRevalidateBrokenSuite holds that nothing that is missing of a suite lets a case pass.
func TestRevalidateBrokenSuite(t *testing.T) {
	drop := func(s *shelf, item string) {
		s.rows = slices.DeleteFunc(s.rows, func(r exchange.Summary) bool { return r.Item != nil && r.Item.Item == item })
	}
	each := func(s *shelf, do func(*exchange.PlannedCase)) {
		for i := range s.run.Replay.Cases {
			do(&s.run.Replay.Cases[i])
		}
	}
	for name, c := range map[string]struct {
		harm   func(*shelf)
		status exchange.VerdictStatus
		why    string
		kind   error
	}{
		"a lost last turn":  {func(s *shelf) { drop(s, "multi_turn-c1-r0-i0/2") }, exchange.VerdictNotRun, "turn 2/2 is not on record", exchange.ErrIncomplete},
		"a lost first turn": {func(s *shelf) { drop(s, "multi_turn-c1-r0-i0/1") }, exchange.VerdictNotRun, "turn 1/2 is not on record", exchange.ErrIncomplete},
		"a lost case": {func(s *shelf) {
			drop(s, "multi_turn-c1-r0-i0/1")
			drop(s, "multi_turn-c1-r0-i0/2")
			s.run.Counts.Stored = 0
		},
			exchange.VerdictNotRun, "no exchange", exchange.ErrIncomplete},
		"a truncated record": {func(s *shelf) {
			for _, x := range s.xs {
				if x.Item.Item == "multi_turn-c1-r0-i0/2" {
					x.State = exchange.StateTruncated
				}
			}
		}, exchange.VerdictIncomparable, "", exchange.ErrIncomplete},
		"a gate of another build": {func(s *shelf) { each(s, func(c *exchange.PlannedCase) { c.Checks[0].Gate = "telepathy" }) }, exchange.VerdictNotRun, "cannot judge", exchange.ErrIncomplete},
		"parameters of another": {func(s *shelf) {
			each(s, func(c *exchange.PlannedCase) { c.Checks[0].Params = json.RawMessage(`{"mood":1}`) })
		}, exchange.VerdictNotRun, "cannot judge", exchange.ErrIncomplete},
		"no checks": {func(s *shelf) { each(s, func(c *exchange.PlannedCase) { c.Checks = nil }) }, exchange.VerdictNotRun, "no check", exchange.ErrIncomplete},
		"a turn twice": {func(s *shelf) {
			x := *s.xs[s.rows[0].ID]
			x.ID, x.Seq = "", 0
			s.put(&x)
		}, exchange.VerdictNotRun, "claim to be it", exchange.ErrIncomplete},
	} {
		t.Run(name, func(t *testing.T) {
			s := suiteShelf(t, suiteRig{}, validation(scenario.SuiteValidation, "multi_turn"))
			c.harm(s)
			r, _ := judgedRun(t, s, RevalidateOptions{})
			j := judgedCaseOf(t, r, "multi_turn-c1-r0-i0")
			if j.Status == exchange.VerdictOK || !strings.Contains(j.Reason, c.why) {
				t.Errorf("%s: %s", j.Status, j.Reason)
			}
			if j.Status != c.status || !errors.Is(r.Verdict(), c.kind) {
				t.Errorf("%s: %v", j.Status, r.Verdict())
			}
		})
	}
	s := suiteShelf(t, suiteRig{}, validation(scenario.SuiteValidation, "multi_turn"))
	s.run.Replay.Cases = append(s.run.Replay.Cases, s.run.Replay.Cases[0])
	if _, err := Revalidate(context.Background(), s, &s.run, RevalidateOptions{}); !errors.Is(err, exchange.ErrDamaged) {
		t.Errorf("a case that is planned twice: %v", err)
	}
}
