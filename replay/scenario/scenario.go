package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Scenario is one built-in scenario.
type Scenario struct {
	ID       string // unique
	Name     string // in tags and reports, where another tool's name is kept; "" = ID
	Suite    string // the plan it belongs to: matrix, validation, tool-policies, tool_use
	Summary  string // one line
	Turns    int    // requests of one case
	Alone    bool   // it is planned at concurrency 1 only
	Thinking bool   // it asks for thinking, whatever the options say
	Blocking bool   // it is not streamed, whatever the options say
	Together bool   // its requests are no turns: they are sent at once, and none rests on the answer to another
	Cold     bool   // its prompts are computed whole, where the engine can be told so

	Version    int    // of what is asked; a change of the bytes is a new one. 0 = it is versioned with its suite
	Modality   string // what the model must take besides text: image, audio or video; "" = nothing
	Streams    int    // it is planned at this concurrency only; 0 = at any
	Repeats    int    // what its definition takes the median of; 0 = it states none
	Prompt     int    // tokens of the first prompt, about; 0 = a few hundred at most
	HalfBudget bool   // an answer below half of its limit is no sample: it is asked for once more, under another nonce

	Line string // digest of the line that the user states it in; "" for those of this package, whose versions tell them apart

	maxTokens int  // when the options state none
	stated    bool // maxTokens is what the user says, also where it is UnstatedTokens
	fixed     bool // the limit is part of what is measured, and that of the options does not hold
	validated bool // it carries the tag and the sampling of the validation
	first     func(Options) chat
	// next makes the body that follows the answer to a turn from the body of that turn; its messages are those to be added
	// to the ones before. nil for one turn.
	next   func(o Options, turn int, before chat, a Answer) (chat, error)
	each   func(n int) chat // the requests of one whose requests are sent together; nil for every other
	checks []exchange.Check
}

// Options are what a case of a scenario may differ in.
type Options struct {
	Nonce             string // at the very beginning of the prompt; "" = none
	Tag               string // of the case, such as agentic-c4-r0-i2; "" = none
	Model             string
	MaxTokens         int // 0 = the scenario's own
	ThinkingMaxTokens int // of scenarios that think; 0 = 2048
	Stream            bool
	Thinking          bool
	SerialTools       bool // workflows of tools say parallel_tool_calls false
	StructuredResults bool // results of tools are JSON objects, not their text
}

// Request is one request to be sent.
type Request struct {
	Turn     int // from 0
	Method   string
	Path     string
	Body     json.RawMessage
	Thinking bool // to be spelled as the engine has it; the body says nothing of it
	Cold     bool // without a prompt cache, to be spelled as the engine has it
}

// Answer is what the engine said to a request.
type Answer struct {
	Content string
	Calls   []wire.ToolCall
}

// AnswerOf is the answer of a transcript: its first choice. Calls of a dialect that has no ids are given some.
func AnswerOf(t *wire.Transcript) Answer {
	c := t.Choice0()
	a := Answer{Content: c.Text, Calls: slices.Clone(c.ToolCalls)}
	if t.Dialect == wire.DialectOllama || t.Dialect == wire.DialectGemini {
		for i := range a.Calls {
			if a.Calls[i].ID == "" {
				a.Calls[i].ID = fmt.Sprintf("call_%d", i+1)
			}
		}
	}
	return a
}

// Why there is no next request.
var (
	ErrOver    = errors.New("the conversation is over")
	ErrStopped = errors.New("the conversation cannot go on")
)

// Request is the request that follows the answers so far, the first one when there are none. Of requests that are sent
// together only the number of answers counts. The error is ErrOver behind the last turn, or behind an answer that needs no
// further one; or it wraps ErrStopped when an answer lacks what the next turn rests on; it names the turn.
func (s Scenario) Request(o Options, answers []Answer) (Request, error) {
	if len(answers) >= s.Turns {
		return Request{}, ErrOver
	}
	if s.Blocking {
		o.Stream = false
	}
	turn := len(answers)
	if s.Together {
		s.first, answers = func(Options) chat { return s.each(turn) }, nil
	}
	body := s.opening(o)
	for turn, a := range answers {
		messages := body.Messages
		next, err := s.next(o, turn, body, a)
		if errors.Is(err, ErrOver) {
			return Request{}, ErrOver
		}
		if err != nil {
			return Request{}, fmt.Errorf("%w behind turn %d/%d: %w", ErrStopped, turn+1, s.Turns, err)
		}
		body = next
		body.Messages = append(slices.Clip(messages), body.Messages...)
	}
	return Request{
		Turn: turn, Method: "POST", Path: "/v1/chat/completions", Body: body.bytes(), Thinking: s.Thinking || o.Thinking, Cold: s.Cold,
	}, nil
}

