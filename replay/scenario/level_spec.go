package scenario

import (
	"encoding/json"
	"fmt"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// specPrompts is how many of the short prompts are asked of an engine that drafts; the stronger levels ask all of the
// weakest level's.
const specPrompts = 5

// specSeed is that of the request whose tokens are drawn.
const specSeed = 7

// speculated are the requests that must be answered alike with drafts and without. They are computed whole: what comes
// from a prompt cache changes answers by itself.
func speculated(d Drafts, whole bool) ([]Scenario, []LevelGap) {
	gap := func(why string) ([]Scenario, []LevelGap) {
		return nil, []LevelGap{{FamilySpeculation, "speculative_lossless", why}}
	}
	switch {
	case d.On != nil && !*d.On:
		return gap("the engine does not draft")
	case len(d.OffFields) == 0 && d.OffVariant == "" && d.On == nil:
		return gap("it is not known whether the engine drafts, nor how it answers without drafts")
	case len(d.OffFields) == 0 && d.OffVariant == "":
		return gap("the engine drafts, and it is not known how it answers without")
	}
	params, err := json.Marshal(struct {
		Fields  json.RawMessage `json:"off_fields,omitempty"`
		Variant string          `json:"off_variant,omitempty"`
	}{d.OffFields, d.OffVariant})
	if err != nil {
		return gap("the fields that turn drafts off are no JSON object")
	}
	lossless := func(s Scenario) Scenario {
		s.Cold, s.checks = true, []exchange.Check{{Gate: "speculative_lossless", Params: params}}
		return s
	}
	n := specPrompts
	if whole {
		n = devPrompts
	}
	var out []Scenario
	for i, prompt := range shortPrompts()[:n] {
		out = append(out, lossless(compared(fmt.Sprintf("spec_%02d", i+1), "a short question, with drafts and without", func() string { return prompt })))
	}
	out = append(out, lossless(seeded()))
	if !whole {
		return out, nil
	}
	document := documentScenarios()[0]
	document.ID = "spec_document"
	thinking := compared("spec_thinking", "an answer after thinking, with drafts and without", func() string { return shortPrompts()[5] })
	thinking.Thinking = true
	return append(out, lossless(document), lossless(specTool()), lossless(thinking)), nil
}

// seeded draws its tokens by a seed.
func seeded() Scenario {
	s := compared("spec_seeded", "drawn tokens of one seed, with drafts and without", func() string { return shortPrompts()[6] })
	first := s.first
	s.first = func(o Options) chat {
		c := first(o)
		c.Temperature, c.sampling = 1, &sampling{TopP: 1, Seed: specSeed, RepeatPenalty: 1}
		return c
	}
	return s
}

// specTool asks for a tool call.
func specTool() Scenario {
	s := compared("spec_tool", "a tool call, with drafts and without", func() string { return oneCity })
	first := s.first
	s.first = func(o Options) chat {
		c := first(o)
		c.Tools, c.ToolChoice = []tool{weatherTool(weatherSchema)}, "auto"
		return c
	}
	return s
}
