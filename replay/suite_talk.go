package replay

import (
	"errors"
	"fmt"
	"sync"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// talk sends the turns of a case, as long as each leads to the next.
func (r *suiteRun) talk(c *SuiteCase, d *draft) error {
	if c.refused != nil {
		r.over(c)
		return nil
	}
	if c.Member.Together {
		return r.atOnce(c, d)
	}
	var answers []scenario.Answer
	for turn := 0; ; turn++ {
		x := r.ask(c, turn, d)
		c.Exchanges = append(c.Exchanges, x)
		r.o.Lacking.learn(c, x)
		if turn == c.Member.Turns-1 || r.ctx.Err() != nil {
			return nil
		}
		a := measure.Analyze(x)
		if a.Outcome != exchange.OutcomeComplete {
			c.Stopped = fmt.Errorf("turn %d/%d was not answered in full: %s", turn+1, c.Member.Turns, a.Outcome)
			return nil
		}
		answers = append(answers, scenario.AnswerOf(a.Transcript))
		next, err := r.draft(c, turn+1, answers)
		switch {
		case errors.Is(err, scenario.ErrOver): // the answer needs no further turn
			r.over(c)
			return nil
		case errors.Is(err, scenario.ErrStopped):
			c.Stopped = err
			return nil
		case err != nil:
			return err
		}
		d = next
	}
}

// over tells the tally of a case that is whole before its last planned turn.
func (r *suiteRun) over(c *SuiteCase) {
	var waves []string
	for turn := len(c.Exchanges); turn < c.Member.Turns; turn++ {
		waves = append(waves, r.waveOf(c.Member, turn))
	}
	r.tally.over(itemName{c.Case.ID, c.Member.Repeat}, len(c.Exchanges), waves)
}

// atOnce sends the requests of a case whose requests rest on no answer. All are made before the first is sent.
func (r *suiteRun) atOnce(c *SuiteCase, first *draft) (err error) {
	drafts := []*draft{first}
	for n := 1; n < c.Member.Turns; n++ {
		d, err := r.draft(c, n, make([]scenario.Answer, n))
		if err != nil {
			return err
		}
		drafts = append(drafts, d)
	}
	c.Exchanges = make([]*exchange.Exchange, len(drafts))
	var all sync.WaitGroup
	for n, d := range drafts {
		all.Go(func() { c.Exchanges[n] = r.ask(c, n, d) })
	}
	all.Wait()
	return nil
}
