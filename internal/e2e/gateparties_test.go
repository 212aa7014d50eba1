package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// hangar holds engines of which one is up at a time, and what was done with them.
type hangar struct {
	t    *testing.T
	up   string
	done []string
}

// launched is an engine of a hangar: what it is under each of its launch flags.
type launched struct {
	h    *hangar
	name string
	as   map[string]replay.Target
}

func (l launched) Start(_ context.Context, variant string) (replay.Target, error) {
	if l.h.up != "" {
		l.h.t.Errorf("%s %s is started while %s is up", l.name, variant, l.h.up)
	}
	target, found := l.as[variant]
	if !found {
		return target, fmt.Errorf("%s does not know %s", l.name, variant)
	}
	l.h.up = strings.TrimSpace(l.name + " " + variant)
	l.h.done = append(l.h.done, "start "+l.h.up)
	return target, nil
}

func (l launched) Stop(context.Context) error {
	l.h.done = append(l.h.done, "stop "+l.h.up)
	l.h.up = ""
	return nil
}

// inHangar makes both engines of a suite launched ones, the reference with more flags.
func (g *gated) inHangar(t *testing.T, o *replay.GateOptions, more map[string]replay.Target) *hangar {
	h := &hangar{t: t}
	o.Candidate.Engine = launched{h, "candidate", map[string]replay.Target{"": g.target(exchange.Candidate)}}
	as := map[string]replay.Target{"": g.target(exchange.Reference)}
	for flags, target := range more {
		as[flags] = target
	}
	o.Reference.Engine = launched{h, "reference", as}
	return h
}

// TestGateSuiteOneEngineAtATime holds that of two engines that are launched one is up at a time, each as seldom as can be,
// and that a reference whose answers are on record is not launched.
func TestGateSuiteOneEngineAtATime(t *testing.T) {
	at := func(gap float64) sim.ToyOptions {
		return sim.ToyOptions{Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: toyGaps{sim.NumericsAny: gap}}}}
	}
	g := newGated(t, at(1.2), at(-0.1))
	o := g.options(t, nil, scenario.FamilyConsistency, scenario.FamilyPrompts, scenario.FamilySampling)
	h := g.inHangar(t, &o, nil)
	r := g.gate(t, o)
	want := []string{"start candidate", "stop candidate", "start reference", "stop reference"}
	if diff := cmp.Diff(want, h.done); diff != "" {
		t.Error(diff)
	}
	if e := entry(t, r, "prompt_03", "near_tie"); e.Status != exchange.VerdictFail || *e.Gap < 1.19 {
		t.Errorf("%s: %s", e.Status, e.Reason)
	}
	h.done = nil
	if g.gate(t, o); !slices.Equal(h.done, want[:2]) {
		t.Errorf("the second time: %v", h.done)
	}
}

// TestGateSuiteVariants documents a failure as the reference's own noise where its other numerics show it, with what they
// prefer, and says so where they do not.
func TestGateSuiteVariants(t *testing.T) {
	at := func(gap float64) sim.ToyOptions {
		return sim.ToyOptions{Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: toyGaps{sim.NumericsAny: gap}}}}
	}
	for name, test := range map[string]struct {
		variant float64
		status  exchange.VerdictStatus
		says    string
	}{
		"documented": {0.8, exchange.VerdictOK, ""}, "another choice": {-0.3, exchange.VerdictOK, ""},
		"not proven": {1.9, exchange.VerdictFail, "not proven noise by any variant of the reference"},
	} {
		g := newGated(t, at(1.8), at(-0.1))
		o := g.options(t, nil, scenario.FamilyPrompts)
		o.Variants = []string{"--no-flash-attn", "--unknown-flag"}
		other := at(test.variant)
		other.Seed = 1
		_, url := g.newEngine(sim.Config{Handler: sim.NewToy(other).Handler(), Bare: true})
		up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: string(exchange.Reference), URL: url})
		if err != nil {
			t.Fatal(err)
		}
		g.stops = append(g.stops, up.Close)
		h := g.inHangar(t, &o, map[string]replay.Target{"--no-flash-attn": {Session: g.session, Upstream: up}})
		e := entry(t, g.gate(t, o), "prompt_03", "near_tie")
		if e.Status != test.status || !strings.Contains(e.Reason, test.says) {
			t.Errorf("%s: %s %s", name, e.Status, e.Reason)
		}
		var d struct {
			Turns []struct {
				Rule     string
				Variants []struct {
					View, Absent string
					Top          []exchange.TokenProb
				}
			}
		}
		if err := json.Unmarshal(e.Detail, &d); err != nil || len(d.Turns[0].Variants) != 2 {
			t.Fatalf("%s: %v %s", name, err, e.Detail)
		}
		v := d.Turns[0].Variants
		if len(v[0].Top) != 5 || !strings.Contains(v[1].Absent, "does not know --unknown-flag") || test.status == exchange.VerdictOK != (d.Turns[0].Rule == "documented_near_tie") {
			t.Errorf("%s: %+v", name, d)
		}
		if !slices.Contains(h.done, "start reference --no-flash-attn") {
			t.Errorf("%s: %v", name, h.done)
		}
	}
}

