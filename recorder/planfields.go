package recorder

import "github.com/benchproxy/benchproxy/internal/exchange"

// origin writes what an exchange repeats, behind a flag that says whether it repeats any.
func (w *fieldWriter) origin(o *exchange.Origin) {
	if w.bool(o != nil); o != nil {
		w.str(string(o.Exchange))
		w.str(o.Key)
		w.int(int64(o.Occurrence))
	}
}

func (r *fieldReader) origin() *exchange.Origin {
	if !r.bool() {
		return nil
	}
	return &exchange.Origin{Exchange: exchange.ID(r.str()), Key: r.str(), Occurrence: int(r.int())}
}

// item writes the part of a plan that an exchange carried out, behind a flag that says whether there is a plan.
func (w *fieldWriter) item(p *exchange.PlanItem) {
	if w.bool(p != nil); p == nil {
		return
	}
	w.str(p.Item)
	w.str(p.Conversation)
	for _, n := range [...]int{p.Turn, p.Turns, p.Repeat, p.Attempt} {
		w.int(int64(n))
	}
	w.bool(p.Warmup)
}

func (r *fieldReader) item() *exchange.PlanItem {
	if !r.bool() {
		return nil
	}
	p := &exchange.PlanItem{Item: r.str(), Conversation: r.str()}
	for _, n := range [...]*int{&p.Turn, &p.Turns, &p.Repeat, &p.Attempt} {
		*n = int(r.int())
	}
	p.Warmup = r.bool()
	return p
}

// counters writes the readings of an engine's counters, behind a flag that says whether there are any.
func (w *fieldWriter) counters(c *exchange.Counters) {
	if w.bool(c != nil); c == nil {
		return
	}
	w.str(c.Source)
	for _, n := range counterFields(c) {
		if w.bool(*n != nil); *n != nil {
			w.int(**n)
		}
	}
}

func (r *fieldReader) counters() *exchange.Counters {
	if !r.bool() {
		return nil
	}
	c := &exchange.Counters{Source: r.str()}
	for _, n := range counterFields(c) {
		if r.bool() {
			v := r.int()
			*n = &v
		}
	}
	return c
}

// counterFields are the numbers of c in their order.
func counterFields(c *exchange.Counters) []**int64 {
	var out []**int64
	for _, r := range []*exchange.CounterReading{&c.Before, &c.After} {
		out = append(out, &r.Drafted, &r.Accepted, &r.Steps, &r.Generated)
	}
	return out
}
