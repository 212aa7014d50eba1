package scenario

import (
	"errors"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const (
	writePrompt = "Write a Python function slugify(text) that puts the text in lower case, replaces every run of characters that are neither " +
		"letters nor digits by one hyphen, and takes hyphens off both ends. Answer with one Python code block and nothing else."
	editPrompt = "Now rename the function to slugify_title and add a second parameter max_length with the default 40: the slug is cut to that many " +
		"characters, and must not end with a hyphen. Answer with the whole function in one Python code block and nothing else."
)

// codeScenarios are the conversations about code.
func codeScenarios() []Scenario {
	return []Scenario{{
		ID: "code_edit", Suite: SuiteMatrix, Version: 1, Summary: "a function is written, and then edited as told", Turns: 2, maxTokens: 512,
		first: func(Options) chat { return chat{Messages: []message{user(writePrompt)}} },
		next: func(_ Options, _ int, before chat, a Answer) (chat, error) {
			if strings.TrimSpace(a.Content) == "" {
				return chat{}, errors.New("the answer holds no code to edit")
			}
			before.Messages = []message{{Role: "assistant", Content: a.Content}, user(editPrompt)}
			return before, nil
		},
		checks: []exchange.Check{{Gate: "code_edit"}},
	}}
}
