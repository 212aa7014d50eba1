package gates

import (
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// nearParams are the parameters of near_tie and of the gates that judge by it.
type nearParams struct {
	referenceParams
	NoViews  bool     `json:"no_views,omitempty"`      // judge by the golden's own lists alone
	Rerecord int      `json:"re_recordings,omitempty"` // how many more recordings of the reference a failure may ask for
	Variants []string `json:"variants,omitempty"`      // launch flags of the reference under which a failure may be asked about
}

// Validate refuses what cannot be meant.
func (p *nearParams) Validate() error {
	if p.Rerecord < 0 || p.Rerecord > maxRecordings {
		return fmt.Errorf("re_recordings %d is not from 0 to %d", p.Rerecord, maxRecordings)
	}
	return nil
}

// maxRecordings bounds how often a failure is given another chance.
const maxRecordings = 5

func (p *nearParams) options() *tieOptions {
	return &tieOptions{reference: &p.referenceParams, views: !p.NoViews, rerecord: p.Rerecord, variants: p.Variants}
}

// nearDetail is the detail of a near-tie verdict.
type nearDetail struct {
	tieReport
	Turns []tieDetail `json:"turns"`
}

const tieExplain = `An answer at temperature 0 is compared with the reference's recording of the same prompt, as text: the same text in
other tokens is no divergence, and neither is an answer that ends at its token limit where the other goes on. Only
the first divergence counts. An answer without any text, where the golden has some, fails. It is a near-tie when the
reference's log-probability of its own token is at most 1.0 nat above that of the subject's token and that stands
among its five most likely; or when it is the reference's second choice where its first has a probability below 0.5.
Equal log-probabilities share their place.`

const viewsExplain = `
A divergence that this rejects is judged again: the reference re-scores the place, its prompt and its own tokens
before it, in one cold batch and in batches of 8 (the slot's cache grows by 8 tokens a request; a prompt of more
than 2048 tokens needs a launch with -ub 8). The noise is how far the gaps lie apart, at most 0.5. It passes when
the smallest gap is at most 1.0 + noise, or when a view lists the subject's token and not the reference's. A view
that cannot be had is left out and named.`

const refusedExplain = `
incomparable: no golden of the turn; one of the two ends at its limit before half of the other was compared; a golden
that is stale or of something else (weights, build, age, sampling, prompt, schema), by the name of the field; drawn
tokens; no list that surely is of the place. The conditions in
which both differ (cache, concurrency) are named in the detail.`

func nearTieGates() []Gate {
	return []Gate{{
		ID: "near_tie", Version: 2, Family: "golden",
		Summary: "every answer follows the reference, up to near-ties of its own",
		Explain: tieExplain + viewsExplain + `
With re_recordings a failure asks for more recordings of the reference first; with variants for its first choice
under other launch flags: where that changes, or the gap is then within 1.0, the divergence is documented as the
reference's own noise. Otherwise it is not proven noise and fails. Of alternates the one that the answer follows
furthest counts, whether or not it is the easier one.` + refusedExplain,
		Params: func() any { return &nearParams{} },
		judge:  nearTies,
	}, {
		ID: "text_divergence", Version: 2, Family: "golden",
		Summary: "every answer has the text of the reference",
		Explain: `The text of every turn is that of the golden, in whatever tokens, up to where either ended at its limit. fail: it
parts, and the detail says where. Drawn tokens are compared only when seed, cached tokens, concurrency and build are
known to be the same.` + refusedExplain,
		Params: func() any { return &referenceParams{} },
		judge:  textDivergence,
	}}
}

// Rules of the golden gates, one function each.

func nearTies(e *Evidence) (Finding, exchange.Needs) {
	p, w := e.params.(*nearParams), &wants{e: e}
	detail := nearDetail{}
	for i := range e.Turns {
		d := judgeTie(w, i, answerOf(e.Turns[i]), goldensOf(e.Case, i), p.options())
		detail.add(d.FullMatch, d.tie)
		detail.Turns = append(detail.Turns, d)
	}
	if len(w.needs) > 0 {
		return Finding{}, w.needs
	}
	return tieFinding(detail), nil
}

// tieFinding is what the turns come to: one that fails is enough, and then one that cannot be compared.
func tieFinding(detail nearDetail) Finding {
	finding := ok()
	for _, d := range detail.Turns {
		switch exchange.VerdictStatus(d.Status) {
		case exchange.VerdictFail:
			if finding.Status != exchange.VerdictFail {
				finding = fail("%s", d.Why)
			}
		case exchange.VerdictIncomparable:
			if finding.Status == exchange.VerdictOK {
				finding = incomparable("turn %d: %s", d.Turn, d.Why)
			}
		}
	}
	finding.Detail = detail
	return finding
}

func textDivergence(e *Evidence) (Finding, exchange.Needs) {
	p := e.params.(*referenceParams)
	detail := nearDetail{}
	for i := range e.Turns {
		d := textTurn(e, i, p)
		detail.add(d.FullMatch, d.tie)
		detail.Turns = append(detail.Turns, d)
	}
	return tieFinding(detail), nil
}

func textTurn(e *Evidence, turn int, p *referenceParams) tieDetail {
	a := answerOf(e.Turns[turn])
	j := &tieJudge{a: a, d: tieDetail{Turn: turn + 1}}
	f, refused := bestOf(goldensOf(e.Case, turn), a, e.Case, p)
	switch {
	case refused != nil:
		return j.settle(exchange.VerdictIncomparable, "the golden is refused for its "+refused.Error())
	case f.golden == nil:
		return j.settle(exchange.VerdictIncomparable, "there is no golden of it")
	}
	j.take(f)
	apart := ""
	if drawn(a) {
		apart = unequalDraws(&f, a)
	}
	switch {
	case f.none && f.stuck == "" && f.compared > 0, f.stuck != "":
		d, _ := j.whole()
		return d
	case apart != "":
		return j.settle(exchange.VerdictIncomparable, "tokens are drawn, and "+apart)
	case f.none:
		d, _ := j.whole()
		return d
	}
	return j.settle(exchange.VerdictFail, fmt.Sprintf("turn %d parts from golden %s at token %d (byte %d): %s where it has %s", turn+1, f.golden.ID, f.index, f.offset, j.d.Token, j.d.GoldenToken))
}

// unequalDraws says why two drawn answers need not be equal; "" when they must be.
func unequalDraws(f *followed, a *answer) string {
	g := f.golden
	switch {
	case g.Seed == nil:
		return "no seed was named"
	case g.Engine.Engine == "" || g.Engine.Engine != a.x.Identity.Engine || g.Engine.Version != a.x.Identity.Version:
		return fmt.Sprintf("the engines differ or are not known: %s %s and %s %s", g.Engine.Engine, g.Engine.Version, a.x.Identity.Engine, a.x.Identity.Version)
	case len(f.differences) > 0 && conditionsText(f.differences) != "":
		return "the conditions differ: " + conditionsText(f.differences)
	case g.CachedTokens == nil || g.Concurrency == 0:
		return "cache or concurrency are not known"
	}
	return ""
}
