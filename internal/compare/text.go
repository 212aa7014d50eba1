package compare

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// Bounds of the work on texts.
const (
	longText    = 20_000         // characters from which difflib_ratio is not made: its time grows with the square
	ratioBudget = 10_000_000_000 // product of both lengths, over all pairs: some 20 s
	before      = 40             // characters of context before a divergence
	after       = 60             // and behind it
)

// Agreement is how far the answers of two runs are the same.
type Agreement struct {
	Identical   stat.Share              `json:"identical"`        // pairs with equal reasoning, text, refusal and tool calls
	Prefix      Measure                 `json:"prefix_agreement"` // common start / longer answer, over all channels, in characters
	Difflib     Measure                 `json:"difflib_ratio"`    // Python's SequenceMatcher ratio of the white-space-joined texts, autojunk on
	Grades      map[string]int          `json:"difflib_grades"`   // high agreement, moderate, low, diverged -> pairs
	Skipped     int                     `json:"difflib_skipped"`  // pairs that differ and have no difflib_ratio: no text, too long, or too many
	Cut         int                     `json:"cut"`              // pairs where one answer is the start of the other and was cut at its output limit: no divergence
	Unstable    [2]int                  `json:"unstable"`         // pairs whose own takes differ from each other, in the reference and in the candidate
	NotCompared map[exchange.Reason]int `json:"not_compared,omitempty"`
	Divergences []Divergence            `json:"divergences"` // the least agreement first, at most 200
	Diverged    int                     `json:"diverged"`    // how many there are
}

// Measure is a measure of agreement over pairs, from 0 to 1. Without pairs all but N are null.
type Measure struct {
	N        int            `json:"n"`
	Mean     *float64       `json:"mean"`
	Min      *float64       `json:"min"`
	Max      *float64       `json:"max"`
	Interval *stat.Interval `json:"interval"` // of the mean, by bootstrap; null for few pairs
}

// Divergence is the first place at which two answers part.
type Divergence struct {
	Reference exchange.ID `json:"reference_id"`
	Candidate exchange.ID `json:"candidate_id"`
	Seq       [2]uint64   `json:"seq"`     // of the two exchanges in their runs
	Channel   string      `json:"channel"` // reasoning, text, refusal or tool_calls
	Kind      string      `json:"kind"`    // differs, or ends: one answer stops where the other goes on
	Offset    int         `json:"offset"`  // characters of the channel that are the same
	Shared    string      `json:"shared"`  // the last of them
	Texts     [2]string   `json:"texts"`   // how reference and candidate go on
	Prefix    float64     `json:"prefix_agreement"`
	Difflib   *float64    `json:"difflib_ratio"`
}

// Kinds of a divergence.
const (
	KindDiffers = "differs"
	KindEnds    = "ends"
)

// Texts loads the answer of a recorded exchange.
type Texts func(ctx context.Context, id exchange.ID) (Answer, error)

// Grade is the word that TensorSharp's report gives to a difflib ratio: high agreement, moderate, low or diverged.
func Grade(ratio float64) string { return grade(ratio) }

// grade is the word that TensorSharp's report gives to a difflib ratio.
func grade(ratio float64) string {
	switch {
	case ratio >= 0.90:
		return "high agreement"
	case ratio >= 0.75:
		return "moderate"
	case ratio >= 0.50:
		return "low"
	}
	return "diverged"
}

