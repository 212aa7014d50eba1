package replay

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// attempts are the attempts of the exchanges that a sink has, in order, those of warm-ups below zero.
func attempts(h *heard) (out []int) {
	for _, x := range h.sink.xs {
		n := x.Item.Attempt
		if x.Item.Warmup {
			n = -n - 1
		}
		out = append(out, n)
	}
	return out
}

// TestSuitesComeBack: an engine that says when to come back is asked again then, in the warm-up and in a case, and the
// case is judged by the last answer.
func TestSuitesComeBack(t *testing.T) {
	t.Parallel()
	o := validation(scenario.SuiteValidation, "short")
	o.Members = o.Members[:1]
	warm := o
	warm.Warmup = 1
	for name, test := range map[string]struct {
		o        SuiteOptions
		engine   *loadingFor
		attempts []int
		status   exchange.VerdictStatus
		takes    time.Duration // at least
	}{
		"in a case":       {o, &loadingFor{first: 2, after: "30"}, []int{0, 1, 2}, exchange.VerdictOK, time.Minute},
		"in the warm-up":  {warm, &loadingFor{first: 2, after: "30"}, []int{-1, -2, -3, 0}, exchange.VerdictOK, time.Minute},
		"it does not say": {o, &loadingFor{first: 1}, []int{0}, exchange.VerdictFail, 0},
		"for ever":        {o, &loadingFor{first: 99, after: "1"}, []int{0, 1, 2, 3, 4, 5}, exchange.VerdictFail, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			suiteRig{pupil: pupil{loading: test.engine}}.play(t, test.o, func(t *testing.T, h *heard) {
				if h.err != nil {
					t.Fatal(h.err)
				}
				if diff := cmp.Diff(test.attempts, attempts(h)); diff != "" {
					t.Error(diff)
				}
				c := h.waves[0].Cases[0]
				if c.Status != test.status || len(c.Exchanges) != 1 {
					t.Errorf("%s: %s, of %d exchanges", c.Status, c.Detail, len(c.Exchanges))
				}
				if last := h.sink.xs[len(h.sink.xs)-1]; last.Timeline.Wall.Sub(h.sink.xs[0].Timeline.Wall) < test.takes {
					t.Errorf("the last attempt came after %s", last.Timeline.Wall.Sub(h.sink.xs[0].Timeline.Wall))
				}
				report := h.suite.Report(h.err)
				if want := max(slices.Max(test.attempts), 0); report.Items.Retries != want {
					t.Errorf("%d retries are told, want %d", report.Items.Retries, want)
				}
			})
		})
	}
}

// TestSuitesStopWaiting: what ends the suite ends the wait.
func TestSuitesStopWaiting(t *testing.T) {
	t.Parallel()
	o := validation(scenario.SuiteValidation, "short")
	why := errors.New("enough")
	rig := suiteRig{pupil: pupil{loading: &loadingFor{first: 99, after: "200"}}, until: time.Minute, why: why}
	rig.play(t, o, func(t *testing.T, h *heard) {
		if !errors.Is(h.err, why) || len(h.sink.xs) != 1 || len(h.waves) != 0 {
			t.Errorf("%v after %d exchanges and %d waves", h.err, len(h.sink.xs), len(h.waves))
		}
	})
}