// opening is the first body, with what the options say of every scenario.
func (s Scenario) opening(o Options) chat {
	c := s.first(o)
	c.Model = o.Model
	c.MaxTokens = s.maxTokens
	switch {
	case s.fixed:
	case (s.Thinking || o.Thinking) && o.ThinkingMaxTokens > 0:
		c.MaxTokens = o.ThinkingMaxTokens
	case s.Thinking || o.Thinking:
		c.MaxTokens = 2048
	case o.MaxTokens > 0:
		c.MaxTokens = o.MaxTokens
	}
	if c.Stream = o.Stream; o.Stream {
		c.StreamOptions = map[string]any{"include_usage": true}
	}
	if s.validated {
		c.sampling = validationSampling()
	}
	prefix := ""
	if o.Nonce != "" {
		prefix = "[" + o.Nonce + "]\n"
	}
	if o.Tag != "" {
		prefix += "[" + s.tagWord() + " " + o.Tag + "]\n"
	}
	c.Messages[0].Content = prefixed(c.Messages[0].Content, prefix)
	return c
}

// tagWord is what stands before a tag.
func (s Scenario) tagWord() string {
	if s.Suite == SuiteMatrix {
		return "benchmark"
	}
	return "validation"
}

// UnstatedTokens is the output limit of a scenario that states none.
const UnstatedTokens = 128

// Limit is the output limit that the scenario states; 0 when it leaves it to the run.
func (s Scenario) Limit() int {
	if s.maxTokens == UnstatedTokens && !s.Thinking && !s.fixed && !s.stated {
		return 0
	}
	return s.MaxTokens(Options{})
}

// Fixed reports whether the limit is part of what is measured: that of a run does not hold.
func (s Scenario) Fixed() bool { return s.fixed }

// MaxTokens is the output limit of the requests under the options.
func (s Scenario) MaxTokens(o Options) int { return s.opening(o).MaxTokens }

// Case is the case that the answers to the scenario's requests are judged as.
func (s Scenario) Case(id string, o Options) exchange.Case {
	return exchange.Case{ID: id, Scenario: s.ID, ScenarioVersion: s.Version, Policy: s.policy(o), Turns: s.Turns, Checks: slices.Clone(s.checks)}
}

// policy is the word for what the options change; "" for nothing.
func (s Scenario) policy(o Options) string {
	var words []string
	if s.Turns > 1 && s.usesTools() {
		if o.SerialTools {
			words = append(words, "serial_tool_workflows")
		}
		if o.StructuredResults {
			words = append(words, "structured_tool_results")
		}
	}
	if o.Thinking && !s.Thinking {
		words = append(words, "thinking")
	}
	return strings.Join(words, "+")
}

func (s Scenario) usesTools() bool { return len(s.first(Options{}).Tools) > 0 }

// TagName is the name that stands in tags.
func (s Scenario) TagName() string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID
}

// All lists the scenarios in the order of their suites.
func All() []Scenario {
	return slices.Concat(policyScenarios(), validationScenarios(), workflowScenarios(), codeScenarios(), toolUseScenarios(), levelScenarios(),
		textScenarios(), mediaScenarios(Materials{}))
}

// Lookup finds a scenario by its id.
func Lookup(id string) (Scenario, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Scenario) bool { return s.ID == id })
	if i < 0 {
		return Scenario{}, false
	}
	return all[i], true
}

// Suite lists the scenarios of a suite, in order.
func Suite(name string) []Scenario {
	return slices.DeleteFunc(All(), func(s Scenario) bool { return s.Suite != name })
}
