package gates

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// followed is how far an answer follows one recording of the reference.
type followed struct {
	golden *exchange.Golden
	pairing
	divergence
	script   *script // of the golden
	answer   *script
	compared int    // bytes in which they are equal
	stuck    string // why they could not be compared; "" when they were
}

// follow compares an answer with one recording. Of the forms that the answer may have had, which the reply cannot tell,
// the one counts that leaves the recording at a near-tie of its own lists, else the one that follows further.
func follow(g *exchange.Golden, a *answer) followed {
	f := followed{golden: g, script: scriptOfGolden(g)}
	if a.channels.equal(channelsOfGolden(g)) && endedItself(g.Finish) == endedItself(a.finish) {
		f.none, f.answer, f.compared = true, f.script, max(len(channelText(&a.channels)), len(f.script.text()))
		return f
	}
	variants, why := scriptOfAnswer(a, g)
	if why != "" {
		f.stuck = why
		return f
	}
	if len(variants) == 0 {
		variants = []*script{{ended: endedItself(a.finish), endID: -1}}
	}
	for i, v := range variants {
		next := f
		next.answer = v
		switch {
		case textual(f.script, g) && textual(v, nil):
			next.divergence = diverge(f.script, v)
			next.compared = commonPrefix(f.script.text(), v.text())
		case f.script.ids() && v.ids():
			next.divergence = divergeByID(f.script, v)
			next.compared = next.index
		default:
			next.stuck = "one side tells ids without texts, and the other texts without ids"
		}
		if i == 0 || next.likelier(&f) {
			f = next
		}
	}
	return f
}

// tokens is how many tokens of the recording were compared: up to the divergence, or all that both have.
func (f *followed) tokens() int {
	switch {
	case len(f.golden.Tokens) == 0 || f.stuck != "":
		return 0
	case !f.none:
		return f.index
	case f.compared >= len(f.script.text()):
		return len(f.script.parts)
	}
	return tokenAt(f.script.starts(), f.compared)
}

// likelier reports whether f is the better reading of one answer than o.
func (f *followed) likelier(o *followed) bool {
	if f.stuck == "" && o.stuck == "" && !f.none && !o.none && f.listed() != o.listed() {
		return f.listed()
	}
	return f.further(o)
}

// listed reports whether the recording's own list calls the divergence a near-tie.
func (f *followed) listed() bool {
	if f.index >= len(f.golden.Tokens) {
		return false
	}
	t := &f.golden.Tokens[f.index]
	return nearTie(t.Top, t.Logprob, f.divergence.golden, f.candidate).near
}

// textual reports whether a script has its text: all of its tokens, or no tokens but text.
func textual(s *script, g *exchange.Golden) bool {
	return s.whole || g != nil && len(g.Tokens) == 0 || !slices.ContainsFunc(s.parts, func(p part) bool { return p.id >= 0 })
}

// further reports whether f follows its recording further than o does.
func (f *followed) further(o *followed) bool {
	switch {
	case (f.stuck == "") != (o.stuck == ""):
		return f.stuck == ""
	case f.none != o.none:
		return f.none
	}
	return f.compared > o.compared
}

// bestOf is the recording that the answer follows furthest, of those that are references of it at all. Which one is
// chosen has nothing to do with how the place where they part would be judged.
func bestOf(goldens []*exchange.Golden, a *answer, c *exchange.Case, p *referenceParams) (best followed, refused *RefusedError) {
	found := false
	for _, g := range goldens {
		pairing, err := pair(g, a, c, p)
		if err != nil {
			if refused == nil {
				refused = err
			}
			continue
		}
		f := follow(g, a)
		f.pairing = pairing
		if !found || f.further(&best) {
			best, found = f, true
		}
	}
	if found {
		return best, nil
	}
	return best, refused
}

// goldensOf are the recordings of the reference for one turn, in their order.
func goldensOf(c *exchange.Case, turn int) (list []*exchange.Golden) {
	for _, g := range c.Goldens {
		if g.Turn == turn {
			list = append(list, g)
		}
	}
	slices.SortStableFunc(list, func(a, b *exchange.Golden) int { return a.Alternate - b.Alternate })
	return list
}

// reply is the answer to a need; found is false while nobody has looked for it.
func (e *Evidence) reply(id string) (r *exchange.Reply, found bool) {
	for i := range e.Case.Replies {
		if e.Case.Replies[i].Need == id {
			return &e.Case.Replies[i], true
		}
	}
	return nil, false
}

// asked gathers what a judgment needs and does not have yet.
type wants struct {
	e     *Evidence
	needs exchange.Needs
	broke int // answers that came and are no evidence: broken off, refused for the time being, not whole on record
}

// reply is the whole and complete answer to a need. Without it, missing says why: "" means that it is asked for now.
func (w *wants) reply(n exchange.Need) (a *answer, missing string, ok bool) {
	r, found := w.e.reply(n.ID)
	if !found {
		if !slices.ContainsFunc(w.needs, func(o exchange.Need) bool { return o.ID == n.ID }) {
			w.needs = append(w.needs, n)
		}
		return nil, "", false
	}
	if r.Exchange == nil {
		return nil, r.Reason, false
	}
	if r.Exchange.State == exchange.StateTruncated || !r.Exchange.Response.Body.Whole() {
		w.broke++
		return nil, fmt.Sprintf("the record of the %s's answer is not whole", n.Party), false
	}
	a = replyAnswer(r.Exchange)
	switch s := r.Exchange.Response.Status; {
	case s == 0:
		w.broke++
		return nil, fmt.Sprintf("the %s did not answer: %s", n.Party, outcomeText(a)), false
	case s/100 != 2 || a.told.Outcome != exchange.OutcomeComplete:
		if s/100 != 4 || s == http.StatusTooManyRequests || s == http.StatusRequestTimeout { // other 4xx say that it cannot be had
			w.broke++
		}
		return nil, fmt.Sprintf("the %s answered with status %d, %s", n.Party, s, outcomeText(a)), false
	}
	return a, "", true
}

// outcomeText is what an answer came to, with its cause.
func outcomeText(a *answer) string { return Turn{a.x, a.told}.outcome() }

// body writes the body of a request.
func body(fields map[string]any) json.RawMessage {
	b, err := json.Marshal(fields)
	if err != nil {
		panic("gates: a request is always JSON: " + err.Error())
	}
	return b
}
