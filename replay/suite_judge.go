package replay

import (
	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Judgment is what all checks of a case came to.
type Judgment struct {
	Verdicts []exchange.Verdict // one for each check, in order
	Status   exchange.VerdictStatus
	Lenient  exchange.VerdictStatus // the same in the relaxed reading of the gates that have one
	Detail   string                 // of the first check that did not pass; "" when all did
}

// judge judges the case by its checks.
func (c *SuiteCase) judge() (err error) {
	if c.refused != nil {
		c.Judgment, err = c.refused.judge(c.Case)
		return err
	}
	if c.Judgment, err = judgmentOf(&c.Case); err == nil && c.Stopped != nil {
		c.Judgment.stop(c.Stopped.Error())
	}
	return err
}

// judgmentOf judges a case by its checks. It passes when no check speaks against it and one speaks for it; a check that
// does not apply does neither.
func judgmentOf(c *exchange.Case) (Judgment, error) {
	j := Judgment{Status: exchange.VerdictSkipped, Lenient: exchange.VerdictSkipped}
	e := gates.Prepare(c)
	for _, check := range c.Checks {
		v, _, err := gates.Judge(e, check) // checks of scenarios need nothing more
		if err != nil {
			return j, err
		}
		j.add(v)
	}
	return j, nil
}

// stop is the judgment of a conversation that did not go on to its last turn. What the checks say of the turns that it had
// stands behind it: the fault may lie further back.
func (j *Judgment) stop(why string) {
	if j.Status == exchange.VerdictFail && j.Detail != "" {
		why += "; " + j.Detail
	}
	j.Status, j.Lenient, j.Detail = exchange.VerdictFail, exchange.VerdictFail, why
}

// keep writes what the case came to into the case that the run keeps.
func (c *SuiteCase) keep(to *exchange.PlannedCase) {
	to.Status, to.Lenient, to.Reason, to.Judged = c.Status, c.Judgment.Lenient, c.Detail, len(c.Exchanges)
	if c.refused != nil {
		to.Lack = &c.refused.Lack
	}
	to.Verdicts = make([]exchange.CaseVerdict, len(c.Verdicts))
	for i, v := range c.Verdicts {
		to.Verdicts[i] = exchange.CaseVerdict{Gate: v.Gate, Version: v.Version, Status: v.Status, Lenient: v.Lenient}
	}
}

// add takes one more verdict into the judgment.
func (j *Judgment) add(v exchange.Verdict) {
	j.Verdicts = append(j.Verdicts, v)
	lenient := v.Lenient
	if lenient == "" {
		lenient = v.Status
	}
	j.Status, j.Lenient = together(j.Status, v.Status), together(j.Lenient, lenient)
	if j.Detail == "" && v.Status != exchange.VerdictOK && v.Status != exchange.VerdictSkipped {
		j.Detail = v.Gate + ": " + v.Reason
	}
}

// together is the status of two checks together: a failure wins, and so does what is neither passed nor skipped.
func together(a, b exchange.VerdictStatus) exchange.VerdictStatus {
	switch {
	case a == exchange.VerdictFail || b == exchange.VerdictFail:
		return exchange.VerdictFail
	case b == exchange.VerdictSkipped:
		return a
	case a == exchange.VerdictSkipped || a == exchange.VerdictOK:
		return b
	}
	return a
}
