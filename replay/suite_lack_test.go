package replay

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// toolless is an engine that has no tools and says so, to every request that declares some.
func toolless(message string) suiteRig {
	return suiteRig{pupil: pupil{wrong: func(string, int) *pupilSays {
		return &pupilSays{status: 400, body: `{"error":{"message":"` + message + `"}}`}
	}}}
}

// useSuite is the suite of choosing tools.
func useSuite(degrees ...int) SuiteOptions {
	return SuiteOptions{Members: scenario.Plan(scenario.Suite(scenario.SuiteToolUse), degrees, 1), Options: scenario.Options{Model: "pupil"}}
}

// TestSuiteAsksForACapabilityOnce holds that an engine which says that it has no tools is not asked for them again, that
// what is not sent is no failure and nothing that is missing, and that the record alone says the same.
func TestSuiteAsksForACapabilityOnce(t *testing.T) {
	s := suiteShelf(t, toolless("registry/m does not support tools"), useSuite(1))
	kept := s.run.Replay
	n := len(scenario.Suite(scenario.SuiteToolUse))
	if len(s.rows) != 1 || kept.Items.Withheld != n-1 || kept.Items.Unsent != 0 || kept.Items.Failed != 1 || kept.Incomplete != "" {
		t.Errorf("%d requests of %d cases: %+v %s", len(s.rows), n, kept.Items, kept.Incomplete)
	}
	for i, c := range kept.Cases {
		if c.Status != exchange.VerdictUnsupported || (c.Lack == nil) != (i == 0) || i > 0 && !strings.HasSuffix(c.Reason, "as it said to selection_weather-c1-r0-i0; it is asked once a run") {
			t.Errorf("%s: %s: %s", c.ID, c.Status, c.Reason)
		}
	}
	r, _ := judgedRun(t, s, RevalidateOptions{})
	for _, c := range r.Cases {
		if c.Status != exchange.VerdictUnsupported || c.Original != exchange.VerdictUnsupported {
			t.Errorf("later %s: %s: %s", c.Case, c.Status, c.Reason)
		}
	}
	if !r.Complete || r.ChangesTotal != 0 {
		t.Errorf("%q, %d changes", r.Why, r.ChangesTotal)
	}
}

// TestLackIsOnRecord holds that a case which was not sent is no more than not run where what the engine said is not on record,
// or says something else by the rules of today.
func TestLackIsOnRecord(t *testing.T) {
	s := suiteShelf(t, toolless("registry/m does not support tools"), useSuite(1))
	x := s.xs[s.rows[0].ID]
	x.Response.Body = exchange.NewBody([]byte(strings.Replace(string(x.Response.Body.Bytes()), "does not support tools", "ran out of memory here", 1)))
	sealDigests(x)
	r, _ := judgedRun(t, s, RevalidateOptions{})
	if c := r.Cases[2]; c.Status != exchange.VerdictNotRun || !strings.Contains(c.Reason, "did not say to selection_weather-c1-r0-i0 that it has no tools") {
		t.Errorf("another answer: %s: %s", c.Status, c.Reason)
	}
	s.rows = nil
	s.run.Counts.Stored = 0
	r, _ = judgedRun(t, s, RevalidateOptions{})
	if c := r.Cases[2]; c.Status != exchange.VerdictNotRun || !strings.Contains(c.Reason, "is not on record") || r.Verdict() == nil {
		t.Errorf("no answer: %s: %s", c.Status, c.Reason)
	}
}

// TestSuiteAsksAgain holds that other refusals are failures of their own, and that a lack is known across suites of a run
// where they share it.
func TestSuiteAsksAgain(t *testing.T) {
	s := suiteShelf(t, toolless("tool get_weather: its schema is not supported"), useSuite(1))
	n := len(scenario.Suite(scenario.SuiteToolUse))
	if i := slices.IndexFunc(s.run.Replay.Cases, func(c exchange.PlannedCase) bool { return c.Status != exchange.VerdictFail }); i >= 0 || len(s.rows) != n {
		t.Errorf("%d requests; case %d", len(s.rows), i)
	}
	known := &Lacking{}
	for i, want := range []int{4, 0} { // those of a wave are asked at once
		o := useSuite(4)
		o.Members, o.Lacking = o.Members[:4], known
		if s := suiteShelf(t, toolless("does not support tools"), o); len(s.rows) != want || s.run.Replay.Items.Withheld != 4-want || s.run.Replay.Incomplete != "" {
			t.Errorf("suite %d: %d requests, %+v", i+1, len(s.rows), s.run.Replay.Items)
		}
	}
}