// TestGateSuiteVariantsOfURL holds that a reference that nobody launches has no other flags, and that this is told.
func TestGateSuiteVariantsOfURL(t *testing.T) {
	at := func(gap float64) sim.ToyOptions {
		return sim.ToyOptions{Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: toyGaps{sim.NumericsAny: gap}}}}
	}
	g := newGated(t, at(1.8), at(-0.1))
	o := g.options(t, nil, scenario.FamilyPrompts)
	o.Variants = []string{"-fa 0"}
	e := entry(t, g.gate(t, o), "prompt_03", "near_tie")
	if e.Status != exchange.VerdictFail || !strings.Contains(string(e.Detail), "not launched by us, with flags -fa 0") {
		t.Errorf("%s: %s", e.Status, e.Detail)
	}
}

// reuse is a suite that finds an earlier report: what is changed of either, and whether the target is asked again.
type reuse struct {
	level string
	edit  func(*replay.GateOptions, *replay.GateReport)
	sent  bool
}

func reuses() map[string]reuse {
	return map[string]reuse{
		"weaker level":  {"dev", nil, false},
		"same level":    {"full", func(o *replay.GateOptions, _ *replay.GateReport) { o.Defer = true }, false},
		"put off":       {"full", nil, true},
		"a pass of dev": {"full", func(o *replay.GateOptions, r *replay.GateReport) { downgrade(r); o.Defer = true }, true},
		"other build":   {"dev", func(o *replay.GateOptions, _ *replay.GateReport) { o.Candidate.Identity.Version = "c2" }, true},
		"unknown build": {"dev", func(o *replay.GateOptions, r *replay.GateReport) {
			o.Candidate.Identity.Version, r.Target.Version = "", ""
		}, true},
		"other weights":   {"dev", func(o *replay.GateOptions, r *replay.GateReport) { r.Target.Weights = "sha256:bb" }, true},
		"other reference": {"dev", func(_ *replay.GateOptions, r *replay.GateReport) { r.Reference.Version = "b0" }, true},
		"other gates":     {"dev", func(_ *replay.GateOptions, r *replay.GateReport) { r.Package = "sha256:00" }, true},
		"another model":   {"dev", func(_ *replay.GateOptions, r *replay.GateReport) { r.Target.Model = "lora" }, true},
		"same bytes":      {"dev", started("l1:aa", "l1:aa"), false},
		"other bytes":     {"dev", started("l1:aa", "l1:bb"), true},
		"unknown bytes":   {"dev", started("", ""), true},
		"started otherwise": {"dev", func(o *replay.GateOptions, r *replay.GateReport) {
			started("l1:aa", "l1:aa")(o, r)
			r.Target.Launch = "other"
		}, true},
		"started before": {"dev", func(_ *replay.GateOptions, r *replay.GateReport) { r.Target.Launch, r.Target.Build = "engine", "l1:aa" }, true},
		"other reference bytes": {"dev", func(o *replay.GateOptions, r *replay.GateReport) {
			o.Reference.Build, r.Reference.Build = "l1:aa", "l1:bb"
		}, true},
		"on record":  {"dev", recorded(true), false},
		"off record": {"dev", recorded(false), true},
		"rests on nothing": {"dev", func(_ *replay.GateOptions, r *replay.GateReport) {
			for i := range r.Verdicts {
				r.Verdicts[i].Evidence = nil
			}
		}, true},
		"a gate is missing": {"dev", func(_ *replay.GateOptions, r *replay.GateReport) {
			for i := range r.Verdicts {
				r.Verdicts[i].Gate = "finish_reason"
			}
		}, true},
		"another condition": {"dev", func(o *replay.GateOptions, _ *replay.GateReport) { o.Variants = []string{"-ub 8"} }, true},
	}
}

