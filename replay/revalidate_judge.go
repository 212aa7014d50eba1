package replay

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// judge makes the judgment of one exchange. A record that is not whole is judged to be that; an error is one of the
// source, or a check that makes no sense.
func (v *revalidator) judge(c *captured) (*Judged, error) {
	j := &Judged{ID: c.id, Seq: c.seq, Evidence: []exchange.EvidenceSum{}, Verdicts: []GateVerdict{}, stored: c.row}
	if c.row != nil {
		was := c.row.Outcome
		j.Original, j.Rules = &was, c.row.Rules
	}
	x, err := c.load()
	switch {
	case errors.Is(err, exchange.ErrDamaged):
		j.unreadable(exchange.VerdictNotRun, "its evidence is missing: "+err.Error())
		return j, nil
	case err != nil:
		return nil, err
	}
	if problems := exchange.Problems(x); len(problems) > 0 {
		j.unreadable(exchange.VerdictIncomparable, "the record contradicts itself: "+strings.Join(problems, "; "))
		return j, nil
	}
	e := gates.Prepare(&exchange.Case{ID: string(c.id), Scenario: x.Cell, Exchanges: []*exchange.Exchange{x}})
	a := e.Last().Analysis
	today := v.derive.Of(x, a)
	j.today, j.Outcome, j.Flags, j.Wave = &today, a.Outcome, today.Flags, x.Wave
	if x.Wave != "" {
		m := measure.WaveMemberOf(x, a)
		j.member = &m
	}
	if c.row != nil {
		j.Moved = movedMetrics(c.row.Metrics, a.Figures)
		if c.row.Outcome != a.Outcome {
			j.changes = append(j.changes, VerdictChange{ID: j.ID, Seq: j.Seq, Gate: GateOutcome, Was: string(c.row.Outcome), WasVersion: c.row.Rules.Measure,
				Now: string(a.Outcome), NowVersion: measure.Version})
		}
	}
	if why := v.unasked(x); why != "" {
		j.Status, j.Lenient, j.Reason = exchange.VerdictSkipped, exchange.VerdictSkipped, why
		if x.Cause != nil && x.Cause.Code == causeNotSent {
			j.Status, j.Lenient = exchange.VerdictNotRun, exchange.VerdictNotRun
		}
		return j, nil
	}
	if of := v.caseOf[j.ID]; of != nil {
		v.inCase(j, of)
		v.outside(j)
		return j, v.compare(j)
	}
	if err := v.ask(j, e, x); err != nil {
		return nil, err
	}
	j.conclude()
	return j, v.compare(j)
}

// causeNotSent is the cause of a request that a file brought without an answer.
const causeNotSent = "not_sent"

// unreadable is the judgment of a record that nothing can be said of.
func (j *Judged) unreadable(status exchange.VerdictStatus, why string) {
	j.broken, j.Status, j.Lenient, j.Reason = true, status, status, why
}

// unasked says why an exchange is in no judgment though it asked for an answer, "" when it is in one.
func (v *revalidator) unasked(x *exchange.Exchange) string {
	switch {
	case x.Item != nil && x.Item.Warmup:
		return "it was sent before the measuring began"
	case x.Item != nil && v.superseded[attemptOf(x.Item)] > x.Item.Attempt:
		return "the engine asked for another attempt, which followed"
	case x.Cause != nil && x.Cause.Code == causeNotSent:
		return "it was never sent: " + x.Cause.Text
	}
	return ""
}

// ask collects the verdicts of the gates, and of the external ones.
func (v *revalidator) ask(j *Judged, e *gates.Evidence, x *exchange.Exchange) error {
	checks := gates.Auto(x)
	if checks != nil && v.o.Checks != nil {
		checks = v.o.Checks
	}
	for _, c := range checks {
		verdict, err := v.judgeBy(e, c, j.stored)
		if err != nil {
			return err
		}
		if len(verdict.Evidence) > len(j.Evidence) { // the exchange, and goldens that it was held against
			j.Evidence = verdict.Evidence
		}
		j.Verdicts = append(j.Verdicts, GateVerdict{verdict.Gate, verdict.Version, verdict.Status, verdict.Lenient, verdict.Reason, verdict.Detail})
	}
	for _, o := range v.o.Outside {
		if verdict, told := o.verdict(j.ID, checks != nil); told {
			j.Verdicts = append(j.Verdicts, verdict)
		}
	}
	return nil
}

