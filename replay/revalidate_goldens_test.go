package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// The prompt has 13 tokens for a toy, so that generated token 3 stands at place 16.
const (
	toyAsk   = `{"prompt":"tell me of the sea and the sun over the long road home","n_predict":8,"temperature":0,"n_probs":5,"return_tokens":true}`
	toyPlace = 16
)

// toyLab is an engine that is asked without a network.
type toyLab struct {
	toy sim.Handler
	n   int
}

func newToyLab(gaps map[sim.Numerics]float64) *toyLab {
	return &toyLab{toy: sim.NewToy(sim.ToyOptions{Seed: 1, Nudges: []sim.Nudge{{At: toyPlace, Gaps: gaps}}}).Handler()}
}

// ask sends one request and seals what comes of it.
func (l *toyLab) ask(path, body string) *exchange.Exchange {
	l.n++
	s := l.toy(sim.Request{Method: "POST", Target: path, Body: []byte(body)})
	defer s.Done(sim.Record{})
	var answer strings.Builder
	for _, step := range s.Steps {
		answer.Write(step.Data)
	}
	x := recorded(time.Duration(l.n)*time.Second, body, "application/json", answer.String())
	x.Request.Target, x.Run = path, "R"
	x.Identity = exchange.Identity{Engine: "llamacpp", Version: "toy"}
	sealDigests(x)
	return x
}

// cellar is a GoldenSource in memory.
type cellar struct {
	goldens map[exchange.ID]*exchange.Golden
	replies map[string]*exchange.Exchange // by what was asked
	err     error
}

func (c *cellar) Golden(id exchange.ID) (*exchange.Golden, error) {
	if g := c.goldens[id]; g != nil {
		return g, c.err
	}
	return nil, fmt.Errorf("%w: golden %s", exchange.ErrMiss, id)
}

func (c *cellar) GoldensOf(key string) (out []*exchange.Golden, err error) {
	for _, id := range slices.Sorted(maps.Keys(c.goldens)) {
		if g := c.goldens[id]; g.Key == key {
			out = append(out, g)
		}
	}
	return out, c.err
}

func (c *cellar) Replies(of exchange.ReferenceEngine, needs exchange.Needs) (out []exchange.Reply, err error) {
	if of.Weights != "sha256:aa" || of.Version != "toy" {
		return nil, c.err
	}
	for _, n := range needs {
		if x := c.replies[n.Path+string(n.Body)+n.Variant]; x != nil {
			out = append(out, exchange.Reply{Need: n.ID, Exchange: x})
		}
	}
	return out, c.err
}

// heldRun is a run of one case that was held against a reference, as a suite of gates leaves it: the case with its goldens
// and the answers that were needed, those of the candidate in the run and those of the reference in the cellar.
type heldRun struct {
	*shelf
	*cellar
	kept *exchange.PlannedCase
}

