package gates

import (
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// determinismParams say how often the request is sent.
type determinismParams struct {
	Reps        int `json:"reps"`        // alone, without the cache where the engine can be told so
	Pairs       int `json:"pairs"`       // once without the cache and once with it
	Concurrency int `json:"concurrency"` // that many at once; 0 = not at all
}

// Validate holds that something is sent, and not without bound.
func (p *determinismParams) Validate() error {
	for _, n := range []int{p.Reps, p.Pairs, p.Concurrency} {
		if n < 0 || n > 200 {
			return fmt.Errorf("reps, pairs and concurrency are from 0 to 200")
		}
	}
	if p.Reps < 2 {
		return fmt.Errorf("reps %d: one answer is not compared with anything", p.Reps)
	}
	return nil
}

func determinismGates() []Gate {
	return []Gate{{
		ID: "determinism", Version: 2, Family: "golden",
		Summary: "where the answers of an engine to one request differ from each other, and why",
		Explain: `The request of the case is sent again: alone several times (reps), as pairs of one without the prompt cache and one
with it (pairs), and several at once (concurrency). Two different answers alone on one path (cached tokens) are a
race. A difference between without and with cache is a flip by the cache, one between alone and at once one of
neighbors: each must be a near-tie of the engine's own list. A wave of which no two ran together, by their stamps,
says nothing and makes it incomparable, and so does any of the answers that is missing. fail: a race, or a difference
that is no near-tie.`,
		Params: func() any { return &determinismParams{Reps: 5, Pairs: 2, Concurrency: 4} },
		judge:  determinism,
	}}
}

// probe is one way of sending the request, and the answers to it.
type probe struct {
	Name     string   `json:"probe"`
	Answers  int      `json:"answers"`
	Cached   []*int64 `json:"cached"`
	Distinct int      `json:"distinct"` // different answers
	Why      string   `json:"why,omitempty"`

	answers []*answer
}

func determinism(e *Evidence) (Finding, exchange.Needs) {
	p, w := e.params.(*determinismParams), &wants{e: e}
	a := answerOf(e.Last())
	switch {
	case a.told.Outcome != exchange.OutcomeComplete:
		return incomparable("exchange %s is %s", a.x.ID, a.told.Outcome), nil
	case drawn(a) && askedFor(a.x).whole("seed") == nil:
		return incomparable("tokens are drawn without a seed"), nil
	}
	cold, warm := map[string]any(nil), map[string]any(nil)
	if cacheControl(a) {
		cold, warm = map[string]any{"cache_prompt": false}, map[string]any{"cache_prompt": true}
	}
	probes := []*probe{{Name: "alone"}, {Name: "cache"}, {Name: "together"}}
	for i := range p.Reps {
		probes[0].ask(w, a, fmt.Sprintf("reps/%d", i+1), cold, exchange.Need{})
	}
	for i := range p.Pairs {
		probes[1].ask(w, a, fmt.Sprintf("pairs/%d/cold", i+1), cold, exchange.Need{Group: "pairs"})
		probes[1].ask(w, a, fmt.Sprintf("pairs/%d/warm", i+1), warm, exchange.Need{Group: "pairs"})
	}
	for i := range p.Concurrency {
		probes[2].ask(w, a, fmt.Sprintf("together/%d", i+1), nil, exchange.Need{Wave: "together"})
	}
	if len(w.needs) > 0 {
		return Finding{}, w.needs
	}
	finding := determinismFinding(probes, p)
	finding.Detail = map[string]any{"probes": probes}
	return finding, nil
}

// cacheControl reports whether the engine of an answer is llama.cpp, where a request can do without the cache.
func cacheControl(a *answer) bool {
	return a.x.Identity.Engine == "llamacpp" || wire.DialectOf(a.x.Request.Target) == wire.DialectLlamaCpp
}

// ask sends the request once more, placed as like is.
func (p *probe) ask(w *wants, a *answer, id string, change map[string]any, like exchange.Need) {
	n, err := again(a.x, "determinism/"+id, "the same request again: "+p.Name, change)
	if err != nil {
		p.Why = err.Error()
		return
	}
	n.Group, n.Wave = like.Group, like.Wave
	r, missing, ok := w.reply(n)
	if !ok {
		p.Why = missing
		return
	}
	p.answers = append(p.answers, r)
	p.Answers++
	p.Cached = append(p.Cached, cachedPtr(r))
	p.Distinct = distinct(p.answers)
}

func distinct(answers []*answer) (n int) {
	for i, a := range answers {
		fresh := true
		for _, b := range answers[:i] {
			fresh = fresh && sameAnswer(a, b) != ""
		}
		if fresh {
			n++
		}
	}
	return n
}

func determinismFinding(probes []*probe, p *determinismParams) Finding {
	alone, cache, together := probes[0], probes[1], probes[2]
	if len(alone.answers) < 2 {
		return incomparable("the request alone has %d answers: %s", len(alone.answers), alone.Why)
	}
	for _, p := range []*probe{alone, cache} {
		if f, found := race(p); found {
			return f
		}
	}
	x := alone.answers[0]
	for _, other := range append(append([]*answer{}, alone.answers...), cache.answers...) {
		if f, bad := apart(x, other, "the prompt cache"); bad {
			return f
		}
	}
	var xs []*exchange.Exchange
	for _, a := range together.answers {
		xs = append(xs, a.x)
	}
	if p.Concurrency > 0 && together.Why == "" && mostTogether(xs) < 2 {
		return incomparable("no two of the requests that were to run together did")
	}
	for _, other := range together.answers {
		if f, bad := apart(x, other, "neighbors"); bad {
			return f
		}
	}
	for _, p := range probes { // what was not answered was not found alike
		if p.Why != "" {
			return incomparable("%s: an answer is missing: %s", p.Name, p.Why)
		}
	}
	return ok()
}

// race finds two different answers on one path.
func race(p *probe) (f Finding, found bool) {
	for i, a := range p.answers {
		for _, b := range p.answers[:i] {
			if where := sameAnswer(a, b); where != "" && samePath(a, b) {
				return fail("a race: alone, with %s tokens cached, two answers part at %s", countText(cachedPtr(a)), where), true
			}
		}
	}
	return f, false
}

// apart judges a difference that has a cause other than a race.
func apart(x, other *answer, cause string) (f Finding, bad bool) {
	where := sameAnswer(x, other)
	if where == "" {
		return f, false
	}
	switch t, known := selfTie(x, other); {
	case drawn(x):
		return incomparable("by %s, an answer parts at %s: drawn tokens are not the same there even with a seed", cause, where), true
	case !known:
		return incomparable("by %s, an answer parts at %s, and the engine lists no log-probabilities there", cause, where), true
	case !t.near:
		return fail("by %s, an answer parts at %s, gap %s: no near-tie", cause, where, gapText(t.gap)), true
	}
	return f, false
}
