package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// nthCheck is one check of a case in a run; the same gate may look at a case several times.
type nthCheck struct {
	run  exchange.ID
	id   string
	gate string
	n    int
}

// gatesAgain makes a report of gates again.
type gatesAgain struct {
	own     *RunRecord
	subject string // name of the upstream of the candidate
	of      func(exchange.ID) (*RunRecord, error)
	seen    map[nthCheck]int // gate of a case -> how many of its verdicts the file has told so far, with n 0
	told    map[nthCheck]bool
	doubts  bool // which answers of the reference were on record before cannot be told
}

// GatesAgain is gates.json as the record gives it: every verdict as the run keeps it in which the case was judged, with what
// the gates of today make of the same evidence, and what the runs keep beside it. of gives the runs that it names; its
// error for a run that is not on record wraps exchange.ErrMiss. What no run keeps is as told: what the subjects were
// started with, the digests of questions, the cases that were put off.
func GatesAgain(told *GateReport, of func(exchange.ID) (*RunRecord, error)) (*GateReport, error) {
	own, err := of(told.Run)
	if err != nil {
		return nil, err
	}
	if own.Run.Replay == nil {
		return nil, fmt.Errorf("%w: run %s is none of a suite", exchange.ErrMiss, told.Run)
	}
	g := &gatesAgain{own: own, subject: own.subject(), of: of, seen: map[nthCheck]int{}, told: map[nthCheck]bool{}}
	made := *told
	made.Schema, made.Verdicts, made.Statuses = GateReportVersion, []GateEntry{}, map[exchange.VerdictStatus]int{}
	for i := range told.Verdicts {
		e, err := g.entry(told.Verdicts[i])
		if err != nil {
			return nil, err
		}
		made.Verdicts = append(made.Verdicts, e)
	}
	rest, err := g.untold()
	if err != nil {
		return nil, err
	}
	made.Verdicts = append(made.Verdicts, rest...)
	for _, e := range made.Verdicts {
		made.Statuses[e.Status]++
	}
	g.facts(&made, told)
	return &made, g.asked(&made)
}

// facts are what the run says of the suite as a whole.
func (g *gatesAgain) facts(made, told *GateReport) {
	run := g.own.Run
	if level, ok := strings.CutPrefix(run.Replay.Source, "gates, level "); ok {
		made.Level = level
	}
	made.Complete = run.State == exchange.RunComplete && run.Replay.Incomplete == ""
	if run.Ended != nil {
		if whole := run.Ended.Sub(run.Started).Seconds(); !(told.Seconds >= 0 && told.Seconds <= whole) {
			made.Seconds = whole
		}
		if told.Started.Before(run.Started) || told.Started.After(*run.Ended) {
			made.Started = run.Started
		}
	}
	if ids := g.own.identities(); len(ids) > 0 && !slices.ContainsFunc(ids, func(i exchange.Identity) bool {
		return i.Engine == told.Target.Engine && i.Version == told.Target.Version
	}) {
		made.Target.Engine, made.Target.Version = ids[0].Engine, ids[0].Version
	}
	if ref := run.Replay.Reference; ref != nil && told.Reference != nil {
		subject := *told.Reference
		subject.Engine, subject.Version, subject.Weights = ref.Engine, ref.Version, ref.Weights
		made.Reference = &subject
	} else if ref != nil {
		made.Reference = &GateSubject{Identity: ref.Identity, Weights: ref.Weights}
	}
}

// subject is the name of the upstream that the cases of the run were sent to, "" where none was sent.
func (r *RunRecord) subject() string {
	for i := range r.rows {
		if item := r.rows[i].Item; item != nil && r.Kept(item.CaseID()) != nil {
			return r.rows[i].Upstream
		}
	}
	return ""
}