// TestGateSuiteReuse holds that a pass stands at the same or a weaker level on the same build, weights, questions and
// gates, and nowhere else, and that what was put off is all that a later suite sends.
func TestGateSuiteReuse(t *testing.T) {
	g := newGated(t, sim.ToyOptions{}, sim.ToyOptions{Limit: 24000})
	plan := func(level string) plan {
		return func(o *scenario.LevelOptions) { o.Level, o.Window = level, 24000 }
	}
	families := []string{scenario.FamilyPrompts, scenario.FamilyNeedle, scenario.FamilyPrefill}
	o := g.options(t, plan("full"), families...)
	o.Defer = true
	first := g.gate(t, o)
	if len(first.Deferred) != 2 || first.Verdict() != nil {
		t.Fatalf("%+v %v", first.Deferred, first.Verdict())
	}
	path := filepath.Join(t.TempDir(), "gates.json")
	if err := first.Save(path); err != nil {
		t.Fatal(err)
	}
	earlier, err := replay.ReadGateReport(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Verdicts, earlier.Verdicts, cmp.Comparer(func(a, b json.RawMessage) bool { return len(a) > 0 == (len(b) > 0) })); diff != "" {
		t.Errorf("it is not read as it was written: %s", diff)
	}
	for name, test := range reuses() {
		copied := *earlier
		copied.Verdicts = slices.Clone(earlier.Verdicts)
		of := *earlier.Reference
		copied.Reference = &of
		o := g.options(t, plan(test.level), families...)
		if o.Earlier = &copied; test.edit != nil {
			test.edit(&o, &copied)
		}
		g.sent(exchange.Candidate)
		r := g.gate(t, o)
		n := g.sent(exchange.Candidate)
		if n > 0 != test.sent {
			t.Errorf("%s: %d requests", name, n)
		}
		if name == "put off" && (n != 2 || len(r.Deferred) != 0 || entry(t, r, "prefill_19946", "usage_present").Reused || entry(t, r, "needle_19946_75", "needle").Reused) {
			t.Errorf("%s: %d requests, %+v", name, n, r.Deferred)
		}
		if err := r.Verdict(); err != nil && name != "other weights" {
			t.Errorf("%s: %v", name, err)
		}
		if e := entry(t, r, "prompt_01", "near_tie"); e.Reused == (test.sent && name != "put off") {
			t.Errorf("%s: reused %v", name, e.Reused)
		}
	}
}

// started makes both candidates ones that are started here, of these bytes.
func started(now, before string) func(*replay.GateOptions, *replay.GateReport) {
	return func(o *replay.GateOptions, r *replay.GateReport) {
		o.Candidate.Launch, o.Candidate.Build = "engine", now
		r.Target.Launch, r.Target.Build = "engine", before
	}
}

// recorded says of all evidence that it is on record, or that it is not.
func recorded(is bool) func(*replay.GateOptions, *replay.GateReport) {
	return func(o *replay.GateOptions, _ *replay.GateReport) {
		o.OnRecord = func([]exchange.EvidenceSum) bool { return is }
	}
}

func downgrade(r *replay.GateReport) {
	for i := range r.Verdicts {
		r.Verdicts[i].Level = "dev"
	}
}

// TestGateSuiteBrokenEvidence holds that what cannot be compared is refused with its reason, and never a pass.
func TestGateSuiteBrokenEvidence(t *testing.T) {
	for name, test := range map[string]struct {
		reference sim.ToyOptions
		edit      func(*gated, *replay.GateOptions)
		says      string
		kind      error
	}{
		"no reference":    {edit: func(_ *gated, o *replay.GateOptions) { o.Reference = nil }, says: "no recording of this request is kept", kind: exchange.ErrMiss},
		"it drafts":       {reference: sim.ToyOptions{Drafts: true}, says: "the engine drafted", kind: exchange.ErrMiss},
		"other weights":   {edit: func(_ *gated, o *replay.GateOptions) { o.Reference.Weights = "sha256:bb" }, says: "refused for its weights", kind: exchange.ErrMiss},
		"unknown weights": {edit: func(_ *gated, o *replay.GateOptions) { o.Candidate.Weights = "" }, says: "they are not known of the subject", kind: exchange.ErrMiss},
		"the reference fails": {edit: func(g *gated, _ *replay.GateOptions) {
			g.asked[exchange.Reference].set(func(a *asked) { a.fails = 500 })
		}, says: "the answer is upstream_error", kind: exchange.ErrMiss},
		"the candidate fails": {edit: func(g *gated, _ *replay.GateOptions) {
			g.asked[exchange.Candidate].set(func(a *asked) { a.fails = 500 })
		}, says: "no golden", kind: exchange.ErrGate},
		"it is not launched": {edit: func(_ *gated, o *replay.GateOptions) {
			o.Reference.Engine = launched{h: &hangar{}, name: "reference"}
		}, says: "start reference: reference does not know", kind: exchange.ErrMiss},
	} {
		g := newGated(t, test.reference, sim.ToyOptions{})
		o := g.options(t, nil, scenario.FamilyPrompts)
		if test.edit != nil {
			test.edit(g, &o)
		}
		r := g.gate(t, o)
		e := entry(t, r, "prompt_01", "near_tie")
		if e.Status != exchange.VerdictIncomparable || !strings.Contains(e.Reason, test.says) {
			t.Errorf("%s: %s %s", name, e.Status, e.Reason)
		}
		if err := r.Verdict(); !errors.Is(err, test.kind) {
			t.Errorf("%s: the report says %v", name, err)
		}
	}
}

