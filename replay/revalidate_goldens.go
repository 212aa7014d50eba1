package replay

import (
	"errors"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// A case that was held against a reference is judged again by the same evidence: the goldens and the answers that its run
// names. Nobody is asked. Evidence that the run names and that is gone is no reason to pass, and none to fail.

// GoldenSource gives out what reference engines have answered: a store keeps it beside the runs.
type GoldenSource interface {
	// Golden is one recording. The error wraps exchange.ErrMiss where there is none.
	Golden(id exchange.ID) (*exchange.Golden, error)
	// GoldensOf are the recordings under a request key, of all weights, engines and turns; none is no error.
	GoldensOf(key string) ([]*exchange.Golden, error)
	// Replies are what the reference answered to those of the needs that it was asked; of a group all or none.
	Replies(of exchange.ReferenceEngine, needs exchange.Needs) ([]exchange.Reply, error)
}

// rounds bounds how often a gate can ask for more.
const rounds = 16

// evidence finds what a case was held against.
type evidence struct {
	kept      *exchange.PlannedCase
	reference *exchange.ReferenceEngine          // nil for none
	goldens   GoldenSource                       // nil for none
	prepared  *gates.Evidence                    // of the case with the answers that were found so far
	inRun     map[exchange.ID]*captured          // answers to needs among the exchanges of the run
	got       map[exchange.ID]*exchange.Exchange // of them, those that were read
}

// errGone says that evidence which the run names cannot be read any more.
var errGone = errors.New("its evidence is missing")

// lacking wraps errGone.
func lacking(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errGone, fmt.Sprintf(format, args...))
}

// recordings are the goldens of the case.
func (e *evidence) recordings() (list []*exchange.Golden, err error) {
	for _, id := range e.kept.GoldenIDs {
		if e.goldens == nil {
			return nil, lacking("golden %s is in the store that recorded it, and not here", id)
		}
		g, err := e.goldens.Golden(id)
		switch {
		case errors.Is(err, exchange.ErrMiss), errors.Is(err, exchange.ErrDamaged):
			return nil, lacking("golden %s: %v", id, err)
		case err != nil:
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

// judgment judges a case by its checks, as judgmentOf does, with what it was held against.
func (e *evidence) judgment(c *exchange.Case) (Judgment, error) {
	var err error
	if c.Goldens, err = e.recordings(); err != nil {
		return Judgment{}, err
	}
	j := Judgment{Status: exchange.VerdictSkipped, Lenient: exchange.VerdictSkipped}
	for _, check := range c.Checks {
		v, err := e.judge(c, check)
		if err != nil {
			return j, err
		}
		j.add(v)
	}
	return j, nil
}

// judge judges by one check, with what the run says was answered. What was not asked when the run was made is not asked
// now: the verdict is not_run then.
func (e *evidence) judge(c *exchange.Case, check exchange.Check) (exchange.Verdict, error) {
	for range rounds {
		if e.prepared == nil {
			e.prepared = gates.Prepare(c)
		}
		v, needs, err := gates.Judge(e.prepared, check)
		if err != nil || len(needs) == 0 {
			return v, err
		}
		replies, err := e.replies(needs)
		if err != nil {
			return v, err
		}
		if len(replies) == 0 {
			v.Reason = "it needs answers that nobody asked for when it was judged first: " + v.Reason
			return v, nil
		}
		c.Replies, e.prepared = append(c.Replies, replies...), nil
	}
	return exchange.Verdict{}, fmt.Errorf("judge case %s by %s: %w: the gate never has enough", c.ID, check.Gate, exchange.ErrUsage)
}

// replies are the answers to those of the needs that the run names.
func (e *evidence) replies(needs exchange.Needs) (out []exchange.Reply, err error) {
	var kept exchange.Needs // in the cache of the reference
	for _, n := range needs {
		i := slices.IndexFunc(e.kept.Met, func(m exchange.MetNeed) bool { return m.Need == n.ID })
		if i < 0 {
			continue
		}
		switch m := e.kept.Met[i]; {
		case m.Exchange == "":
			out = append(out, exchange.Reply{Need: n.ID, Reason: m.Reason})
		case e.inRun[m.Exchange] != nil:
			x, err := e.read(m)
			if err != nil {
				return nil, err
			}
			out = append(out, exchange.Reply{Need: n.ID, Exchange: x})
		case n.Party != exchange.Reference:
			return nil, lacking("exchange %s, the answer to %s, is not on record", m.Exchange, n.ID)
		default:
			kept = append(kept, n)
		}
	}
	cached, err := e.cached(kept)
	return append(out, cached...), err
}

// read is an answer among the exchanges of the run. One whose record is cut is given as it is: gates do without it, and
// say so.
func (e *evidence) read(m exchange.MetNeed) (*exchange.Exchange, error) {
	if x := e.got[m.Exchange]; x != nil {
		return x, nil
	}
	x, why, err := (&turnFound{of: e.inRun[m.Exchange]}).read()
	switch {
	case err != nil:
		return nil, err
	case why != "":
		return nil, lacking("exchange %s, the answer to %s: %s", m.Exchange, m.Need, why)
	}
	if e.got == nil {
		e.got = map[exchange.ID]*exchange.Exchange{}
	}
	e.got[m.Exchange] = x
	return x, nil
}

// cached are the answers of the reference that are kept beside the goldens.
func (e *evidence) cached(needs exchange.Needs) ([]exchange.Reply, error) {
	switch {
	case len(needs) == 0:
		return nil, nil
	case e.goldens == nil || e.reference == nil:
		return nil, lacking("the answer to %s is in the store that recorded it, and not here", needs[0].ID)
	}
	found, err := e.goldens.Replies(*e.reference, needs)
	if errors.Is(err, exchange.ErrDamaged) {
		return nil, lacking("the answers of the reference: %v", err)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range needs {
		i := slices.IndexFunc(found, func(r exchange.Reply) bool { return r.Need == n.ID })
		if i < 0 || found[i].Exchange == nil {
			return nil, lacking("the answer to %s is not among those of the reference any more", n.ID)
		}
		m := slices.IndexFunc(e.kept.Met, func(m exchange.MetNeed) bool { return m.Need == n.ID })
		if got, named := found[i].Exchange.ID, e.kept.Met[m].Exchange; got != named {
			return nil, lacking("the answer to %s is exchange %s, and the run names %s", n.ID, got, named)
		}
	}
	return found, nil
}
