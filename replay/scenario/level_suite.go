package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The families of the cases of a level, in the order in which they are sent: what needs an idle engine comes first, and
// what takes longest last.
const (
	FamilyConsistency = "consistency"
	FamilyPrompts     = "prompts"
	FamilyDocuments   = "documents"
	FamilySampling    = "sampling"
	FamilySpeculation = "speculation"
	FamilyAgent       = "agent"
	FamilyVision      = "vision"
	FamilyNeedle      = "needle"
	FamilyLimit       = "limit"
	FamilyPrefill     = "prefill"
)

// LevelCase is a case of a level of gates.
type LevelCase struct {
	Scenario
	Family string
	Long   bool // it fills the whole context, takes long, and may be put off
}

// LevelGap is something that a level asks for and that is not planned.
type LevelGap struct {
	Family string
	Gate   string // that would have judged it
	Why    string
}

// LevelOptions say what a level is planned for.
type LevelOptions struct {
	Level  string  // dev, fast, quick or full
	Window int     // tokens that a prompt and its answer may have together; 0 where it is not known
	Images []Image // beside the built-in ones
	Drafts Drafts
	// Thinking says that it is known how both engines are told to think, and not to: loops are run both ways then.
	Thinking bool
}

// Drafts say whether the engine drafts, and how it answers without.
type Drafts struct {
	On         *bool           // nil where it is not known
	OffFields  json.RawMessage // fields of a request, as an object; nil for none
	OffVariant string          // launch flags; "" for none
}

// The sizes of the levels beside those of the prompts and documents.
const (
	devImages    = 2
	levelDraws   = 200 // first tokens that are drawn
	togetherSize = 4   // requests that run together
	prefillLimit = 4   // tokens of an answer of which only the prompt matters
)

// levelNames are the levels, weakest first.
var levelNames = [...]string{"dev", "fast", "quick", "full"}

// LevelPlan lists the cases of a level, and what of it is left out and why.
func LevelPlan(o LevelOptions) (cases []LevelCase, gaps []LevelGap, err error) {
	if !slices.Contains(levelNames[:], o.Level) {
		return nil, nil, fmt.Errorf("plan level %q: %w: levels are %s", o.Level, exchange.ErrUsage, strings.Join(levelNames[:], ", "))
	}
	quick := o.Level == "quick" || o.Level == "full"
	compared := Level(o.Level, o.Window)
	of := func(family string, list ...Scenario) {
		for _, s := range list {
			s.Blocking, s.checks = true, slices.Concat(answerChecks(family), s.checks)
			cases = append(cases, LevelCase{Scenario: s, Family: family})
		}
	}
	pick := func(gate, prefix string) []Scenario {
		return slices.DeleteFunc(slices.Clone(compared), func(s Scenario) bool {
			return s.checks[0].Gate != gate || len(s.ID) < len(prefix) || s.ID[:len(prefix)] != prefix
		})
	}
	of(FamilyConsistency, together())
	if quick {
		of(FamilyConsistency, repeated())
	}
	of(FamilyPrompts, pick("near_tie", "prompt_")...)
	of(FamilyDocuments, pick("near_tie", "document_")...)
	if o.Level != "fast" {
		of(FamilySampling, sampled(quick))
		spec, gap := speculated(o.Drafts, quick)
		of(FamilySpeculation, spec...)
		gaps = append(gaps, gap...)
		of(FamilyAgent, agentLoops(o.Thinking, quick)...)
		if !o.Thinking {
			gaps = append(gaps, LevelGap{FamilyAgent, "agent_turns", "behind thinking: it is not known how the engines are told to think"})
		}
	}
	of(FamilyVision, imaged(o)...)
	if o.Level != "fast" {
		of(FamilyNeedle, pick("needle", "needle_")...)
	}
	cases, gaps = o.limits(cases, gaps)
	return cases, append(gaps, o.unfit(compared)...), nil
}

// answerChecks are the rules that look at every answer of a family alone: they cost nothing, since it is asked for anyway.
// What has no tools or images is no failure of these, so theirs are left to the gates that know.
func answerChecks(family string) []exchange.Check {
	asked := []exchange.Check{check("finish_reason", `{"allow":["stop","tool_calls","length"],"limit_used":true}`), {Gate: "usage_present"}}
	switch family {
	case FamilyAgent, FamilyVision:
		return nil
	case FamilyPrompts, FamilyDocuments:
		return append(asked, exchange.Check{Gate: "degenerate"})
	}
	return asked
}

// GateLevels are the levels, weakest first, whose plan runs a gate on an engine that has all of it: that drafts, and whose
// context is known and large enough. nil for a gate that no level runs.
func GateLevels(gate string) (levels []string) {
	drafts := true
	for _, level := range levelNames {
		cases, _, err := LevelPlan(LevelOptions{Level: level, Window: 1 << 20, Drafts: Drafts{On: &drafts, OffVariant: "off"}})
		if err == nil && slices.ContainsFunc(cases, func(c LevelCase) bool {
			return slices.ContainsFunc(c.checks, func(of exchange.Check) bool { return of.Gate == gate })
		}) {
			levels = append(levels, level)
		}
	}
	return levels
}