// TestGateSuiteEnds holds that a suite that did not come to its end says so, and that nothing in it passes unsaid.
func TestGateSuiteEnds(t *testing.T) {
	gone, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: "gone", URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gone.Close() }) // it never had a connection
	for name, test := range map[string]struct {
		edit func(*gated, *replay.GateOptions, context.CancelCauseFunc)
		kind error
	}{
		"reference gone": {func(g *gated, o *replay.GateOptions, _ context.CancelCauseFunc) {
			o.Reference.Engine = replay.AlwaysUp{Target: replay.Target{Session: g.session, Upstream: gone}}
		}, exchange.ErrUnreachable},
		"candidate gone": {func(g *gated, o *replay.GateOptions, _ context.CancelCauseFunc) {
			o.Candidate.Engine = replay.AlwaysUp{Target: replay.Target{Session: g.session, Upstream: gone}}
		}, exchange.ErrUnreachable},
		"not startable": {func(_ *gated, o *replay.GateOptions, _ context.CancelCauseFunc) {
			o.Candidate.Engine = launched{h: &hangar{}, name: "candidate"}
		}, nil},
		"no goldens":    {breaks("goldens"), errBrokenStore},
		"golden unkept": {breaks("add golden"), errBrokenStore},
		"no replies":    {breaks("replies"), errBrokenStore},
		"reply unkept":  {breaks("add reply"), errBrokenStore},
		"interrupted": {func(_ *gated, o *replay.GateOptions, end context.CancelCauseFunc) {
			o.Told = func(*replay.GateEntry) { end(errEnded) }
		}, errEnded},
	} {
		far := sim.ToyOptions{Nudges: []sim.Nudge{{At: prompt3 + 3, Gaps: toyGaps{sim.NumericsAny: -1.8}}}} // views are needed
		g := newGated(t, sim.ToyOptions{}, far)
		o := g.options(t, nil, scenario.FamilyConsistency, scenario.FamilyPrompts)
		ctx, end := context.WithCancelCause(context.Background())
		test.edit(g, &o, end)
		s, err := replay.NewGateSuite(o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Run(ctx)
		end(nil)
		if err == nil || test.kind != nil && !errors.Is(err, test.kind) {
			t.Errorf("%s: %v", name, err)
		}
		if r.Complete || r.Why == "" || !errors.Is(r.Verdict(), exchange.ErrIncomplete) {
			t.Errorf("%s: complete %v, %q, %v", name, r.Complete, r.Why, r.Verdict())
		}
		if e := entry(t, r, "prompt_12", "near_tie"); name != "reply unkept" && (e.Status != exchange.VerdictNotRun || !strings.Contains(e.Reason, "did not come to its end")) {
			t.Errorf("%s: %s %s", name, e.Status, e.Reason)
		}
	}
}

var errEnded = errors.New("ended by the test")

// brokenStore is a cache of references of which one function fails.
type brokenStore struct {
	replay.References
	what string
}

var errBrokenStore = errors.New("the store is broken")

func breaks(what string) func(*gated, *replay.GateOptions, context.CancelCauseFunc) {
	return func(_ *gated, o *replay.GateOptions, _ context.CancelCauseFunc) {
		o.References = brokenStore{o.References, what}
	}
}

func (b brokenStore) fails(what string) error {
	if b.what == what {
		return errBrokenStore
	}
	return nil
}

func (b brokenStore) Goldens(key string) ([]*exchange.Golden, error) {
	list, err := b.References.Goldens(key)
	return list, errors.Join(err, b.fails("goldens"))
}

func (b brokenStore) AddGolden(g exchange.Golden) (exchange.Golden, error) {
	kept, err := b.References.AddGolden(g)
	return kept, errors.Join(err, b.fails("add golden"))
}

func (b brokenStore) Replies(needs exchange.Needs) ([]exchange.Reply, error) {
	list, err := b.References.Replies(needs)
	return list, errors.Join(err, b.fails("replies"))
}

func (b brokenStore) AddReply(n exchange.Need, x *exchange.Exchange) error {
	return errors.Join(b.References.AddReply(n, x), b.fails("add reply"))
}
