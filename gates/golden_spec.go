package gates

import (
	"encoding/json"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// specParams say how the subject's drafting is switched off.
type specParams struct {
	OffFields  map[string]json.RawMessage `json:"off_fields,omitempty"`  // fields of the request, null to remove one: {"draft":false}
	OffVariant string                     `json:"off_variant,omitempty"` // launch flags
}

// Validate holds that it is said at all.
func (p *specParams) Validate() error {
	if len(p.OffFields) == 0 && p.OffVariant == "" {
		return fmt.Errorf("nothing says how to answer without drafts: give off_fields or off_variant")
	}
	return nil
}

func specGates() []Gate {
	return []Gate{{
		ID: "speculative_lossless", Version: 1, Family: "golden",
		Summary: "drafting changes no answer",
		Explain: `Every exchange of the case was answered with drafts, and its engine says so. Each is asked again of the same engine
without drafts (by request fields or another launch), and must be the same: tokens where both tell them, else
reasoning, text, calls and end. Any difference fails, also a near-tie: drafting is lossless by construction.
incomparable: nothing was drafted, or the answer without drafts was drafted too; a difference where the two took
different numbers of tokens from the cache, which changes answers by itself.`,
		Params: func() any { return &specParams{} },
		judge:  speculativeLossless,
	}}
}

// specDetail is what was found of one exchange.
type specDetail struct {
	Exchange exchange.ID `json:"exchange"`
	Drafted  *int64      `json:"drafted"`
	Accepted *int64      `json:"accepted"`
	Same     *bool       `json:"same"` // null when it could not be compared
	Where    string      `json:"where,omitempty"`
}

func speculativeLossless(e *Evidence) (Finding, exchange.Needs) {
	p, w := e.params.(*specParams), &wants{e: e}
	change := map[string]any{}
	for name, v := range p.OffFields {
		if change[name] = v; string(v) == "null" {
			change[name] = nil
		}
	}
	finding, details, speculated := ok(), []specDetail{}, false
	worse := func(f Finding) {
		if finding.Status == exchange.VerdictOK || finding.Status == exchange.VerdictIncomparable && f.Status == exchange.VerdictFail {
			finding = f
		}
	}
	for _, t := range e.Turns {
		a := answerOf(t)
		if a.told.Outcome != exchange.OutcomeComplete {
			return incomparable("exchange %s is %s", t.Exchange.ID, a.told.Outcome), nil
		}
		d := specDetail{Exchange: t.Exchange.ID}
		if tm := t.Transcript.Timings; tm != nil {
			d.Drafted, d.Accepted = tm.DraftN, tm.DraftAccepted
		}
		speculated = speculated || drafts(a)
		f, done := d.compare(w, a, change, p.OffVariant)
		if done && f.Status != exchange.VerdictOK {
			worse(f)
		}
		details = append(details, d)
	}
	if len(w.needs) > 0 {
		return Finding{}, w.needs
	}
	if !speculated && finding.Status != exchange.VerdictFail {
		finding = incomparable("not speculating: the engine drafted nothing for any of the exchanges, or does not tell")
	}
	finding.Detail = map[string]any{"exchanges": details}
	return finding, nil
}

// drafts reports whether an answer was drafted, by what the engine says in it or by its counters around it.
func drafts(a *answer) bool {
	return drafted(a.told) || a.told.Figures[measure.DraftAcceptance].Present()
}

// compare asks for an answer without drafts and holds the drafted one against it.
func (d *specDetail) compare(w *wants, a *answer, change map[string]any, variant string) (f Finding, done bool) {
	n, err := again(a.x, fmt.Sprintf("undrafted/%s", a.x.ID), "the same request without drafts", change)
	if err != nil {
		return incomparable("exchange %s: %v", a.x.ID, err), true
	}
	n.Variant = variant
	plain, missing, ok := w.reply(n)
	if !ok {
		return incomparable("exchange %s has no answer without drafts: %s", a.x.ID, missing), missing != ""
	}
	if drafts(plain) {
		return incomparable("the answer without drafts to exchange %s was drafted", a.x.ID), true
	}
	d.Where = sameAnswer(a, plain)
	same := d.Where == ""
	_, told := cachedOf(a)
	if !same && told && !samePath(a, plain) {
		return incomparable("exchange %s differs at %s, but took %s tokens from the cache where the one without drafts took %s", a.x.ID, d.Where, countText(cachedPtr(a)), countText(cachedPtr(plain))), true
	}
	if d.Same = &same; !same {
		return fail("drafting changed exchange %s at %s", a.x.ID, d.Where), true
	}
	return Finding{Status: exchange.VerdictOK}, true
}
