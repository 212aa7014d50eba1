package gates

import (
	"math"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The numbers of the near-tie rules. Log-probabilities are natural logarithms of the raw distribution.
const (
	maxGap       = 1.0  // nats by which the reference may prefer its own token
	topPlaces    = 5    // places of the list in which the candidate's token must stand
	unsure       = 0.5  // below this probability of its first choice, the reference's second choice is as good
	maxNoise     = 0.5  // bound on what the reference's own views may add to maxGap
	sameLogprob  = 1e-9 // two values that differ by less are one: sums of decimals are not exact
	zeroLogprobs = 2    // so many log-probabilities of exactly 0 behind the first say that none was measured
)

// tieRule names what settled a near-tie.
type tieRule string

// The words of the rules.
const (
	ruleMatch         tieRule = "match"
	ruleGap           tieRule = "gap"
	ruleSecond        tieRule = "second_choice"
	ruleTooLarge      tieRule = "gap_too_large"
	ruleNotListed     tieRule = "not_listed"
	ruleMinGap        tieRule = "min_gap_within_bar"
	ruleViewPrefers   tieRule = "view_prefers_candidate"
	ruleNoList        tieRule = "no_list" // the reference gave no list that surely is of this place
	ruleVariantAgrees tieRule = "documented_near_tie"
)

// spelled is a token as it is compared: by id when both sides know theirs, else by its bytes.
type spelled struct {
	id   int64 // -1 when not known
	text string
	end  bool // the token that ends an answer, whatever its id and spelling
}

// is reports whether an entry of a list is the token.
func (t spelled) is(p *exchange.TokenProb) bool {
	switch {
	case t.id >= 0 && p.ID >= 0:
		return t.id == p.ID
	case t.end:
		return isEndSpelling(p.Spelling())
	}
	return t.text == p.Spelling()
}

func (t spelled) same(o spelled) bool {
	switch {
	case t.id >= 0 && o.id >= 0:
		return t.id == o.id
	case t.end || o.end:
		return t.end == o.end
	}
	return t.text == o.text
}

// endSpellings are how vocabularies spell the token that ends an answer. An engine that hides control tokens spells it "".
var endSpellings = []string{"", "</s>", "<eos>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|end|>", "<|return|>", "<end_of_turn>", "<turn|>", "[EOS]"}

func isEndSpelling(s string) bool { return slices.Contains(endSpellings, s) }

// logprobIn is the log-probability of a token in a list, and how many entries are better than it.
func logprobIn(list []exchange.TokenProb, t spelled) (logprob float64, better int, found bool) {
	i := slices.IndexFunc(list, func(p exchange.TokenProb) bool { return t.is(&p) })
	if i < 0 {
		return 0, 0, false
	}
	for k := range list {
		if list[k].Logprob > list[i].Logprob+sameLogprob {
			better++
		}
	}
	return list[i].Logprob, better, true
}

// tie is what a near-tie rule says of one place.
type tie struct {
	near bool
	rule tieRule
	gap  *float64 // nats by which the reference prefers its own token; nil when the list does not tell
}

// nearTie is the basic rule, from the reference's own list alone: the gap is at most maxGap and the candidate's token is
// among the first topPlaces, or it is the best of the others where the reference's first choice has a probability below
// unsure. The second has no bound on the gap. Entries of one log-probability share their place, so a tie at the top is
// no divergence, and neither is the order of equal ones.
func nearTie(list []exchange.TokenProb, own *float64, golden, candidate spelled) tie {
	if golden.same(candidate) {
		zero := 0.0
		return tie{near: true, rule: ruleMatch, gap: &zero}
	}
	if len(list) == 0 {
		return tie{rule: ruleNoList}
	}
	c, better, listed := logprobIn(list, candidate)
	if !listed {
		return tie{rule: ruleNotListed}
	}
	g, ownBetter, found := logprobIn(list, golden)
	if !found && own != nil { // sampled from below the list
		g, ownBetter, found = *own, len(list), true
	}
	if !found {
		return tie{rule: ruleNotListed}
	}
	gap := g - c
	switch {
	case gap <= maxGap+sameLogprob && better < topPlaces:
		return tie{near: true, rule: ruleGap, gap: &gap}
	case ownBetter == 0 && isSecond(list, golden, c) && math.Exp(g) < unsure-sameLogprob:
		return tie{near: true, rule: ruleSecond, gap: &gap}
	}
	return tie{rule: ruleTooLarge, gap: &gap}
}

// isSecond reports whether nothing but the reference's own token is better than log-probability c.
func isSecond(list []exchange.TokenProb, golden spelled, c float64) bool {
	return !slices.ContainsFunc(list, func(p exchange.TokenProb) bool { return p.Logprob > c+sameLogprob && !golden.is(&p) })
}

// viewTie is what the second rule says: it adds what the reference says of the place under other numerics of its own.
type viewTie struct {
	tie
	gaps   []float64 // of the golden first, then of the views, where both tokens are listed
	noise  float64   // how far these lie apart, at most maxNoise
	minGap *float64
	bar    float64
}

// nearTieAt is the second rule: the smallest gap is within maxGap and the noise of the reference, or a view lists the
// candidate's token and not the golden's. A view without the candidate's token never widens the bar.
func nearTieAt(list []exchange.TokenProb, own *float64, golden, candidate spelled, views [][]exchange.TokenProb) viewTie {
	v := viewTie{bar: maxGap}
	prefers := false
	for i, view := range append([][]exchange.TokenProb{list}, views...) {
		c, _, listed := logprobIn(view, candidate)
		g, _, found := logprobIn(view, golden)
		if !found && i == 0 && own != nil {
			g, found = *own, true
		}
		switch {
		case listed && found:
			v.gaps = append(v.gaps, g-c)
		case listed && i > 0:
			prefers = true
		}
	}
	if len(v.gaps) > 0 {
		low, high := slices.Min(v.gaps), slices.Max(v.gaps)
		v.minGap, v.noise = &low, min(high-low, maxNoise)
		v.bar = maxGap + v.noise
		v.gap = &low
	}
	switch {
	case v.minGap != nil && *v.minGap <= v.bar+sameLogprob:
		v.near, v.rule = true, ruleMinGap
	case prefers:
		v.near, v.rule = true, ruleViewPrefers
	case v.minGap != nil:
		v.rule = ruleTooLarge
	default:
		v.rule = ruleNotListed
	}
	return v
}

// tieReport sums up the places of several prompts.
type tieReport struct {
	Verdict     string   `json:"verdict"` // PASS or FAIL
	Prompts     int      `json:"prompts"`
	FullMatches int      `json:"full_matches"`
	MaxGap      *float64 `json:"max_gap"` // of the divergences, in nats; null when there was none with a known gap
}

// add counts one prompt: a full match, or a divergence and what the rule said of it.
func (r *tieReport) add(full bool, t tie) {
	r.Prompts++
	if full {
		r.FullMatches++
	} else if t.gap != nil && (r.MaxGap == nil || *t.gap > *r.MaxGap) {
		gap := *t.gap
		r.MaxGap = &gap
	}
	if r.Verdict == "" {
		r.Verdict = "PASS"
	}
	if !full && !t.near {
		r.Verdict = "FAIL"
	}
}