// hold asks the candidate a case, judges it by the checks with what both engines answer, and keeps all of it.
func hold(t *testing.T, reference, candidate *toyLab, checks ...exchange.Check) *heldRun {
	t.Helper()
	g, err := gates.GoldenOf(reference.ask("/completion", toyAsk), gates.Recording{ID: "01J0000000000000000000000G", Weights: "sha256:aa",
		Engine: exchange.Identity{Engine: "llamacpp", Version: "toy"}, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	subject := candidate.ask("/completion", toyAsk)
	subject.Item = &exchange.PlanItem{Item: "c", Turns: 1}
	kept := exchange.PlannedCase{Case: exchange.Case{ID: "c", Scenario: "short", Concurrency: 1, Turns: 1, Checks: checks}, GoldenIDs: []exchange.ID{g.ID}}
	c := kept.Case
	c.Exchanges, c.Goldens = []*exchange.Exchange{subject}, []*exchange.Golden{g}
	h := &heldRun{cellar: &cellar{goldens: map[exchange.ID]*exchange.Golden{g.ID: g}, replies: map[string]*exchange.Exchange{}}}
	records := []*exchange.Exchange{subject}
	j := Judgment{Status: exchange.VerdictSkipped}
	for _, check := range checks {
		for {
			v, needs, err := gates.Judge(gates.Prepare(&c), check)
			if err != nil {
				t.Fatal(err)
			}
			if len(needs) == 0 {
				j.add(v)
				break
			}
			for _, n := range needs {
				lab := map[exchange.Party]*toyLab{exchange.Reference: reference, exchange.Candidate: candidate}[n.Party]
				x := lab.ask(n.Path, string(n.Body))
				if n.Party == exchange.Reference {
					h.replies[n.Path+string(n.Body)+n.Variant] = x
				} else {
					x.Item = &exchange.PlanItem{Item: "c", Turns: 1, Attempt: lab.n}
					records = append(records, x)
				}
				c.Replies = append(c.Replies, exchange.Reply{Need: n.ID, Exchange: x})
				kept.Met = append(kept.Met, exchange.MetNeed{Need: n.ID, Exchange: x.ID})
			}
		}
	}
	(&SuiteCase{Judgment: j}).keep(&kept)
	h.shelf = newShelf(records...)
	h.run.Mode, h.run.Counts.Stored = "gate", int64(len(records))
	h.run.Replay = &exchange.Replay{Cases: []exchange.PlannedCase{kept}, Reference: &exchange.ReferenceEngine{Weights: "sha256:aa", Identity: g.Engine}}
	h.kept = &h.run.Replay.Cases[0]
	return h
}

func checkOf(gate string, params map[string]any) exchange.Check {
	c := exchange.Check{Gate: gate}
	if params != nil {
		c.Params, _ = json.Marshal(params)
	}
	return c
}

type toyGaps = map[sim.Numerics]float64

var ofLab = map[string]any{"weights": "sha256:aa"}

// saved is a case that only the views of the reference save.
func saved(t *testing.T) *heldRun {
	t.Helper()
	return hold(t, newToyLab(toyGaps{sim.NumericsDecode: 1.36, sim.NumericsBatch: 1.28, sim.NumericsMicro: 1.06}), newToyLab(toyGaps{sim.NumericsAny: -0.1}), checkOf("near_tie", ofLab))
}

// raced is one whose engine is asked again and answers alike.
func raced(t *testing.T) *heldRun {
	t.Helper()
	return hold(t, newToyLab(nil), newToyLab(nil), checkOf("determinism", map[string]any{"reps": 3, "pairs": 0, "concurrency": 0}))
}

// TestRevalidateGoldens judges what was held against a reference again, by the evidence that was kept.
func TestRevalidateGoldens(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		made   *heldRun
		status exchange.VerdictStatus
		asked  bool // something was needed beside the golden
	}{
		"saved by views": {saved(t), exchange.VerdictOK, true},
		"failed":         {hold(t, newToyLab(toyGaps{sim.NumericsAny: 1.8}), newToyLab(toyGaps{sim.NumericsAny: -0.1}), checkOf("near_tie", ofLab)), exchange.VerdictFail, true},
		"matches":        {hold(t, newToyLab(nil), newToyLab(nil), checkOf("near_tie", ofLab), checkOf("usage_present", nil)), exchange.VerdictOK, false},
		"consistent":     {raced(t), exchange.VerdictOK, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := test.made
			if h.kept.Status != test.status || test.asked != (len(h.kept.Met) > 0) {
				t.Fatalf("it was %s (%s) with %d answers", h.kept.Status, h.kept.Reason, len(h.kept.Met))
			}
			r, all := judgedRun(t, h.shelf, RevalidateOptions{Goldens: h.cellar})
			c := judgedCaseOf(t, r, "c")
			if c.Status != test.status || r.ChangesTotal != 0 || len(c.Exchanges) != 1 || c.Original != test.status {
				t.Errorf("%s: %s; %d changes, exchanges %v", c.Status, c.Reason, r.ChangesTotal, c.Exchanges)
			}
			for _, j := range all {
				if j.Case != "c" || j.Status != test.status {
					t.Errorf("%s of case %q is %s", j.ID, j.Case, j.Status)
				}
			}
			kinds := map[string]int{}
			for _, e := range c.evidence {
				kinds[e.Kind]++
			}
			if kinds["golden"] != 1 || kinds["exchange"] != 1 {
				t.Errorf("evidence %v", kinds)
			}
		})
	}
}

