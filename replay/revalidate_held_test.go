package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// keep puts a golden of an engine's answer into a cellar.
func (c *cellar) keep(t *testing.T, n int, x *exchange.Exchange, r gates.Recording) *exchange.Golden {
	t.Helper()
	r.ID, r.Concurrency = exchange.ID(fmt.Sprintf("01J%022dG", n)), 1
	if r.Engine == (exchange.Identity{}) {
		r.Engine = exchange.Identity{Engine: "llamacpp", Version: "toy"}
	}
	g, err := gates.GoldenOf(x, r)
	if err != nil {
		t.Fatal(err)
	}
	g.Alternate = n
	if c.goldens == nil {
		c.goldens = map[exchange.ID]*exchange.Golden{}
	}
	c.goldens[g.ID] = g
	return g
}

// answeredBy is a candidate's recorded answer to toyAsk, of an engine whose weights the run knows, or of an unknown one for "".
func answeredBy(candidate *toyLab, weights string) *shelf {
	s := newShelf(candidate.ask("/completion", toyAsk))
	if weights != "" {
		s.run.Deployments = []exchange.Deployment{{Upstream: s.xs[s.rows[0].ID].Upstream, WeightsDigest: &weights}}
	}
	return s
}

func (s *shelf) only() *exchange.Exchange { return s.xs[s.rows[0].ID] }

// apart takes the second choice of the reference at toyPlace.
var apart = toyGaps{sim.NumericsAny: -0.1}

// held is a candidate's recorded answer and the goldens that it is held against.
type held struct {
	s *shelf
	c *cellar // nil for none
	o RevalidateOptions
}

// heldTest is what a gate says of one.
type heldTest struct {
	make   func(*testing.T) *held
	gate   string
	params string
	status exchange.VerdictStatus
	says   string
	exit   error
}

var ofW = gates.Recording{Weights: "sha256:aa"}

// heldWith is an answer of a candidate beside a golden of a reference.
func heldWith(reference toyGaps, r gates.Recording, candidate toyGaps) func(*testing.T) *held {
	return func(t *testing.T) *held {
		h := &held{s: answeredBy(newToyLab(candidate), "sha256:aa"), c: &cellar{}}
		h.c.keep(t, 0, newToyLab(reference).ask("/completion", toyAsk), r)
		return h
	}
}

// judge judges the answer, and holds what is said of it.
func (test *heldTest) judge(t *testing.T) {
	m := test.make(t)
	check := exchange.Check{Gate: test.gate, Params: json.RawMessage(test.params)}
	m.o.Checks = []exchange.Check{check}
	if m.c != nil {
		m.o.Goldens = m.c
	}
	r, all := judgedRun(t, m.s, m.o)
	j := all[0]
	if j.Status != test.status || !strings.Contains(j.Reason, test.says) {
		t.Errorf("%s: %s", j.Status, j.Reason)
	}
	if err := r.Verdict(); !errors.Is(err, test.exit) || (test.exit == nil) != (err == nil) {
		t.Errorf("verdict %v, want %v", err, test.exit)
	}
	if len(j.Evidence) == 0 || j.Evidence[0].Kind != "exchange" {
		t.Errorf("evidence %v", j.Evidence)
	}
	for _, e := range j.Evidence[1:] {
		if want := gates.SumGolden(m.c.goldens[exchange.ID(e.ID)]); e.Digest != want {
			t.Errorf("the digest of golden %s is %s, and that of the one that is kept %s", e.ID, e.Digest, want)
		}
	}
}