// limits adds what depends on the size of the context: a prompt over it, and those that fill it.
func (o LevelOptions) limits(cases []LevelCase, gaps []LevelGap) ([]LevelCase, []LevelGap) {
	if o.Window == 0 {
		gaps = append(gaps, LevelGap{FamilyLimit, "over_limit", "the size of the context is not known"})
		if o.Level == "quick" || o.Level == "full" {
			gaps = append(gaps, LevelGap{FamilyNeedle, "needle", "half the context is not known"})
		}
		if o.Level == "full" {
			gaps = append(gaps, LevelGap{FamilyNeedle, "needle", "the full context is not known"}, LevelGap{FamilyPrefill, "usage_present", "the full context is not known"})
		}
		return cases, gaps
	}
	for i := range cases {
		cases[i].Long = cases[i].Family == FamilyNeedle && o.Level == "full" && cases[i].ID == fullNeedle(o.Window).ID
	}
	long := func(s Scenario, family string, put bool) {
		s.Blocking = true
		cases = append(cases, LevelCase{Scenario: s, Family: family, Long: put})
	}
	if o.Level != "fast" {
		long(overLimit(o.Window), FamilyLimit, false)
	}
	if o.Level == "full" {
		long(prefill(filling(o.Window)), FamilyPrefill, true)
	}
	return cases, gaps
}

// unfit are the documents and needles that the context does not hold.
func (o LevelOptions) unfit(planned []Scenario) (gaps []LevelGap) {
	for _, s := range Level(o.Level, 0) {
		if slices.ContainsFunc(planned, func(p Scenario) bool { return p.ID == s.ID }) {
			continue
		}
		family := FamilyDocuments
		if s.checks[0].Gate == "needle" {
			if family = FamilyNeedle; o.Level == "fast" {
				continue
			}
		}
		gaps = append(gaps, LevelGap{family, s.checks[0].Gate, fmt.Sprintf("%s does not fit into a context of %d tokens", s.ID, o.Window)})
	}
	return gaps
}

// together are requests that run at once. The gate asks each of them again alone.
func together() Scenario {
	prompts := shortPrompts()[devPrompts : devPrompts+togetherSize]
	each := func(n int) chat {
		return chat{Messages: []message{user(prompts[n])}, Logprobs: true, TopLogprobs: levelTop}
	}
	return Scenario{
		ID: "together", Suite: SuiteLevels, Summary: "requests that run together, each compared with its answer alone", Turns: togetherSize, Together: true,
		maxTokens: levelTokens, each: each, first: func(Options) chat { return each(0) }, checks: []exchange.Check{{Gate: "consistency"}},
	}
}

// repeated is a request that is sent again and again: alone, without the prompt cache and with it, and with neighbors.
func repeated() Scenario {
	s := compared("repeated", "one request again and again: alone, from the cache and with neighbors", func() string {
		return "Describe the way from a seed to a tree in four sentences."
	})
	s.Cold, s.checks = true, []exchange.Check{check("determinism", `{"reps":5,"pairs":2,"concurrency":4}`)}
	return s
}

// sampled is a request whose sampling is tried out. Each is computed whole, so that all take one path.
func sampled(draws bool) Scenario {
	params, id := `{"seeds":5,"seed_runs":4,"draws":0,"tolerance_tv":0.01,"false_positive":0.001}`, "sampling"
	if draws {
		params, id = fmt.Sprintf(`{"seeds":5,"seed_runs":4,"draws":%d,"tolerance_tv":0.01,"false_positive":0.001}`, levelDraws), "sampling_draws"
	}
	s := compared(id, "temperature 0, top_k 1, seeds and draws", func() string {
		return "Write the first sentence of a story about a traveler who finds a door in the desert."
	})
	s.Cold, s.checks = true, []exchange.Check{check("sampling", params)}
	return s
}

// fullNeedle is the needle of the full-context probe.
func fullNeedle(window int) Scenario { return Needle(filling(window), 0.75) }

// overLimit asks for more than the context holds, by any vocabulary.
func overLimit(window int) Scenario {
	s := compared("over_limit", "a prompt over the limit", func() string {
		return document(proseSeed("over_limit"), charsOf(window+window/2), nil) + "\n\nSum it up."
	})
	s.checks = []exchange.Check{{Gate: "over_limit"}}
	return s
}

// prefill is a prompt that fills the context for the most part, whose answer does not matter.
func prefill(tokens int) Scenario {
	s := compared(fmt.Sprintf("prefill_%d", tokens), "a prompt that fills the context, read once", func() string {
		return document(proseSeed("prefill_full"), charsOf(tokens), nil) + "\n\nContinue."
	})
	s.maxTokens, s.Cold = prefillLimit, true
	s.checks = []exchange.Check{{Gate: "usage_present"}, check("finish_reason", `{"allow":["stop","length"]}`)}
	return s
}