// TestRevalidateBrokenReferences takes away what a case was held against: it is no pass, and no failure of the answer.
func TestRevalidateBrokenReferences(t *testing.T) {
	t.Parallel()
	lastMet := func(h *heldRun) exchange.ID { return h.kept.Met[len(h.kept.Met)-1].Exchange }
	for name, test := range map[string]struct {
		made   func(*testing.T) *heldRun
		breaks func(*heldRun) GoldenSource
		status exchange.VerdictStatus
		says   string
	}{
		"no store":        {saved, func(*heldRun) GoldenSource { return nil }, exchange.VerdictNotRun, "is in the store that recorded it, and not here"},
		"golden removed":  {saved, func(h *heldRun) GoldenSource { clear(h.goldens); return h.cellar }, exchange.VerdictNotRun, "its evidence is missing: golden 01J"},
		"golden damaged":  {saved, func(h *heldRun) GoldenSource { h.err = exchange.ErrDamaged; return h.cellar }, exchange.VerdictNotRun, "its evidence is missing"},
		"reply removed":   {saved, func(h *heldRun) GoldenSource { clear(h.replies); return h.cellar }, exchange.VerdictNotRun, "not among those of the reference any more"},
		"other reference": {saved, func(h *heldRun) GoldenSource { h.run.Replay.Reference.Version = "b2"; return h.cellar }, exchange.VerdictNotRun, "not among those"},
		"no reference":    {saved, func(h *heldRun) GoldenSource { h.run.Replay.Reference = nil; return h.cellar }, exchange.VerdictNotRun, "and not here"},
		"another reply": {saved, func(h *heldRun) GoldenSource {
			h.kept.Met[0].Exchange = "01J0000000000000000000000X"
			return h.cellar
		}, exchange.VerdictNotRun, "the run names 01J0000000000000000000000X"},
		"never asked": {saved, func(h *heldRun) GoldenSource { h.kept.Met = nil; return h.cellar }, exchange.VerdictNotRun, "that nobody asked for"},
		"other weights": {saved, func(h *heldRun) GoldenSource {
			for _, g := range h.goldens {
				g.Weights = "sha256:bb"
			}
			return h.cellar
		}, exchange.VerdictIncomparable, "weights: the golden was made with sha256:bb"},
		"truncated subject": {saved, func(h *heldRun) GoldenSource {
			h.xs[h.rows[0].ID].State = exchange.StateTruncated
			return h.cellar
		}, exchange.VerdictIncomparable, "is not whole"},
		"candidate's answer gone": {raced, func(h *heldRun) GoldenSource {
			id := lastMet(h)
			delete(h.xs, id)
			h.rows = slices.DeleteFunc(h.rows, func(r exchange.Summary) bool { return r.ID == id })
			return h.cellar
		}, exchange.VerdictNotRun, "is not on record"},
		"candidate's answer contradicts itself": {raced, func(h *heldRun) GoldenSource {
			h.xs[lastMet(h)].Response.Body = exchange.NewBody([]byte("other"))
			return h.cellar
		}, exchange.VerdictNotRun, "the record contradicts itself"},
		"could not be had": {saved, func(h *heldRun) GoldenSource {
			for i := range h.kept.Met {
				h.kept.Met[i].Exchange, h.kept.Met[i].Reason = "", "the engine was gone"
			}
			return h.cellar
		}, exchange.VerdictFail, "near_tie"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := test.made(t)
			source := test.breaks(h)
			r, _ := judgedRun(t, h.shelf, RevalidateOptions{Goldens: source})
			c := judgedCaseOf(t, r, "c")
			reason := c.Reason
			if c.Status != test.status || !strings.Contains(reason, test.says) {
				t.Errorf("%s: %s", c.Status, reason)
			}
			if r.Verdict() == nil {
				t.Error("it passes")
			}
		})
	}
}

// TestRevalidateReferenceErrors: a source that fails for another reason than missing evidence ends the revalidation.
func TestRevalidateReferenceErrors(t *testing.T) {
	t.Parallel()
	h := saved(t)
	h.err = errors.New("disk on fire")
	if _, err := Revalidate(t.Context(), h.shelf, &h.run, RevalidateOptions{Goldens: h.cellar}); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Error(err)
	}
}