// agreement compares the answers of all pairs in which both sides ended complete.
func (c *comparison) agreement(ctx context.Context, texts Texts) (*Agreement, error) {
	a := &Agreement{Grades: map[string]int{}, NotCompared: map[exchange.Reason]int{}, Divergences: []Divergence{}}
	var prefixes, ratios []float64
	identical, compared, spent := 0, 0, int64(0)
	for i := range c.pairing.pairs {
		p := &c.pairing.pairs[i]
		a.countUnstable(p)
		ref, cand := p.both()
		if !ref.complete() || !cand.complete() {
			a.NotCompared[ReasonFailed]++
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		compared++
		if same(p) {
			identical++
			prefixes, ratios = append(prefixes, 1), append(ratios, 1)
			a.Grades[grade(1)]++
			continue
		}
		one, err := loadBoth(ctx, texts, ref.Row.ID, cand.Row.ID)
		if err != nil {
			return nil, err
		}
		d, diverges := diverge(one[0], one[1])
		prefixes = append(prefixes, d.Prefix)
		var cost int64
		if d.Difflib, cost = textRatio(one[1], one[0], ratioBudget-spent); d.Difflib != nil {
			ratios = append(ratios, *d.Difflib)
			a.Grades[grade(*d.Difflib)]++
		} else {
			a.Skipped++
		}
		spent += cost
		if !diverges {
			a.Cut++
			continue
		}
		d.Reference, d.Candidate, d.Seq = ref.Row.ID, cand.Row.ID, [2]uint64{ref.Row.Seq, cand.Row.Seq}
		a.Divergences = append(a.Divergences, d)
		a.Diverged++
	}
	a.Identical = stat.ShareOf(identical, compared)
	a.Prefix, a.Difflib = measureOf(prefixes), measureOf(ratios)
	slices.SortStableFunc(a.Divergences, func(x, y Divergence) int { return compareFloat(x.Prefix, y.Prefix) })
	a.Divergences = a.Divergences[:min(len(a.Divergences), listed)]
	return a, nil
}

func compareFloat(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// countUnstable counts pairs whose own takes were not answered alike.
func (a *Agreement) countUnstable(p *pair) {
	for side, takes := range [2][]*Entry{p.reference, p.candidate} {
		first := firstComplete(takes)
		if slices.ContainsFunc(takes, func(e *Entry) bool { return e.complete() && first.complete() && e.Answer != first.Answer }) {
			a.Unstable[side]++
		}
	}
}

// same reports whether any complete take of one side was answered like one of the other.
func same(p *pair) bool {
	return slices.ContainsFunc(p.reference, func(r *Entry) bool {
		return r.complete() && slices.ContainsFunc(p.candidate, func(c *Entry) bool { return c.complete() && c.Answer == r.Answer })
	})
}

func loadBoth(ctx context.Context, texts Texts, reference, candidate exchange.ID) (out [2]Answer, err error) {
	for i, id := range []exchange.ID{reference, candidate} {
		if out[i], err = texts(ctx, id); err != nil {
			return out, err
		}
	}
	return out, nil
}

// textRatio is the difflib ratio of what was answered, the reasoning where there is no text; nil where a side has neither,
// is too long, or both together cost more than budget. cost is what it took of it.
func textRatio(test, reference Answer, budget int64) (ratio *float64, cost int64) {
	var texts [2]string
	cost = 1
	for i, a := range []Answer{test, reference} {
		if texts[i] = joinSpace(a.Text); texts[i] == "" {
			texts[i] = joinSpace(a.Reasoning)
		}
		n := utf8.RuneCountInString(texts[i])
		if n == 0 || n > longText {
			return nil, 0
		}
		cost *= int64(n)
	}
	if cost > budget {
		return nil, 0
	}
	r := Ratio(texts[0], texts[1])
	return &r, cost
}

// channel is one kind of generated content of both answers.
type channel struct {
	name  string
	texts [2]string
}

func channels(a, b Answer) []channel {
	return []channel{
		{"reasoning", [2]string{a.Reasoning, b.Reasoning}}, {"text", [2]string{a.Text, b.Text}}, {"refusal", [2]string{a.Refusal, b.Refusal}},
		{"tool_calls", [2]string{strings.Join(callTexts(a.Calls), "\n"), strings.Join(callTexts(b.Calls), "\n")}},
	}
}

// Diverge finds where two answers part first; diverges is false when they do not, as far as both go.
func Diverge(reference, candidate Answer) (d Divergence, diverges bool) {
	return diverge(reference, candidate)
}

// diverge finds where two answers part first, and how large a share of the longer one is before it. Where an answer that
// was cut at its output limit is the start of the other, nothing diverges as far as it goes.
func diverge(reference, candidate Answer) (d Divergence, diverges bool) {
	common, longer := 0, 0
	var totals [2]int
	for _, ch := range channels(reference, candidate) {
		a, b := []rune(ch.texts[0]), []rune(ch.texts[1])
		totals[0], totals[1] = totals[0]+len(a), totals[1]+len(b)
		if d.Kind != "" {
			continue
		}
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		common += n
		if n == len(a) && n == len(b) {
			continue
		}
		d = Divergence{Channel: ch.name, Kind: KindDiffers, Offset: n, Shared: string(a[max(n-before, 0):n]),
			Texts: [2]string{string(a[n:min(n+after, len(a))]), string(b[n:min(n+after, len(b))])}}
		if n == len(a) || n == len(b) {
			d.Kind = KindEnds
		}
	}
	longer = max(totals[0], totals[1])
	d.Prefix = 1
	if longer > 0 {
		d.Prefix = float64(common) / float64(longer)
	}
	if d.Kind == KindEnds && (common == totals[0] && cutAtLimit(reference) || common == totals[1] && cutAtLimit(candidate)) {
		d.Prefix = 1
		return d, false
	}
	return d, d.Kind != ""
}

// cutAtLimit reports whether an answer ended because its output limit was reached, in the words of any dialect.
func cutAtLimit(a Answer) bool {
	return slices.Contains([]string{"length", "max_tokens", "MAX_TOKENS", "limit", "max_output_tokens"}, a.Finish)
}

func measureOf(values []float64) Measure {
	m := Measure{N: len(values)}
	if m.N == 0 {
		return m
	}
	sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, v := range values {
		sum, least, most = sum+v, min(least, v), max(most, v)
	}
	mean := sum / float64(m.N)
	m.Mean, m.Min, m.Max = &mean, &least, &most
	if iv, ok := stat.BootstrapMean(values); ok {
		m.Interval = &iv
	}
	return m
}