// TestHeldAgainstGoldens judges recorded answers by the goldens of their own requests.
func TestHeldAgainstGoldens(t *testing.T) {
	t.Parallel()
	near := toyGaps{sim.NumericsAny: 0.4}
	for name, test := range map[string]heldTest{
		"the same text":          {heldWith(nil, ofW, nil), gateText, "", exchange.VerdictOK, "", nil},
		"a near-tie":             {heldWith(near, ofW, apart), gateNearTie, "", exchange.VerdictOK, "", nil},
		"a near-tie, as text":    {heldWith(near, ofW, apart), gateText, "", exchange.VerdictFail, "parts from golden", exchange.ErrGate},
		"another text":           {heldWith(toyGaps{sim.NumericsAny: 1.8}, ofW, apart), gateNearTie, "", exchange.VerdictFail, "gap 1.8", exchange.ErrGate},
		"views absent and named": {heldWith(toyGaps{sim.NumericsAny: 1.8}, ofW, apart), gateNearTie, "", exchange.VerdictFail, "without view one_batch: nobody is asked", exchange.ErrGate},
		"more recordings asked":  {heldWith(toyGaps{sim.NumericsAny: 1.8}, ofW, apart), gateNearTie, `{"re_recordings":2}`, exchange.VerdictFail, "without re-recordings: nobody", exchange.ErrGate},
		"other weights":          {heldWith(nil, gates.Recording{Weights: "sha256:bb"}, nil), gateNearTie, "", exchange.VerdictIncomparable, "weights: the golden was made with sha256:bb", exchange.ErrMiss},
		"other build": {heldWith(nil, ofW, nil), gateText, `{"build":"b2"}`, exchange.VerdictIncomparable,
			`build: the golden is of "toy" and "b2" is asked for`, exchange.ErrMiss},
		"too old": {func(t *testing.T) *held {
			m := heldWith(nil, ofW, nil)(t)
			for _, g := range m.c.goldens {
				g.Made = g.Made.Add(-time.Hour)
			}
			return m
		}, gateText, `{"max_age_s":60}`, exchange.VerdictIncomparable, "age: the golden was 1h0m", exchange.ErrMiss},
		"unknown weights": {func(t *testing.T) *held {
			m := heldWith(nil, ofW, nil)(t)
			m.s.run.Deployments = nil
			return m
		}, gateText, "", exchange.VerdictIncomparable, "weights: they are not known of the subject", exchange.ErrMiss},
		"unknown weights accepted": {func(t *testing.T) *held {
			m := heldWith(nil, ofW, nil)(t)
			m.s.run.Deployments = nil
			return m
		}, gateText, `{"unknown_weights":true}`, exchange.VerdictOK, "", nil},
		"weights named": {func(t *testing.T) *held {
			m := heldWith(nil, gates.Recording{Weights: "mine"}, nil)(t)
			m.o.WeightsID = "mine"
			return m
		}, gateText, "", exchange.VerdictOK, "", nil},
		"weights of the check": {heldWith(nil, gates.Recording{Weights: "mine"}, nil), gateText, `{"weights":"mine"}`, exchange.VerdictOK, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.judge(t)
		})
	}
}

// TestHeldAgainstWhichGoldens holds which of those that are kept count, and what is said where none does.
func TestHeldAgainstWhichGoldens(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]heldTest{
		"none": {func(*testing.T) *held { return &held{s: answeredBy(newToyLab(nil), "sha256:aa"), c: &cellar{}} }, gateText, "",
			exchange.VerdictIncomparable, "there is no golden of it: golden add", exchange.ErrMiss},
		"no store": {func(*testing.T) *held { return &held{s: answeredBy(newToyLab(nil), "sha256:aa")} }, gateVision, "",
			exchange.VerdictIncomparable, "and not here", exchange.ErrMiss},
		"of itself": {func(t *testing.T) *held {
			m := &held{s: answeredBy(newToyLab(nil), "sha256:aa"), c: &cellar{}}
			m.c.keep(t, 0, m.s.only(), ofW)
			return m
		}, gateNearTie, "", exchange.VerdictIncomparable, "made of this very answer", exchange.ErrMiss},
		"of a variant": {heldWith(nil, gates.Recording{Weights: "sha256:aa", Variant: "-fa"}, nil), gateNearTie, "", exchange.VerdictIncomparable, "launched in another way", exchange.ErrMiss},
		"of another turn": {heldWith(nil, gates.Recording{Weights: "sha256:aa", Turn: 3}, nil), gateText, "",
			exchange.VerdictOK, "", nil},
		"best of alternates": {func(t *testing.T) *held {
			m := heldWith(toyGaps{sim.NumericsAny: 1.8}, ofW, apart)(t)
			m.c.keep(t, 1, newToyLab(apart).ask("/completion", toyAsk), ofW)
			return m
		}, gateText, "", exchange.VerdictOK, "", nil},
		"foreign beside its own": {func(t *testing.T) *held {
			m := heldWith(nil, gates.Recording{Weights: "sha256:bb"}, nil)(t)
			m.c.keep(t, 1, newToyLab(nil).ask("/completion", toyAsk), ofW)
			return m
		}, gateText, "", exchange.VerdictOK, "", nil},
		"a needle without a golden":  {func(*testing.T) *held { return &held{s: answeredBy(newToyLab(nil), ""), c: &cellar{}} }, gateNeedle, `{"expect":["absent"]}`, exchange.VerdictIncomparable, "golden add", exchange.ErrMiss},
		"a needle that nobody finds": {heldWith(nil, ofW, nil), gateNeedle, `{"expect":["absent"]}`, exchange.VerdictOK, "", nil},
		"an answer that was cut short": {func(t *testing.T) *held {
			m := heldWith(nil, ofW, nil)(t)
			m.s.only().State = exchange.StateTruncated
			return m
		}, gateText, "", exchange.VerdictIncomparable, "is not whole", exchange.ErrMiss},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.judge(t)
		})
	}
}

