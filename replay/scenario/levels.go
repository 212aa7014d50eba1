package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// SuiteLevels are the requests whose answers are held against a reference, token by token. They ask for log-probabilities,
// so that a recording of the reference can tell a near-tie from a fault.
const SuiteLevels = "levels"

// levelTokens is the output limit of a request that is compared: what parts, parts early.
const levelTokens = 64

// levelTop is how many of the most likely tokens are asked for at each place.
const levelTop = 5

// devPrompts is how many of the short prompts the weakest level asks.
const devPrompts = 12

// shortPrompts are of many kinds, so that many parts of a vocabulary are used: facts, lists, code, sums, other languages,
// forms, and text that goes on.
func shortPrompts() []string {
	return []string{
		"Name the four seasons in order and say in one sentence each what the weather is like.",
		"Write a Go function that reverses a slice of integers in place.",
		"Why does ice float on water?",
		"Traduce al español: The train leaves at seven and arrives before noon.",
		"Give a recipe for a tomato soup in five numbered steps.",
		"What is 128 divided by 16, and how do you check the result?",
		"Continue the story: The lighthouse had been dark for three nights when the boat appeared.",
		"List six animals that live in rivers, one a line.",
		"Explain to a child what a volcano is.",
		"Write a SQL query that counts the orders of each customer in the year 2023.",
		"用三句话介绍长城。",
		"Rewrite in a polite form: Send me the report now.",
		"What do the terms latency and throughput mean, and how do they differ?",
		"Schreibe ein kurzes Gedicht über den Herbst.",
		"Give a JSON object with the keys title and pages for an invented book.",
		"Which is heavier, a kilogram of feathers or a kilogram of iron? Explain.",
		"Write a regular expression that matches a date like 2024-07-31, and explain its parts.",
		"Summarize the water cycle in two sentences.",
		"Compare a bicycle with a car for a trip of three kilometers, in a table of three rows.",
		"日本の四季について一文で説明してください。",
	}
}

// documentSizes are the lengths of the documents, in thousands of tokens.
func documentSizes() []int { return []int{1, 2, 4, 8, 16, 32} }

// devDocuments is how many of the documents the weakest level asks about.
const devDocuments = 2

// compared is a question whose answer is held against a recording of the reference.
func compared(id, summary string, prompt func() string) Scenario {
	return Scenario{
		ID: id, Suite: SuiteLevels, Summary: summary, Turns: 1, maxTokens: levelTokens,
		first: func(Options) chat {
			return chat{Messages: []message{user(prompt())}, Logprobs: true, TopLogprobs: levelTop}
		},
		checks: []exchange.Check{{Gate: "near_tie"}},
	}
}

func promptScenarios() []Scenario {
	var out []Scenario
	for i, prompt := range shortPrompts() {
		out = append(out, compared(fmt.Sprintf("prompt_%02d", i+1), "a short question, compared token by token", func() string { return prompt }))
	}
	return out
}

// documentScenarios ask about documents; two kinds of question take turns.
func documentScenarios() []Scenario {
	questions := []string{
		"Which persons does the text above speak of in its first paragraph? List them.",
		"Continue the text above with two more sentences in its style.",
	}
	var out []Scenario
	for i, size := range documentSizes() {
		id, question := fmt.Sprintf("document_%dk", size), questions[i%len(questions)]
		out = append(out, compared(id, fmt.Sprintf("a question about a text of about %d,000 tokens, compared token by token", size), func() string {
			return document(proseSeed(id), charsOf(size<<10), nil) + "\n\n" + question
		}))
	}
	return out
}

// Needle hides one code at a part of a document of about so many tokens, and asks for it. The answer passes when it holds
// the code, or where a reference does no better. depth is from 0 to 1.
func Needle(tokens int, depth float64) Scenario {
	code := hiddenCode{Label: "the cellar door", Code: "marble-2750", Depth: depth}
	params, err := json.Marshal(map[string]any{"expect": []string{code.Code}})
	if err != nil {
		panic("scenario: a code is always JSON")
	}
	id := fmt.Sprintf("needle_%d_%.0f", tokens, 100*depth)
	s := compared(id, fmt.Sprintf("a code, hidden at %.0f %% of about %d tokens", 100*depth, tokens),
		func() string { return haystack(id, tokens, []hiddenCode{code}) })
	s.checks = []exchange.Check{{Gate: "needle", Params: params}}
	return s
}

// devNeedle is the size of the needle document of the weakest level.
const devNeedle = 16 << 10

// levelScenarios are those of all levels.
func levelScenarios() []Scenario {
	return slices.Concat(promptScenarios(), documentScenarios(), []Scenario{Needle(devNeedle, 0.5)})
}

// Level lists what a level of gates (dev, fast, quick or full) compares with a reference. window is the number of tokens
// that a prompt and its answer may have together, 0 where it is not known: what does not fit is left out, and stronger
// levels hide needles at shares of it, too.
func Level(level string, window int) []Scenario {
	prompts, documents := promptScenarios(), documentScenarios()
	sizes := documentSizes()
	fits := func(tokens int) bool { return window == 0 || tokens <= filling(window) }
	if level == "dev" {
		prompts, documents, sizes = prompts[:devPrompts], documents[:devDocuments], sizes[:devDocuments]
	}
	var out []Scenario
	out = append(out, prompts...)
	for i, d := range documents {
		if fits(sizes[i] << 10) {
			out = append(out, d)
		}
	}
	if fits(devNeedle) {
		out = append(out, Needle(devNeedle, 0.5))
	}
	if half := min(window/2, mostHalf); half > 0 && half != devNeedle && (level == "quick" || level == "full") {
		out = append(out, Needle(half, 0.25))
	}
	if level == "full" && filling(window) > 0 {
		out = append(out, fullNeedle(window))
	}
	return out
}

// mostHalf bounds the needle at half of the context, in tokens.
const mostHalf = 60 << 10

// filling is the largest prompt that surely fits into a context with its answer, by our estimate of its tokens, which may be
// short of the real number by a fifth.
func filling(window int) int { return (window - levelTokens) * 5 / 6 }
