package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The output limits of scenarios that measure one thing.
const (
	prefillTokens = 8   // of prefill_<N>: nothing but the first token matters
	probeTokens   = 4   // of loom_prefill_<N>
	essayTokens   = 300 // of loom_decode
	steadyTokens  = 512 // of steady_<N>
	callTokens    = 256 // of context_pressure_<P>
)

// The bounds of sizes in names.
const (
	mostTokens  = 4 << 20
	mostStreams = 4096
	mostFill    = 95 // percent of a window
)

// probeRepeats is how often a short prefill is measured: single ones scatter too much.
const probeRepeats = 5

const essayPrompt = "Write an essay about how harbors shaped the towns around them. Speak of trade and of the goods that came ashore, of the people who " +
	"worked on the quays, of streets and warehouses, of storms and lights, and of what changed when larger ships came. Begin with the essay itself, " +
	"write in full paragraphs, and do not sum up early."

// ErrNoWindow says that a scenario is sized by a window which nobody knows: it is to be stated.
var ErrNoWindow = errors.New("the window of a request is not known: state the context size")

// prefillScenario is a prompt of about so many tokens, which begins with a header of its own: a longer one never finds
// the beginning of a shorter one in a cache.
func prefillScenario(id, header string, tokens, limit int) Scenario {
	s := measured(id, fmt.Sprintf("the time to the first token behind about %d tokens", tokens), func(Options) []message {
		return []message{user(fmt.Sprintf("[%s target=%d]\n", header, tokens) + document(proseSeed(id), charsOf(tokens), nil) +
			"\n\nWhat is the text above about? Answer in one sentence.")}
	})
	s.Prompt, s.maxTokens, s.fixed = tokens, limit, true
	s.checks = []exchange.Check{{Gate: "usage_present"}, check("finish_reason", `{"allow":["stop","length"]}`)}
	return s
}

// decodeScenario is an essay behind about so many tokens of text, 0 for none. It uses all of its budget, or is no sample.
func decodeScenario(id, summary string, behind, limit int) Scenario {
	s := measured(id, summary, func(Options) []message {
		if behind == 0 {
			return []message{user(essayPrompt)}
		}
		return []message{user("Here is a text. It has nothing to do with what follows it.\n\n" + document(proseSeed(id), charsOf(behind), nil) +
			"\n\nLeave the text above aside. " + essayPrompt)}
	})
	s.Prompt, s.maxTokens, s.fixed, s.HalfBudget = behind, limit, true, true
	s.checks = basics(check("half_budget", `{"must":true}`))
	return s
}

// loomScenarios are those that Loom's speed is measured by. Its sizes are thousands of tokens, not of 1,024.
func loomScenarios() []Scenario {
	out := []Scenario{decodeScenario("loom_decode", "an essay of 300 tokens behind a short prompt", 0, essayTokens)}
	for _, size := range []int{1, 2} {
		s := prefillScenario(fmt.Sprintf("loom_prefill_%dk", size), "prefill", size*1000, probeTokens)
		s.Repeats = probeRepeats
		out = append(out, s)
	}
	for _, size := range []int{2, 32} {
		out = append(out, decodeScenario(fmt.Sprintf("loom_decode_%dk", size), fmt.Sprintf("an essay of 300 tokens behind about %d,000 tokens", size), size*1000, essayTokens))
	}
	for _, size := range []int{8, 16, 32} {
		out = append(out, prefillScenario(fmt.Sprintf("loom_prefill_%dk", size), "prefill", size*1000, probeTokens))
	}
	return append(out, steadyScenario("loom_steady_4", 4, essayTokens))
}

func steadyScenario(id string, streams, limit int) Scenario {
	s := decodeScenario(id, fmt.Sprintf("%d essays at once, measured while all of them are being written", streams), 0, limit)
	s.Streams = streams
	return s
}

// pressureScenario is one call of a tool, behind as much text as leaves the window full to a part of it.
func pressureScenario(id string, percent int, m Materials) (Scenario, error) {
	if m.Window <= 0 {
		return Scenario{}, fmt.Errorf("size %s: %w", id, ErrNoWindow)
	}
	const around = 256 // tokens of the question, the tools and the frame of a chat
	full := int(int64(m.Window) * int64(percent) / 100)
	fill := full - around - callTokens
	if fill < around {
		return Scenario{}, fmt.Errorf("%w: %s: %d %% of a window of %d tokens leave no room for text", exchange.ErrUsage, id, percent, m.Window)
	}
	s := functionCall()
	s.ID, s.Summary = id, fmt.Sprintf("one call of a declared tool, with %d %% of the window of %d tokens in use", percent, m.Window)
	first := s.first
	s.first = func(o Options) chat {
		c := first(o)
		text := document(proseSeed(id+" "+strconv.Itoa(m.Window)), int(float64(fill)*m.charsPerToken()), nil)
		c.Messages = []message{user("Here is a text. It has nothing to do with what follows it.\n\n" + text + "\n\nLeave the text above aside. " + oneCity)}
		return c
	}
	s.Prompt, s.maxTokens, s.fixed = full-callTokens, callTokens, true
	return s, nil
}

// sizedForms are the names that hold a size.
func sizedForms() []sizedForm {
	return []sizedForm{
		{"prefill_<N>[k]", "the time to the first token behind about N tokens (k: times 1,024)", sizedPrefill},
		{"steady_<N>", "N essays at once, measured while all of them are being written", sizedSteady},
		{"context_pressure_<P>", "one call of a declared tool, with P % of the window in use", sizedPressure},
	}
}

type sizedForm struct {
	form, summary string
	// make builds the scenario of a name of the form, from what stands for its size.
	make func(id, size string, m Materials) (Scenario, error)
}

// size is what stands in the place of the size in a name of the form.
func (f sizedForm) size(name string) (string, bool) {
	size, ok := strings.CutPrefix(name, f.form[:strings.IndexByte(f.form, '<')])
	return size, ok && size != ""
}

func sizedPrefill(id, size string, _ Materials) (Scenario, error) {
	text, thousands := strings.CutSuffix(size, "k")
	unit := 1
	if thousands {
		unit = 1 << 10
	}
	n, err := within(id, text, mostTokens/unit)
	if err != nil {
		return Scenario{}, err
	}
	return prefillScenario(id, "prefill", n*unit, prefillTokens), nil
}

func sizedSteady(id, size string, _ Materials) (Scenario, error) {
	n, err := within(id, size, mostStreams)
	if err != nil {
		return Scenario{}, err
	}
	return steadyScenario(id, n, steadyTokens), nil
}

func sizedPressure(id, size string, m Materials) (Scenario, error) {
	n, err := within(id, size, mostFill)
	if err != nil {
		return Scenario{}, err
	}
	return pressureScenario(id, n, m)
}

// within is a size from 1 to most. One name has one spelling: +8 and 008 are none.
func within(id, size string, most int) (int, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || n > most || strconv.Itoa(n) != size {
		return 0, fmt.Errorf("%w: scenario %s: its size is a number from 1 to %d", exchange.ErrUsage, id, most)
	}
	return n, nil
}
