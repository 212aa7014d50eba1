package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
)

// The bounds of a suite that never has enough.
const (
	maxChanges = 16 // of the engine that is up
	maxRounds  = 64 // of judging and asking
)

// seat is an engine as it is asked: who, and under which launch flags beside its usual ones.
type seat struct {
	party   exchange.Party
	variant string
}

// gateRun is one Run of a gate suite.
type gateRun struct {
	*GateSuite
	run    context.Context // as long as requests may run
	up     seat            // the zero seat while no engine is
	target Target
	met    bool // the reference was found out of here
	report *GateReport
	began  time.Time
}

// Run sends the cases to the candidate, and then lets the gates judge, as often as they need more answers: those that the
// engine that is up can give come first, then the other engine's turn comes. The report is there whatever the error is,
// which says why the suite did not come to its end; a case that fails is no error. When ctx ends nothing more is sent and
// what runs is cut.
func (g *GateSuite) Run(ctx context.Context) (*GateReport, error) {
	run, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	defer context.AfterFunc(ctx, func() { cut(proxy.ErrShutdown) })()
	r := &gateRun{GateSuite: g, run: run, report: g.emptyReport(), began: clock.Now()}
	err := r.Run(ctx)
	err = errors.Join(err, r.vacate(context.WithoutCancel(ctx)))
	r.finish(err)
	return r.report, err
}

// emptyReport is the report before anything is sent.
func (g *GateSuite) emptyReport() *GateReport {
	r := &GateReport{Schema: GateReportVersion, Harness: g.o.Harness, Level: g.o.Level.String(), Started: clock.Now().UTC(), Target: subjectOf(&g.o.Candidate),
		Package: GatePackage(), Prompts: g.prompts, Statuses: map[exchange.VerdictStatus]int{}, Verdicts: slices.Clone(g.reused), Deferred: g.deferred}
	if g.o.Reference != nil {
		of := subjectOf(g.o.Reference)
		r.Reference = &of
	}
	if r.Deferred == nil {
		r.Deferred = []GateDeferred{}
	}
	return r
}

// Run sends the cases and judges them.
func (r *gateRun) Run(ctx context.Context) error {
	if len(r.cases) > 0 {
		target, err := r.at(ctx, seat{party: exchange.Candidate})
		if err != nil {
			return err
		}
		if err := r.suite.Run(ctx, target); err != nil {
			return err
		}
	}
	return r.settle(ctx)
}

// at makes the engine of a seat the one that is up, and gives it.
func (r *gateRun) at(ctx context.Context, s seat) (Target, error) {
	if r.up == s {
		return r.target, nil
	}
	if err := r.vacate(ctx); err != nil {
		return Target{}, err
	}
	t, err := r.partyOf(s.party).Engine.Start(ctx, s.variant)
	if err != nil {
		return Target{}, fmt.Errorf("start %s: %w", s.party, err)
	}
	r.up, r.target = s, t
	if s.party == exchange.Reference && r.o.Reference.Meet != nil && !r.met {
		if err := r.meet(ctx); err != nil {
			return Target{}, errors.Join(fmt.Errorf("identify %s: %w", s.party, err), r.vacate(ctx))
		}
	}
	return t, nil
}

// meet finds out what the reference is that was started.
func (r *gateRun) meet(ctx context.Context) error {
	is, err := r.o.Reference.Meet(ctx)
	if err != nil {
		return err
	}
	ref := r.o.Reference
	ref.Identity, ref.Drafting, ref.Model, ref.Weights = is.Identity, is.Drafting, is.Model, is.Weights
	r.o.References, r.met = is.References, true
	of := subjectOf(ref)
	r.report.Reference = &of
	return r.refer()
}

// vacate stops the engine that is up.
func (r *gateRun) vacate(ctx context.Context) error {
	if r.up == (seat{}) {
		return nil
	}
	p := r.up.party
	r.up = seat{}
	if err := r.partyOf(p).Engine.Stop(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", p, err)
	}
	return nil
}

