package replay

import (
	"fmt"
	"sync"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Lacking is what an engine has said that its model lacks. It is asked for each capability once: cases that need what it
// refused in so many words are not sent, and are judged by that refusal. The zero value is of an engine that has said
// nothing. It may be used by several suites.
type Lacking struct {
	mu   sync.Mutex
	said map[string]*lackTold // by capability
}

// lackTold is an answer that refused a capability.
type lackTold struct {
	exchange.Lack
	x *exchange.Exchange
}

// learn takes an answer to the request of a case in.
func (l *Lacking) learn(c *SuiteCase, x *exchange.Exchange) {
	need := gates.Needs(c.Case.Checks)
	if need == "" {
		return
	}
	said := gates.Refuses(x, need)
	if said == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.said == nil {
		l.said = map[string]*lackTold{}
	}
	if l.said[need] == nil {
		l.said[need] = &lackTold{exchange.Lack{Capability: need, Case: c.Case.ID, Exchange: x.ID}, x}
	}
}

// of is the refusal for which a case need not be sent; nil when there is none.
func (l *Lacking) of(c *SuiteCase) *lackTold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said[gates.Needs(c.Case.Checks)]
}

// lacking judges a case that was not sent by the refusal that another one got.
func (r *lackTold) judge(of exchange.Case) (Judgment, error) {
	of.Exchanges = []*exchange.Exchange{r.x}
	j, err := judgmentOf(&of)
	for i := range j.Verdicts {
		j.Verdicts[i].Reason += r.told()
	}
	if j.Detail != "" {
		j.Detail += r.told()
	}
	return j, err
}

// told says to which case the engine said it, as the end of a reason.
func (r *lackTold) told() string {
	return fmt.Sprintf(", as it said to %s; it is asked once a run", r.Case)
}
