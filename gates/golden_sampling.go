package gates

import (
	"fmt"
	"math"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// samplingParams say how much is drawn.
type samplingParams struct {
	referenceParams
	Seeds     int     `json:"seeds"`          // different seeds of which not all may answer alike
	SeedRuns  int     `json:"seed_runs"`      // how often one seed is sent before two runs share a path
	Draws     int     `json:"draws"`          // first tokens that are drawn; 0 = none
	Tolerance float64 `json:"tolerance_tv"`   // total variation that the numerics of two engines may cause
	FalseFail float64 `json:"false_positive"` // probability with which draws from the very distribution fail
}

// Validate refuses what cannot be meant.
func (p *samplingParams) Validate() error {
	switch {
	case p.Seeds < 0 || p.Seeds > 100 || p.SeedRuns < 2 || p.SeedRuns > 20 || p.Draws < 0 || p.Draws > 10_000:
		return fmt.Errorf("seeds are from 0 to 100, seed_runs from 2 to 20, draws from 0 to 10000")
	case p.FalseFail < minFalseFail || p.FalseFail > 0.5:
		return fmt.Errorf("false_positive %v is not from %v to 0.5", p.FalseFail, minFalseFail)
	case p.Tolerance < 0 || p.Tolerance > 0.5:
		return fmt.Errorf("tolerance_tv %v is not from 0 to 0.5", p.Tolerance)
	}
	return nil
}

func samplingGates() []Gate {
	return []Gate{{
		ID: "sampling", Version: 1, Family: "golden",
		Summary: "temperature 0, top_k 1, seeds and draws do what they say",
		Explain: `The exchange of the case was answered at temperature 0. top_k 1 must give the same answer (or leave it at a near-tie
of the engine's own list); a seed must reproduce its answer on one path (cached tokens), since cache and neighbors
change drawn text on every engine measured; not all seeds may answer alike, unless the engine's own probabilities
leave them no choice. With draws, as many first tokens are drawn at temperature 1 with the whole vocabulary open,
and held against the first list of the golden, or of the exchange itself where the case has no golden. Everything
outside that list is one more outcome.
Noise model: independent draws from the listed distribution. The bar is the (1 - false_positive) quantile of the total
variation between that distribution and 20,000 simulated samples of the same size from it, plus tolerance_tv for the
numerics of another engine. A sampler that is right so fails about once in 1000, as set. For 200 draws and two equally
likely tokens the bar is 0.115 + 0.01; a shift of 0.17 is seen more than eight times in ten, one below 0.1 seldom.
incomparable: no two answers of one seed share a path; no list of the first token; draws the engine refused.`,
		Params: func() any {
			return &samplingParams{Seeds: 5, SeedRuns: 4, Tolerance: 0.01, FalseFail: 0.001}
		},
		judge: sampling,
	}}
}

// samplingDetail is what was found.
type samplingDetail struct {
	TopK1     string   `json:"top_k_1"` // same, near_tie, or where it parts
	Seed      string   `json:"seed"`    // reproduces, or where its answers part
	Seeds     int      `json:"seeds"`
	Distinct  int      `json:"distinct_answers"` // of different seeds
	Draws     int      `json:"draws"`
	Distance  *float64 `json:"total_variation"` // of the draws from the list; null when none were made
	Bar       *float64 `json:"bar"`
	Listed    float64  `json:"listed_probability,omitempty"` // of the tokens of the list together
	FalseFail float64  `json:"false_positive"`
}

// baseSeed is where the seeds of the gate begin; those of draws lie above those of answers.
const (
	baseSeed = 1_000
	drawSeed = 100_000
)

// openSampling draws from the whole distribution of the model.
func openSampling(a *answer, seed int) map[string]any {
	change := map[string]any{"temperature": 1, "seed": seed, "top_p": 1, "top_k": nil}
	if cacheControl(a) {
		change["top_k"], change["min_p"], change["typical_p"] = 0, 0, 1
	}
	return change
}

func sampling(e *Evidence) (Finding, exchange.Needs) {
	p, w := e.params.(*samplingParams), &wants{e: e}
	a := answerOf(e.Last())
	switch {
	case a.told.Outcome != exchange.OutcomeComplete:
		return incomparable("exchange %s is %s", a.x.ID, a.told.Outcome), nil
	case drawn(a):
		return incomparable("the exchange was not answered at temperature 0"), nil
	}
	d := &samplingDetail{Seeds: p.Seeds, Draws: p.Draws, FalseFail: p.FalseFail}
	var findings []Finding
	for _, part := range []func(*wants, *answer, *samplingParams) Finding{d.topK, d.seedReproduces, d.seedsVary, d.draws} {
		findings = append(findings, part(w, a, p))
	}
	if len(w.needs) > 0 {
		return Finding{}, w.needs
	}
	finding := ok()
	for _, want := range []exchange.VerdictStatus{exchange.VerdictFail, exchange.VerdictIncomparable} {
		for _, f := range findings {
			if finding.Status == exchange.VerdictOK && f.Status == want {
				finding = f
			}
		}
	}
	finding.Detail = d
	return finding, nil
}

// ask sends the subject's request with changes.
func (d *samplingDetail) ask(w *wants, a *answer, id string, change map[string]any) (r *answer, why string) {
	n, err := again(a.x, "sampling/"+id, "the same request with other sampling", change)
	if err != nil {
		return nil, err.Error()
	}
	r, missing, ok := w.reply(n)
	if !ok {
		return nil, missing
	}
	return r, ""
}

func (d *samplingDetail) topK(w *wants, a *answer, _ *samplingParams) Finding {
	r, why := d.ask(w, a, "top_k_1", map[string]any{"temperature": 1, "top_k": 1, "seed": baseSeed})
	if r == nil {
		return incomparable("there is no answer with top_k 1: %s", why)
	}
	d.TopK1 = "same"
	where := sameAnswer(a, r)
	if where == "" {
		return ok()
	}
	d.TopK1 = where
	switch t, known := selfTie(a, r); {
	case known && t.near && !samePath(a, r):
		d.TopK1 = "near_tie"
		return ok()
	case !samePath(a, r) && !known:
		return incomparable("top_k 1 parts from temperature 0 at %s, on another path and without log-probabilities", where)
	}
	return fail("top_k 1 parts from temperature 0 at %s", where)
}

func (d *samplingDetail) seedReproduces(w *wants, a *answer, p *samplingParams) Finding {
	var runs []*answer
	for i := range p.SeedRuns {
		r, why := d.ask(w, a, fmt.Sprintf("seed/%d", i+1), openSampling(a, baseSeed))
		if r == nil {
			if why == "" && i < 2 { // two are needed at least, and the first of them is often cold
				continue
			}
			return incomparable("a seed has %d answers: %s", len(runs), why)
		}
		runs = append(runs, r)
		x, y := pairOnPath(runs)
		if x == nil {
			continue
		}
		if where := sameAnswer(x, y); where != "" {
			d.Seed = where
			return fail("seed %d gives two answers on one path (%s tokens cached), which part at %s", baseSeed, countText(cachedPtr(x)), where)
		}
		d.Seed = "reproduces"
		return ok()
	}
	d.Seed = "unknown"
	return incomparable("no two answers of one seed took as much from the cache")
}

func (d *samplingDetail) seedsVary(w *wants, a *answer, p *samplingParams) Finding {
	if p.Seeds < 2 {
		return ok()
	}
	var answers []*answer
	for i := range p.Seeds {
		r, why := d.ask(w, a, fmt.Sprintf("seeds/%d", i+1), openSampling(a, baseSeed+i+1))
		if r == nil && why != "" {
			return incomparable("there is no answer with seed %d: %s", baseSeed+i+1, why)
		}
		if r != nil {
			answers = append(answers, r)
		}
	}
	d.Distinct = distinct(answers)
	switch sure, known := certainty(a); {
	case d.Distinct != 1:
		return ok()
	case known && sure >= 0.5:
		return incomparable("all seeds answer alike, and the model leaves them little choice: the answer has probability %.2f", sure)
	}
	return fail("%d seeds all give one answer", p.Seeds)
}

// certainty is the probability of the whole answer by the engine's own lists.
func certainty(a *answer) (p float64, known bool) {
	sum := 0.0
	for i := range a.tokens.Generated {
		lp := a.tokens.Generated[i].Logprob
		if lp == nil {
			return 0, false
		}
		sum += *lp
	}
	return math.Exp(sum), len(a.tokens.Generated) > 0
}

// limitNames are the fields that bound an answer.
var limitNames = []string{"n_predict", "max_completion_tokens", "max_tokens", "max_output_tokens"}

// oneToken is a change that asks for one token, by the name that the request used.
func oneToken(a *answer, seed int) map[string]any {
	change := openSampling(a, seed)
	raw := rawFields(a.x)
	for _, name := range limitNames {
		if _, found := raw[name]; found {
			change[name] = 1
			return change
		}
	}
	change["max_tokens"] = 1
	return change
}

func (d *samplingDetail) draws(w *wants, a *answer, p *samplingParams) Finding {
	if p.Draws == 0 {
		return ok()
	}
	list, refused := firstList(w.e, a, p)
	if len(list) == 0 {
		return incomparable("there is no list of the first token to hold draws against: %s", refused)
	}
	counts, got := make([]int, len(list)+1), 0
	for i := range p.Draws {
		r, why := d.ask(w, a, fmt.Sprintf("draws/%d", i+1), oneToken(a, drawSeed+i))
		if r == nil && why != "" {
			return incomparable("draw %d has no answer: %s", i+1, why)
		}
		if r != nil {
			counts[outcomeOf(r, list)]++
			got++
		}
	}
	if got < p.Draws {
		return Finding{}
	}
	probs := make([]float64, len(list)+1)
	for i := range list {
		probs[i] = math.Exp(list[i].Logprob)
		d.Listed += probs[i]
	}
	probs[len(list)] = max(0, 1-d.Listed)
	distance := totalVariation(counts, probs)
	bar := noiseBar(probs, p.Draws, p.FalseFail) + p.Tolerance
	d.Distance, d.Bar = &distance, &bar
	if distance > bar {
		return fail("%d draws of the first token lie %.3f (total variation) from the listed probabilities, the bar of their noise is %.3f", p.Draws, distance, bar)
	}
	return ok()
}

// firstList is the list of the first token: of the golden where the case has one, else of the exchange.
func firstList(e *Evidence, a *answer, p *samplingParams) (list []exchange.TokenProb, why string) {
	goldens := goldensOf(e.Case, len(e.Turns)-1)
	if len(goldens) > 0 {
		f, refused := bestOf(goldens, a, e.Case, &p.referenceParams)
		switch {
		case refused != nil:
			return nil, "the golden is refused for its " + refused.Error()
		case len(f.golden.Tokens) == 0 || len(f.golden.Tokens[0].Top) == 0:
			return nil, "the golden has none"
		}
		return f.golden.Tokens[0].Top, ""
	}
	g := &exchange.Golden{}
	if takeTokens(g, a.tokens); len(g.Tokens) == 0 || len(g.Tokens[0].Top) == 0 {
		return nil, "the case has no golden, and the exchange lists none"
	}
	return g.Tokens[0].Top, ""
}

// outcomeOf is the place of a drawn token in the list, or the one behind it.
func outcomeOf(r *answer, list []exchange.TokenProb) int {
	t := spelled{id: -1, text: r.reasoning + r.text}
	if len(r.tokens.Generated) > 0 {
		t.id = r.tokens.Generated[0].ID
		if r.tokens.Generated[0].Spelled {
			t.text = r.tokens.Generated[0].Text
		}
	}
	t.end = t.text == "" && endedItself(r.finish)
	for i := range list {
		if t.is(&list[i]) {
			return i
		}
	}
	return len(list)
}