func (r *gateRun) partyOf(p exchange.Party) *GateParty {
	if p == exchange.Reference {
		return r.o.Reference
	}
	return &r.o.Candidate
}

// wanted is a request that a case waits for.
type wanted struct {
	of   *gateCase
	need exchange.Need
	// golden is the turn that the answer is to be a recording of; -1 for a reply to a need.
	golden int
}

// settle judges until every case has its verdicts.
func (r *gateRun) settle(ctx context.Context) error {
	changes := 0
	for range maxRounds {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		open, err := r.judge()
		if err != nil || len(open) == 0 {
			return err
		}
		next := r.next(open)
		if next != r.up {
			changes++
		}
		if changes > maxChanges {
			break
		}
		if err := r.ask(ctx, next, open[next]); err != nil {
			return err
		}
	}
	return r.giveUp()
}

// next is the seat whose turn it is: the one that is up while it has anything to do, since every other costs a start.
func (r *gateRun) next(open map[seat][]wanted) seat {
	if len(open[r.up]) > 0 {
		return r.up
	}
	var seats []seat
	for s := range open {
		seats = append(seats, s)
	}
	return slices.MinFunc(seats, func(a, b seat) int {
		if c := cmp.Compare(a.variant, b.variant); c != 0 && a.party == b.party {
			return c
		}
		return cmp.Compare(a.party, b.party) // the candidate before the reference
	})
}

// judge judges every case that is not settled. What gates need and is on record is taken from there; the rest is given by
// the seat that must answer it.
func (r *gateRun) judge() (map[seat][]wanted, error) {
	open := map[seat][]wanted{}
	for _, c := range r.cases {
		for !c.settled {
			needs, err := r.look(c)
			if err != nil {
				return nil, err
			}
			if len(needs) == 0 {
				r.conclude(c)
				break
			}
			left, err := r.known(c, needs)
			if err != nil {
				return nil, err
			}
			if len(left) == 0 {
				continue // all was on record: judge again
			}
			for _, w := range left {
				s := seat{w.need.Party, w.need.Variant}
				open[s] = append(open[s], w)
			}
			break
		}
	}
	return open, nil
}

// look judges a case by all of its checks. While any of them needs more, its verdicts say nothing.
func (r *gateRun) look(c *gateCase) (list []wanted, err error) {
	if c.refused != nil {
		j, err := c.refused.judge(c.Case)
		c.verdicts = j.Verdicts
		return nil, err
	}
	if len(c.Case.Exchanges) == 0 {
		return nil, nil // it was never sent
	}
	list, err = r.goldens(c) // what the gates want of the candidate is asked meanwhile, before the engines change
	if err != nil {
		return nil, err
	}
	e := gates.Prepare(&c.Case)
	c.verdicts = c.verdicts[:0]
	for _, check := range c.Case.Checks {
		v, needs, err := gates.Judge(e, check)
		if err != nil {
			return nil, err
		}
		if why := c.without(); why != "" && v.Status == exchange.VerdictIncomparable && comparesGoldens(v.Gate) {
			v.Reason += "; " + why
		}
		c.verdicts = append(c.verdicts, v)
		for _, n := range needs {
			if !slices.ContainsFunc(list, func(w wanted) bool { return w.need.ID == n.ID }) {
				list = append(list, wanted{c, n, -1})
			}
		}
	}
	return list, nil
}

// without says why a case has no recordings to be held against, "" when it has.
func (c *gateCase) without() string {
	for i, x := range c.Case.Exchanges {
		if !whole(x) {
			return fmt.Sprintf("request %d was not answered: status %d, %s", i+1, x.Response.Status, x.End)
		}
	}
	if c.lacks != "" {
		return "the reference: " + c.lacks
	}
	return ""
}