// identities are those that a run knows of its subject.
func (r *RunRecord) identities() (out []exchange.Identity) {
	for i := range r.Run.Deployments {
		if d := &r.Run.Deployments[i]; d.Upstream == r.subject() {
			out = append(out, d.Identity)
		}
	}
	if r.Run.Identity.Engine != "" {
		out = append(out, r.Run.Identity)
	}
	return out
}

// entry is a verdict of the file as its run keeps it.
func (g *gatesAgain) entry(e GateEntry) (GateEntry, error) {
	rec := g.own
	if e.Run != "" && e.Run != g.own.Run.ID {
		other, err := g.of(e.Run)
		switch {
		case errors.Is(err, exchange.ErrMiss):
			return unkept(e, "run "+string(e.Run)+" is not on record"), nil
		case err != nil:
			return e, err
		}
		rec = other
	}
	kept := rec.Kept(e.Case)
	switch {
	case e.Case == "" && e.Run == "": // it says that a gate had nothing to look at
		e.Status, e.Seconds, e.Gap, e.Position = exchange.VerdictSkipped, 0, nil, nil
		return e, nil
	case kept == nil:
		return unkept(e, "run "+string(rec.Run.ID)+" keeps no such case"), nil
	}
	nth := nthCheck{run: rec.Run.ID, id: e.Case, gate: e.Gate}
	n := g.seen[nth]
	g.seen[nth]++
	nth.n = n
	g.told[nth] = true
	i := nthVerdict(kept, e.Gate, n)
	if i < 0 {
		return unkept(e, orElse(kept.Reason, "the run keeps no verdict of it")), nil
	}
	e.Run = rec.Run.ID
	return g.kept(rec, kept, i, e)
}