// TestHeldDetail holds what is told of a divergence: the token, the gap and the place, and the conditions that differ.
func TestHeldDetail(t *testing.T) {
	t.Parallel()
	s, c := answeredBy(newToyLab(apart), "sha256:aa"), &cellar{}
	g := c.keep(t, 0, newToyLab(toyGaps{sim.NumericsAny: 0.4}).ask("/completion", toyAsk), gates.Recording{Weights: "sha256:aa"})
	g.Concurrency = 4
	_, all := judgedRun(t, s, RevalidateOptions{Goldens: c, Checks: []exchange.Check{{Gate: gateNearTie}}})
	var d struct {
		Turns []struct {
			Golden      exchange.ID
			Position    int
			Gap         float64
			Rule        string
			Differences []struct{ Field, Golden, Subject string }
		}
	}
	if err := json.Unmarshal(all[0].Verdicts[0].Detail, &d); err != nil || len(d.Turns) != 1 {
		t.Fatalf("%v: %s", err, all[0].Verdicts[0].Detail)
	}
	turn := d.Turns[0]
	if turn.Golden != g.ID || turn.Position != 3 || turn.Rule != "gap" || turn.Gap < 0.39 || turn.Gap > 0.41 {
		t.Errorf("%+v", turn)
	}
	together := ""
	for _, diff := range turn.Differences {
		if diff.Field == "concurrency" {
			together = diff.Subject + " against " + diff.Golden
		}
	}
	if together != "1 against 4" {
		t.Errorf("concurrency is %q: %+v", together, turn.Differences)
	}
}

// TestHeldErrors: goldens that cannot be read end the revalidation, and so do rows that cannot.
func TestHeldErrors(t *testing.T) {
	t.Parallel()
	s := answeredBy(newToyLab(nil), "sha256:aa")
	fire := errors.New("disk on fire")
	o := RevalidateOptions{Goldens: &cellar{err: fire}, Checks: []exchange.Check{{Gate: gateText}}}
	if _, err := Revalidate(t.Context(), s, &s.run, o); !errors.Is(err, fire) {
		t.Error(err)
	}
	o.Goldens = &cellar{}
	if _, err := Revalidate(t.Context(), &brokenListing{s}, &s.run, o); !errors.Is(err, errListing) {
		t.Error(err)
	}
	o.Checks[0].Params = json.RawMessage(`[]`)
	if _, err := Revalidate(t.Context(), s, &s.run, o); !errors.Is(err, exchange.ErrUsage) {
		t.Error(err)
	}
}

// TestSpansCountWhatOverlaps holds the count against that of a look at every pair.
func TestSpansCountWhatOverlaps(t *testing.T) {
	t.Parallel()
	var rows []exchange.Summary
	for i := range 200 {
		row := exchange.Summary{Started: traceDay.Add(time.Duration(i*i*7919%5_000) * time.Millisecond)}
		if i%5 > 0 {
			row.Metrics = exchange.Figures{measure.TotalWallMS: {Value: float64(i * 31 % 400), Unit: "ms", Basis: exchange.BasisMeasured}}
		}
		rows = append(rows, row)
	}
	all := func(yield func(exchange.Summary, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
	s, err := SpansOf(all)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []int
	for i := range rows {
		n := 0
		begin, end := spanOf(&rows[i])
		for k := range rows {
			if b, e := spanOf(&rows[k]); b <= end && e >= begin {
				n++
			}
		}
		got, want = append(got, s.Together(&rows[i])), append(want, n)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	var broken iter.Seq2[exchange.Summary, error] = (&brokenListing{newShelf()}).Summaries("R")
	if _, err := SpansOf(broken); !errors.Is(err, errListing) {
		t.Error(err)
	}
}
