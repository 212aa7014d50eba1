package bench

import (
	"cmp"
	"fmt"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// lack is what an engine said that its model lacks. The cells behind it that need the same are not sent.
type lack struct {
	exchange.Lack
	why string // a sentence, with the engine's words
}

// lackKey is a capability of a model at a server.
type lackKey struct{ server, model, capability string }

// lackOf is why a wave has no answer, when all its conversations ended in a refusal, in so many words, of one capability that
// their requests asked for; nil otherwise.
func lackOf(cases []*replay.SuiteCase) (l *lack) {
	for _, c := range cases {
		if len(c.Exchanges) == 0 {
			return nil
		}
		x := c.Exchanges[len(c.Exchanges)-1]
		name, why := gates.Lacks(x)
		switch {
		case name == "" || l != nil && l.Capability != name:
			return nil
		case l == nil:
			l = &lack{exchange.Lack{Capability: name, Case: c.Case.ID, Exchange: x.ID}, why}
		}
	}
	return l
}

// lackIn is what all samples of a cell say that the model lacks; nil when one says something else. An engine that answered
// before, and then refuses, has failed.
func lackIn(samples []*sample) *lack {
	for _, s := range samples {
		if s.lack == nil {
			return nil
		}
	}
	if len(samples) == 0 {
		return nil
	}
	return samples[0].lack
}

// lackKey is where a capability of the model that is asked is known to lack. A server that is launched is its group's, with
// what that has it started with; one that runs already may be asked by several.
func (s *sitting) lackKey(capability string) lackKey {
	server := s.group.Name
	if s.group.Launch.Transport != matrix.TransportServer {
		server = cmp.Or(s.group.Launch.URL, s.group.Engine)
	}
	return lackKey{server, s.Facts().Model, capability}
}

// learn takes in what a cell that was asked says that the model lacks. What a refused warm-up was to warm is cold still.
func (r *Runner) learn(s *sitting, l *lack) {
	if l == nil {
		return
	}
	s.warm = false
	if key := s.lackKey(l.Capability); r.lacks[key] == nil {
		r.lacks[key] = l
	}
}

// withheld is the lack for which a cell need not be sent; nil when there is none.
func (r *Runner) withheld(s *sitting, a *asking) *lack {
	if len(r.lacks) == 0 {
		return nil
	}
	first, err := a.what.Request(a.options(), nil)
	if err != nil { // it is told when its requests are made
		return nil
	}
	for _, capability := range gates.Asks(first.Body) {
		if l := r.lacks[s.lackKey(capability)]; l != nil {
			return l
		}
	}
	return nil
}

// tell makes a record one of a cell that was not sent for the lack.
func (l *lack) tell(r *matrix.Record) {
	r.LackWith(l.Lack, fmt.Sprintf("%s, as it said to %s; it is asked once a model", l.why, l.Case))
}

// without is the record of a cell that was not sent for what the model lacks.
func (r *Runner) without(s *sitting, c *matrix.Cell, l *lack) error {
	rec := matrix.NewRecord(r.o.Plan, s.group, c)
	l.tell(&rec)
	about(&rec, s.Facts())
	return r.put(s.group, c, rec)
}

// withoutAgain is the record of a cell that was not sent, as the run gives it that holds the refusal.
func withoutAgain(told *matrix.Record, from *replay.RunRecord) (*matrix.Record, error) {
	x, err := from.Exchange(told.Lack.Exchange)
	if err != nil {
		return nil, err
	}
	name, why := gates.Lacks(x)
	if name != told.Lack.Capability || x.Item == nil {
		return nil, fmt.Errorf("%w: by the rules of today exchange %s does not refuse the %s that cell %s needs", exchange.ErrMiss, x.ID, told.Lack.Capability, told.Cell)
	}
	made := *told
	(&lack{exchange.Lack{Capability: name, Case: x.Item.CaseID(), Exchange: x.ID}, why}).tell(&made)
	return &made, nil
}