// unkept is a verdict of which no run knows.
func unkept(e GateEntry, why string) GateEntry {
	if e.Status != exchange.VerdictNotRun {
		e.Status, e.Reason = exchange.VerdictNotRun, why
	}
	e.Lenient, e.Gap, e.Position, e.Token, e.Golden, e.Detail = "", nil, nil, nil, nil, nil
	return e
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// nthVerdict is the place of the n-th verdict of a gate on a case, -1 when there are not so many.
func nthVerdict(kept *exchange.PlannedCase, gate string, n int) int {
	for i, v := range kept.Verdicts {
		if v.Gate != gate {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return -1
}

// kept is a verdict by the run and by the gates of today, in place of what the file says of it.
func (g *gatesAgain) kept(rec *RunRecord, kept *exchange.PlannedCase, i int, told GateEntry) (GateEntry, error) {
	of := kept.Verdicts[i]
	v := told.Verdict
	v.Version, v.Status, v.Lenient = of.Version, of.Status, of.Lenient
	if again := rec.Again(kept.ID); again != nil && i < len(again.verdicts) && len(again.verdicts) == len(kept.Verdicts) {
		if today := again.verdicts[i]; today.Gate == of.Gate && today.Version == of.Version && today.Status == of.Status {
			v.Detail, v.Evidence, v.Lenient = today.Detail, evidenceOf(told.Evidence, today.Evidence, again.verdicts), orStatus(of.Lenient, today.Lenient)
			if !strings.HasPrefix(v.Reason, today.Reason) { // the suite may say behind it why there was no reference
				v.Reason = today.Reason
			}
		}
	}
	xs, err := rec.turns(kept.ID)
	if err != nil {
		return told, err
	}
	c := &gateCase{SuiteCase: &SuiteCase{Case: kept.Case}, plan: scenario.LevelCase{Family: told.Family}, question: told.Question}
	c.plan.ID, c.Case.Exchanges = kept.Scenario, xs
	spent, shared, err := g.spent(rec, kept, xs)
	if err != nil {
		return told, err
	}
	c.spent = spent
	level, ok := strings.CutPrefix(rec.Run.Replay.Source, "gates, level ")
	if !ok {
		level = told.Level
	}
	e := c.entryOf(v, level)
	e.Reused, e.Run = rec != g.own, rec.Run.ID
	if s := told.Seconds; s >= spent.Seconds() && s <= (spent+shared).Seconds() {
		e.Seconds = s
	}
	return e, nil
}

// evidenceOf is what a verdict rests on: what it does today, or, where the file names more, all that a verdict on the case
// does. A suite judges by one gate when the answers for another are there already.
func evidenceOf(told, today []exchange.EvidenceSum, all []exchange.Verdict) []exchange.EvidenceSum {
	if len(told) <= len(today) {
		return today
	}
	for _, v := range all {
		if len(v.Evidence) > len(today) {
			today = v.Evidence
		}
	}
	return today
}

func orStatus(a, b exchange.VerdictStatus) exchange.VerdictStatus {
	if a == "" {
		return b
	}
	return a
}

// spent is how long engines had the requests of a case in its run. What several cases rest on was asked for one of them:
// shared is how much more it can have been.
func (g *gatesAgain) spent(rec *RunRecord, kept *exchange.PlannedCase, xs []*exchange.Exchange) (spent, shared time.Duration, err error) {
	for _, x := range xs {
		spent += spentOn(x)
	}
	for _, m := range kept.Met {
		if m.Exchange == "" || !rec.has(m.Exchange) {
			continue
		}
		x, err := rec.Exchange(m.Exchange)
		if err != nil {
			return 0, 0, err
		}
		if rec.metBy(m.Exchange) > 1 {
			shared += spentOn(x)
		} else {
			spent += spentOn(x)
		}
	}
	return spent, shared, nil
}

// has reports whether an exchange is one of the run.
func (r *RunRecord) has(id exchange.ID) bool {
	_, there := r.digests[id]
	return there
}

// metBy is how many cases of the run an answer stands for a need of.
func (r *RunRecord) metBy(id exchange.ID) (n int) {
	for i := range r.planned() {
		for _, m := range r.planned()[i].Met {
			if m.Exchange == id {
				n++
			}
		}
	}
	return n
}

// untold are the verdicts of the run that the file leaves out.
func (g *gatesAgain) untold() (out []GateEntry, err error) {
	for i := range g.own.planned() {
		kept := &g.own.planned()[i]
		count := map[string]int{}
		for j, v := range kept.Verdicts {
			nth := nthCheck{g.own.Run.ID, kept.ID, v.Gate, count[v.Gate]}
			count[v.Gate]++
			if g.told[nth] {
				continue
			}
			e, err := g.kept(g.own, kept, j, GateEntry{Verdict: exchange.Verdict{Gate: v.Gate, Case: kept.ID}})
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// asked counts the requests beside those of the cases.
func (g *gatesAgain) asked(made *GateReport) error {
	told := made.Asked
	made.Asked = GateAsked{}
	seen := map[exchange.ID]bool{}
	for i := range g.own.planned() {
		if err := g.askedFor(&g.own.planned()[i], seen, &made.Asked); err != nil {
			return err
		}
	}
	if g.doubts && told.Kept <= made.Asked.Kept {
		made.Asked.Kept = told.Kept
	}
	return nil
}

// askedFor counts those of one case. seen are the answers that were counted.
func (g *gatesAgain) askedFor(kept *exchange.PlannedCase, seen map[exchange.ID]bool, n *GateAsked) error {
	recorded := 0
	for _, m := range kept.Met {
		switch {
		case m.Exchange == "":
		case seen[m.Exchange] || !g.own.has(m.Exchange):
			n.Kept++
		default:
			seen[m.Exchange] = true
			x, err := g.own.Exchange(m.Exchange)
			if err != nil {
				return err
			}
			if x.Upstream != g.subject {
				n.Reference++
			} else {
				n.Candidate++
			}
		}
		if strings.HasPrefix(m.Need, "reference/") {
			if slices.Contains(kept.GoldenIDs, m.Exchange) {
				recorded++
			} else {
				g.doubts = true // its recording was refused, or was that of another case
			}
		}
	}
	n.Kept += len(kept.GoldenIDs) - recorded
	return nil
}