// conclude takes the verdicts of a case as they stand.
func (r *gateRun) conclude(c *gateCase) {
	c.settled = true
	c.Judgment = Judgment{Status: exchange.VerdictSkipped, Lenient: exchange.VerdictSkipped}
	if len(c.verdicts) == 0 {
		for _, check := range c.Case.Checks {
			c.verdicts = append(c.verdicts, exchange.Verdict{Gate: check.Gate, Case: c.Case.ID, Status: exchange.VerdictNotRun, Reason: "it was not sent", Evidence: []exchange.EvidenceSum{}})
		}
	}
	for _, x := range c.Case.Exchanges {
		c.spent += spentOn(x)
	}
	for _, v := range c.verdicts {
		c.Judgment.add(v)
		e := c.entryOf(v, r.o.Level.String())
		r.report.Verdicts = append(r.report.Verdicts, e)
		if r.o.Told != nil {
			r.o.Told(&e)
		}
	}
	r.suite.settle(c)
}

// settle keeps what a case came to, and what it rests on, with the run.
func (s *Suite) settle(c *gateCase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := &s.kept[c.at]
	c.keep(to)
	to.Met, to.GoldenIDs = c.met, nil
	for _, g := range c.Case.Goldens {
		to.GoldenIDs = append(to.GoldenIDs, g.ID)
	}
}

// reached reports whether every request of a case that was sent found an engine.
func (c *gateCase) reached() bool {
	return len(c.Case.Exchanges) > 0 && !slices.ContainsFunc(c.Case.Exchanges, func(x *exchange.Exchange) bool { return x.End == exchange.EndConnectFailed })
}

// giveUp is the end of a suite whose gates never have enough: what they still need is not to be had.
func (r *gateRun) giveUp() error {
	for _, c := range r.cases {
		for range maxRounds {
			needs, err := r.look(c)
			if err != nil {
				return err
			}
			if c.settled || len(needs) == 0 {
				break
			}
			for _, w := range needs {
				w.take(exchange.Reply{Need: w.need.ID, Reason: "its gate asked for more than a suite gives"})
			}
		}
		if !c.settled {
			r.conclude(c)
		}
	}
	return nil
}

// finish completes the report: cases that did not come to their verdicts are told, too. Where an engine went away, what it
// said before is judged, as far as that needs nothing more of it.
func (r *gateRun) finish(ran error) {
	for _, c := range r.cases {
		if errors.Is(ran, exchange.ErrUnreachable) && !c.settled && c.reached() {
			if needs, err := r.look(c); err == nil && len(needs) == 0 {
				r.conclude(c)
			}
		}
		if c.settled {
			continue
		}
		c.verdicts = nil
		for _, check := range c.Case.Checks {
			why := "the suite did not come to its end"
			if ran != nil {
				why += ": " + ran.Error()
			}
			c.verdicts = append(c.verdicts, exchange.Verdict{Gate: check.Gate, Case: c.Case.ID, Status: exchange.VerdictNotRun, Reason: why, Evidence: []exchange.EvidenceSum{}})
		}
		for _, v := range c.verdicts {
			r.report.Verdicts = append(r.report.Verdicts, c.entryOf(v, r.o.Level.String()))
		}
	}
	for _, g := range r.o.Gaps {
		r.report.Verdicts = append(r.report.Verdicts, GateEntry{Family: g.Family, Level: r.o.Level.String(), Verdict: exchange.Verdict{Gate: g.Gate,
			Status: exchange.VerdictSkipped, Reason: g.Why, Evidence: []exchange.EvidenceSum{}}})
	}
	r.report.arrange(r.o.Cases)
	for _, e := range r.report.Verdicts {
		r.report.Statuses[e.Status]++
	}
	r.report.Goldens, r.report.Notes = r.goldensUsed(), r.notes()
	r.report.Complete = ran == nil
	if ran != nil {
		r.report.Why = ran.Error()
	}
	r.report.Seconds = clock.Since(r.began).Seconds()
}

// Report is what the run keeps of the suite. It is whole when Run has returned and the tally has been given every exchange.
func (g *GateSuite) Report(ran error) exchange.Replay { return g.suite.Report(ran) }