// judgeBy judges an exchange by one check. What a gate needs of an engine cannot be had offline: it says not_run then.
func (v *revalidator) judgeBy(e *gates.Evidence, c exchange.Check, row *exchange.Summary) (exchange.Verdict, error) {
	if AgainstGoldens(c.Gate) {
		return v.holdAgainst(e.Last().Exchange, row, c)
	}
	verdict, _, err := gates.Judge(e, c)
	return verdict, err
}

// conclude sums the verdicts up. Without any the exchange was no request for an answer and has no status.
func (j *Judged) conclude() {
	if len(j.Verdicts) == 0 {
		return
	}
	all := make([]exchange.Verdict, len(j.Verdicts))
	for i, g := range j.Verdicts {
		all[i] = exchange.Verdict{Status: g.Status, Lenient: g.Lenient}
	}
	j.Status, j.Lenient = gates.Sum(all)
	for _, g := range j.Verdicts {
		if g.Status == j.Status && j.Status != exchange.VerdictOK {
			j.Reason = g.Gate + ": " + g.Reason
			break
		}
	}
	if o := j.Original; o != nil && failedThen(*o) {
		j.remain(fmt.Sprintf("it ended %s when it was recorded", *o))
	}
}

// failedThen reports whether an outcome is a failure. One that the client or we cut short is none.
func failedThen(o exchange.Outcome) bool {
	switch o {
	case exchange.OutcomeComplete, exchange.OutcomeClientAbort, exchange.OutcomeShutdown:
		return false
	}
	return true
}

// remain keeps an exchange failed that the rules of today would let pass.
func (j *Judged) remain(why string) {
	for _, status := range []*exchange.VerdictStatus{&j.Status, &j.Lenient} {
		if *status == exchange.VerdictOK {
			*status = exchange.VerdictFail
		}
	}
	if j.Status == exchange.VerdictFail && j.Reason == "" {
		j.remained, j.Reason = true, "the original failure remains: "+why
	}
}

// compare holds the verdicts against earlier ones: what differs is noted, and what failed then has failed.
func (v *revalidator) compare(j *Judged) error {
	if v.o.Against == nil || j.Status == "" {
		return nil
	}
	was, there := v.o.Against.exchanges[j.ID]
	if !there {
		return fmt.Errorf("revalidate exchange %s: %w: the earlier judgment does not have it", j.ID, exchange.ErrMiss)
	}
	if len(j.Evidence) > 0 && was.digest != "" && j.Evidence[0].Digest != was.digest {
		return fmt.Errorf("revalidate exchange %s: %w: the earlier judgment is one of other evidence: digest was %s, is %s",
			j.ID, exchange.ErrMiss, was.digest, j.Evidence[0].Digest)
	}
	nth := map[string]int{}
	for _, g := range j.Verdicts {
		old, judged := was.verdicts[nthGate{g.Gate, nth[g.Gate]}]
		nth[g.Gate]++
		if !judged {
			continue
		}
		if old.status != g.Status {
			j.changes = append(j.changes, VerdictChange{ID: j.ID, Seq: j.Seq, Gate: g.Gate, Was: string(old.status), WasVersion: old.version,
				Now: string(g.Status), NowVersion: g.Version})
		}
	}
	if was.status == exchange.VerdictFail {
		j.remain("an earlier judgment failed it: " + was.reason)
	}
	return nil
}

// movedMetrics are the metrics of which today's figure is another one. Metrics that the stored row does not know, being
// of older rules, count when there is a value now.
func movedMetrics(was, now exchange.Figures) map[string]MetricMoved {
	var moved map[string]MetricMoved
	for name, b := range now {
		a, known := was[name]
		if sameFigure(a, b) || !known && !b.Present() {
			continue
		}
		if moved == nil {
			moved = map[string]MetricMoved{}
		}
		a.Unit = b.Unit
		moved[name] = MetricMoved{a, b}
	}
	return moved
}

// sameFigure reports whether two figures say the same. Values may differ in the last digits, which belong to no rule.
func sameFigure(a, b exchange.Figure) bool {
	const digits = 1e-9
	return a.Basis == b.Basis && (a.Present() || a.Reason == b.Reason) &&
		(!a.Present() || math.Abs(a.Value-b.Value) <= digits*math.Max(math.Abs(a.Value), math.Abs(b.Value)))
}

// attempt names the place in a plan that several attempts carry out.
type attempt struct {
	item         string
	turn, repeat int
}

func attemptOf(it *exchange.PlanItem) attempt { return attempt{it.Item, it.Turn, it.Repeat} }
