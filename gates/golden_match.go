package gates

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// referenceParams say what is known of the subject and which goldens will do. Every gate that compares with goldens has
// them.
type referenceParams struct {
	Weights        string  `json:"weights,omitempty"`         // of the subject, as Golden.Weights
	UnknownWeights bool    `json:"unknown_weights,omitempty"` // compare also when the weights of a side are not known
	Build          string  `json:"build,omitempty"`           // build of the reference that is asked for; a golden of another one is stale
	MaxAge         float64 `json:"max_age_s,omitempty"`       // how old a golden may have been when the subject answered, in seconds; 0 = any age
	Concurrency    int     `json:"concurrency,omitempty"`     // of the subject, where it is not that of the case
}

// difference is a condition in which subject and golden differ. It is named in the verdict and does not refuse it.
type difference struct {
	Field   string `json:"field"`
	Golden  string `json:"golden"`
	Subject string `json:"subject"`
	Effect  string `json:"effect"`
}

// pairing is what was found when a golden was held against the request and the circumstances of an answer.
type pairing struct {
	proof       string // ids, request, count: how it is known that both read the same prompt
	differences []difference
}

// pair holds a golden against an answer of the subject: refused names the field for which it is no reference of it.
func pair(g *exchange.Golden, a *answer, c *exchange.Case, p *referenceParams) (pairing, *RefusedError) {
	if err := usable(g, a, p); err != nil {
		return pairing{}, err
	}
	asked := askedFor(a.x)
	if field, golden, subject := firstDifference(g.Sampling, asked.sampling()); field != "" {
		return pairing{}, &RefusedError{"sampling", fmt.Sprintf("%s is %s in the golden and %s in the subject", field, golden, subject)}
	}
	proof, err := samePrompt(g, a, asked)
	if err != nil {
		return pairing{}, err
	}
	return pairing{proof, differencesOf(g, a, asked, c, p)}, nil
}

// usable holds the golden as such: its form, weights, build and age.
func usable(g *exchange.Golden, a *answer, p *referenceParams) *RefusedError {
	if err := CheckGolden(g); err != nil {
		if r, ok := err.(*RefusedError); ok {
			return r
		}
		return &RefusedError{"schema", err.Error()}
	}
	age := a.x.Timeline.Wall.Sub(g.Made)
	switch {
	case (g.Weights == "" || p.Weights == "") && !p.UnknownWeights:
		return &RefusedError{"weights", "they are not known of " + unknownSide(g.Weights, p.Weights)}
	case g.Weights != "" && p.Weights != "" && g.Weights != p.Weights:
		return &RefusedError{"weights", fmt.Sprintf("the golden was made with %s and the subject with %s", g.Weights, p.Weights)}
	case p.Build != "" && g.Engine.Version != p.Build:
		return &RefusedError{"build", fmt.Sprintf("the golden is of %q and %q is asked for", g.Engine.Version, p.Build)}
	case p.MaxAge > 0 && age > time.Duration(p.MaxAge*float64(time.Second)):
		return &RefusedError{"age", fmt.Sprintf("the golden was %s old and %s is the limit", age.Round(time.Second), time.Duration(p.MaxAge*float64(time.Second)))}
	}
	return nil
}

func unknownSide(golden, subject string) string {
	switch {
	case golden == "" && subject == "":
		return "the golden and of the subject"
	case golden == "":
		return "the golden"
	}
	return "the subject"
}

// samePrompt proves that both engines read the same prompt: by its ids, else by the request and the number of tokens.
// Where the golden was asked in another way (by ids, or at another path) the number alone has to do.
func samePrompt(g *exchange.Golden, a *answer, asked *asking) (proof string, err *RefusedError) {
	mine := a.tokens.PromptIDs
	if len(g.PromptIDs) > 0 && len(mine) > 0 {
		if !slices.Equal(g.PromptIDs, mine) {
			return "", &RefusedError{"prompt", fmt.Sprintf("its ids differ at token %d", firstUnequal(g.PromptIDs, mine))}
		}
		return "ids", nil
	}
	counted, counts := promptCounts(g, a)
	if counted && counts[0] != counts[1] {
		return "", &RefusedError{"prompt", fmt.Sprintf("the golden's has %d tokens and the subject's %d", counts[0], counts[1])}
	}
	sameRequest := g.PromptDigest == asked.promptDigest()
	switch {
	case wire.DialectOf(g.Path) == wire.DialectOf(a.x.Request.Target) && !sameRequest:
		return "", &RefusedError{"prompt", "the golden answers another request"}
	case !counted:
		return "", &RefusedError{"prompt", "neither its ids nor its number of tokens are told on both sides, so that it is the same cannot be proven"}
	case sameRequest:
		return "request", nil
	}
	return "count", nil
}

// promptCounts are the tokens of the prompt by the golden and by the subject; ok is false unless both are known.
func promptCounts(g *exchange.Golden, a *answer) (ok bool, counts [2]int64) {
	switch {
	case g.PromptTokens != nil:
		counts[0] = *g.PromptTokens
	case len(g.PromptIDs) > 0:
		counts[0] = int64(len(g.PromptIDs))
	default:
		return false, counts
	}
	if a.usage == nil || a.usage.Prompt == nil {
		return false, counts
	}
	counts[1] = *a.usage.Prompt
	return true, counts
}

func firstUnequal(a, b []int64) int {
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	return i
}

// What differing conditions do, as measured on a real engine.
const (
	effectCache   = "moves log-probabilities by about 0.004 at temperature 0, which the near-tie rule allows for"
	effectShared  = "moves log-probabilities by about 0.006 at temperature 0, which the near-tie rule allows for"
	effectDraws   = "changes the text when tokens are drawn"
	effectUnknown = "what it does is not known"
)

// differencesOf are the conditions in which golden and subject differ, or may.
func differencesOf(g *exchange.Golden, a *answer, asked *asking, c *exchange.Case, p *referenceParams) []difference {
	var out []difference
	differ := func(field, golden, subject, effect string) {
		if golden != subject {
			out = append(out, difference{field, golden, subject, effect})
		}
	}
	effect := func(measured string) string {
		if asked.greedy() {
			return measured
		}
		return effectDraws
	}
	here := conditionsOf(a, asked, &Recording{})
	differ("cached_tokens", countText(g.CachedTokens), countText(here.CachedTokens), effect(effectCache))
	concurrency := c.Concurrency
	if p.Concurrency > 0 {
		concurrency = p.Concurrency
	}
	differ("concurrency", unknownZero(g.Concurrency), unknownZero(concurrency), effect(effectShared))
	if g.Drafting == nil {
		out = append(out, difference{"drafting", "unknown", "", "a golden whose engine drafted has log-probabilities that are not its own"})
	}
	if g.Variant != "" {
		out = append(out, difference{"variant", g.Variant, "", effectUnknown})
	}
	return out
}

// drawn reports whether tokens are drawn: then equal answers need equal conditions, and a near-tie means nothing.
func drawn(a *answer) bool { return !askedFor(a.x).greedy() }

func countText(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

func unknownZero(n int) string {
	if n == 0 {
		return "unknown"
	}
	return fmt.Sprint(n)
}

// conditionsText names differing conditions in one line.
func conditionsText(ds []difference) string {
	var parts []string
	for _, d := range ds {
		if d.Subject != "" {
			parts = append(parts, fmt.Sprintf("%s %s against %s", d.Field, d.Subject, d.Golden))
		}
	}
	return strings.Join(parts, ", ")
}
