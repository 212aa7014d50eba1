package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The exchanges of a suite are judged as the cases they were sent as: by the checks that their run keeps, all turns
// together. What a request asks for by itself says nothing of a case; a refusal, for one, can be what is wanted.

// CaseJudged is one case of a suite, judged again.
type CaseJudged struct {
	Case      string                 `json:"case"`
	Scenario  string                 `json:"scenario"`
	Policy    string                 `json:"policy,omitempty"`
	Exchanges []exchange.ID          `json:"exchanges"` // of its turns, in order
	Status    exchange.VerdictStatus `json:"status"`
	Lenient   exchange.VerdictStatus `json:"lenient_status"`
	Reason    string                 `json:"reason,omitempty"`
	Original  exchange.VerdictStatus `json:"original_status,omitempty"` // when it was sent; "" when it did not come to its end then

	verdicts []exchange.Verdict
	evidence []exchange.EvidenceSum
	remained bool
	lacks    bool // it was not sent, for what the engine lacks
}

// turnFound is the exchange of one turn, of several attempts the last.
type turnFound struct {
	of      *captured
	attempt int
	doubled bool
}

// survey looks through what is to be judged before any of it is: which attempts others followed, and which exchanges make
// the cases of a suite, which it judges.
func (v *revalidator) survey(ctx context.Context, items iter.Seq2[*captured, error]) error {
	plan := v.run.Replay
	if plan == nil || plan.Items.Retries == 0 && len(plan.Cases) == 0 {
		return nil
	}
	v.superseded, v.met = map[attempt]int{}, map[exchange.ID]*captured{}
	found := map[string]map[int]*turnFound{}
	if v.o.Checks == nil {
		for i := range plan.Cases {
			found[plan.Cases[i].ID] = map[int]*turnFound{}
		}
	}
	met := metBy(plan, found)
	v.lacks = map[exchange.ID]*captured{}
	for i := range plan.Cases {
		if lack := plan.Cases[i].Lack; lack != nil {
			v.lacks[lack.Exchange] = nil
		}
	}
	for c, err := range items {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case met[c.id] != "":
			v.met[c.id] = c
			continue
		case c.item == nil || c.item.Warmup:
			continue
		}
		if _, refuses := v.lacks[c.id]; refuses {
			v.lacks[c.id] = c
		}
		if at := attemptOf(c.item); c.item.Attempt > v.superseded[at] {
			v.superseded[at] = c.item.Attempt
		}
		if turns := found[c.item.CaseID()]; turns != nil {
			noteTurn(turns, c)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return v.judgeCases(ctx, found)
}

// metBy tells which exchanges are no turns of a case but answers that its gates needed.
func metBy(plan *exchange.Replay, found map[string]map[int]*turnFound) map[exchange.ID]string {
	met := map[exchange.ID]string{}
	for i := range plan.Cases {
		if found[plan.Cases[i].ID] == nil {
			continue
		}
		for _, m := range plan.Cases[i].Met {
			if m.Exchange != "" {
				met[m.Exchange] = plan.Cases[i].ID
			}
		}
	}
	return met
}

// noteTurn takes an exchange as that of its turn, unless a later attempt is there.
func noteTurn(turns map[int]*turnFound, c *captured) {
	switch t := turns[c.item.Turn]; {
	case t == nil || c.item.Attempt > t.attempt:
		turns[c.item.Turn] = &turnFound{of: c, attempt: c.item.Attempt}
	case c.item.Attempt == t.attempt:
		t.doubled = true
	}
}

// judgeCases judges all cases of the plan, in its order.
func (v *revalidator) judgeCases(ctx context.Context, found map[string]map[int]*turnFound) error {
	v.caseOf = map[exchange.ID]*CaseJudged{}
	seen := map[string]bool{}
	for i := range v.run.Replay.Cases {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		kept := &v.run.Replay.Cases[i]
		if seen[kept.ID] {
			return fmt.Errorf("revalidate run %s: %w: its case %s is planned twice", v.run.ID, exchange.ErrDamaged, kept.ID)
		}
		seen[kept.ID] = true
		j, err := v.judgeKept(kept, found[kept.ID])
		if err != nil {
			return err
		}
		v.cases = append(v.cases, j)
		for _, m := range kept.Met {
			if v.met[m.Exchange] != nil {
				v.caseOf[m.Exchange] = j
			}
		}
		for _, t := range found[kept.ID] {
			v.caseOf[t.of.id] = j
		}
		found[kept.ID] = nil // what it held can go
	}
	return nil
}

// judgeKept judges one case, by its turns or by the refusal for which it was not sent.
func (v *revalidator) judgeKept(kept *exchange.PlannedCase, turns map[int]*turnFound) (*CaseJudged, error) {
	if kept.Lack != nil && len(turns) == 0 {
		return judgeLack(kept, v.lacks[kept.Lack.Exchange])
	}
	return judgeCase(&evidence{kept: kept, reference: v.run.Replay.Reference, goldens: v.o.Goldens, inRun: v.met}, turns)
}

// judgeLack judges a case that was not sent by what the engine said to another one. It says unsupported or nothing.
func judgeLack(kept *exchange.PlannedCase, of *captured) (*CaseJudged, error) {
	j := &CaseJudged{Case: kept.ID, Scenario: kept.Scenario, Policy: kept.Policy, Exchanges: []exchange.ID{}, Original: kept.Status, lacks: true}
	if of == nil {
		return j.set(exchange.VerdictNotRun, fmt.Sprintf("it was not sent, and what the engine said to %s is not on record", kept.Lack.Case)), nil
	}
	x, why, err := (&turnFound{of: of}).read()
	if err != nil {
		return nil, err
	}
	if why != "" {
		return j.set(exchange.VerdictNotRun, fmt.Sprintf("it was not sent, and what the engine said to %s is no evidence: %s", kept.Lack.Case, why)), nil
	}
	for _, check := range kept.Checks {
		if err := gates.Validate(check); err != nil {
			return j.set(exchange.VerdictNotRun, "this build cannot judge it: "+err.Error()), nil
		}
	}
	sum, err := (&lackTold{*kept.Lack, x}).judge(kept.Case)
	if err != nil {
		return nil, err
	}
	if j.verdicts = sum.Verdicts; sum.Status != exchange.VerdictUnsupported {
		return j.set(exchange.VerdictNotRun, fmt.Sprintf("it was not sent, and by the rules of today the engine did not say to %s that it has no %s", kept.Lack.Case, kept.Lack.Capability)), nil
	}
	j.Status, j.Lenient, j.Reason = sum.Status, sum.Lenient, sum.Detail
	return j, nil
}

// judgeCase judges one case by the checks that its run keeps. What failed when it was sent has failed.
func judgeCase(e *evidence, turns map[int]*turnFound) (*CaseJudged, error) {
	kept := e.kept
	j := &CaseJudged{Case: kept.ID, Scenario: kept.Scenario, Policy: kept.Policy, Exchanges: []exchange.ID{}, Original: kept.Status}
	c := kept.Case
	planned := turnsOf(kept)
	for turn := range planned {
		t := turns[turn]
		if t == nil {
			break
		}
		j.Exchanges = append(j.Exchanges, t.of.id)
		x, why, err := t.read()
		if err != nil {
			return nil, err
		}
		if why != "" {
			return j.set(exchange.VerdictNotRun, fmt.Sprintf("turn %d: %s", turn+1, why)), nil
		}
		c.Exchanges = append(c.Exchanges, x)
	}
	there := len(c.Exchanges)
	switch {
	case len(turns) == 0:
		return j.set(exchange.VerdictNotRun, "no exchange of this case is on record"), nil
	case len(turns) != there && there == planned:
		return j.set(exchange.VerdictNotRun, fmt.Sprintf("the record has more than its %d turns", planned)), nil
	case len(turns) != there:
		return j.set(exchange.VerdictNotRun, fmt.Sprintf("turn %d/%d is not on record", there+1, planned)), nil
	case len(c.Checks) == 0:
		return j.set(exchange.VerdictNotRun, "the run keeps no check of it"), nil
	}
	for _, check := range c.Checks {
		if err := gates.Validate(check); err != nil {
			return j.set(exchange.VerdictNotRun, "this build cannot judge it: "+err.Error()), nil
		}
	}
	sum, err := e.judgment(&c)
	if errors.Is(err, errGone) {
		return j.set(exchange.VerdictNotRun, err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	j.verdicts = sum.Verdicts
	if len(sum.Verdicts) > 0 {
		j.evidence = sum.Verdicts[0].Evidence
	}
	j.conclude(kept, sum, there)
	return j, nil
}

// read is the exchange of a turn, or why it is no evidence.
func (t *turnFound) read() (x *exchange.Exchange, why string, err error) {
	if t.doubled {
		return nil, "two exchanges on record claim to be it", nil
	}
	x, err = t.of.load()
	switch {
	case errors.Is(err, exchange.ErrDamaged):
		return nil, "its evidence is missing: " + err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	if problems := exchange.Problems(x); len(problems) > 0 {
		return nil, "the record contradicts itself: " + strings.Join(problems, "; "), nil
	}
	return x, "", nil
}

func (j *CaseJudged) set(status exchange.VerdictStatus, why string) *CaseJudged {
	j.Status, j.Lenient, j.Reason = status, status, why
	return j
}

// turnsOf is how many turns of a case are to be on record: those it was judged by, or all where that is not told.
func turnsOf(kept *exchange.PlannedCase) int {
	if kept.Judged > 0 {
		return kept.Judged
	}
	return max(kept.Turns, 1)
}

// conclude is what the checks come to, of a case of which so many turns are there.
func (j *CaseJudged) conclude(kept *exchange.PlannedCase, sum Judgment, there int) {
	j.Status, j.Lenient, j.Reason = sum.Status, sum.Lenient, sum.Detail
	planned := max(kept.Turns, 1)
	switch short := there < planned; {
	case short && kept.Status == "":
		j.set(exchange.VerdictPartial, fmt.Sprintf("the run ended behind turn %d/%d", there, planned))
	case there < turnsOf(kept) && kept.Status != exchange.VerdictFail:
		j.set(exchange.VerdictNotRun, fmt.Sprintf("turn %d/%d is not on record", there+1, planned))
	case short && kept.Status == exchange.VerdictFail && j.Status != exchange.VerdictOK:
		j.set(exchange.VerdictFail, cmp.Or(kept.Reason, fmt.Sprintf("the conversation stopped behind turn %d/%d", there, planned)))
	}
	if !failedCase(kept.Status) {
		return
	}
	if j.Status == exchange.VerdictOK {
		j.set(exchange.VerdictFail, "the original failure remains: "+cmp.Or(kept.Reason, string(kept.Status)))
		j.remained = true
	}
	if j.Lenient == exchange.VerdictOK && failedCase(kept.Lenient) {
		j.Lenient = exchange.VerdictFail
	}
}

// failedCase reports whether a case failed when it was sent: that no later rule makes good. What could not be compared
// then may be now.
func failedCase(s exchange.VerdictStatus) bool {
	return s == exchange.VerdictFail || s == exchange.VerdictNotRun || s == exchange.VerdictPartial
}

// inCase gives an exchange the judgment of its case. Its last exchange carries the verdicts.
func (v *revalidator) inCase(j *Judged, of *CaseJudged) {
	j.Case, j.Status, j.Lenient, j.remained = of.Case, of.Status, of.Lenient, of.remained
	if of.Status != exchange.VerdictOK {
		j.Reason = cmp.Or(of.Reason, "no check of its case applies")
	}
	for _, e := range of.evidence {
		if e.ID == string(j.ID) {
			j.Evidence = append(j.Evidence, e)
		}
	}
	if n := len(of.Exchanges); n == 0 || of.Exchanges[n-1] != j.ID {
		return
	}
	kept := v.keptOf(of.Case)
	for i, verdict := range of.verdicts {
		g := GateVerdict{verdict.Gate, verdict.Version, verdict.Status, verdict.Lenient, verdict.Reason, verdict.Detail}
		j.Verdicts = append(j.Verdicts, g)
		if i < len(kept) && kept[i].Gate == g.Gate && kept[i].Status != g.Status {
			j.changes = append(j.changes, VerdictChange{ID: j.ID, Seq: j.Seq, Gate: g.Gate, Was: string(kept[i].Status), WasVersion: kept[i].Version,
				Now: string(g.Status), NowVersion: g.Version})
		}
	}
}

// keptOf are the verdicts of a case as its run keeps them.
func (v *revalidator) keptOf(id string) []exchange.CaseVerdict {
	for i := range v.run.Replay.Cases {
		if c := &v.run.Replay.Cases[i]; c.ID == id {
			return c.Verdicts
		}
	}
	return nil
}

// outside adds what external gates say of an exchange that a case has judged.
func (v *revalidator) outside(j *Judged) {
	for _, o := range v.o.Outside {
		g, told := o.verdict(j.ID, true)
		if !told {
			continue
		}
		j.Verdicts = append(j.Verdicts, g)
		j.Status, j.Lenient = together(j.Status, g.Status), together(j.Lenient, cmp.Or(g.Lenient, g.Status))
		if j.Reason == "" && g.Status != exchange.VerdictOK {
			j.Reason = g.Gate + ": " + g.Reason
		}
	}
}

// missingCase says which case has no exchange on record, "" when all have.
func (v *revalidator) missingCase() string {
	for _, c := range v.cases {
		if len(c.Exchanges) == 0 && (!c.lacks || c.Status == exchange.VerdictNotRun) {
			return fmt.Sprintf("case %s: %s", c.Case, c.Reason)
		}
	}
	return ""
}
