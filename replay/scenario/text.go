package scenario

import (
	"encoding/json"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// longTokens is about how long the text of text_long is.
const longTokens = 1200

const (
	gearsPrompt = "Explain in one paragraph why a bicycle has several gears, and what a rider gains from the lowest and from the highest one."
	digestAsk   = "Sum up the text above in one paragraph: who appears in it, which things are moved or mended, and at what times of the day and of the year."
	cityPrompt  = `Describe an invented city as one JSON object and nothing else, without a code fence. It has exactly four keys: "name" is a text, ` +
		`"population" is an integer, "coastal" is a boolean, and "districts" is a list of three texts.`
	citySchema = `{"type":"object","properties":{"name":{"type":"string"},"population":{"type":"integer"},"coastal":{"type":"boolean"},` +
		`"districts":{"type":"array","items":{"type":"string"},"minItems":3,"maxItems":3}},"required":["name","population","coastal","districts"],` +
		`"additionalProperties":false}`
)

// basics are the checks of every scenario that is measured: it says what it used, it ended by itself or for its limit,
// and its text is no loop.
func basics(more ...exchange.Check) []exchange.Check {
	return append([]exchange.Check{{Gate: "usage_present"}, check("finish_reason", `{"allow":["stop","length"]}`), {Gate: "degenerate"}}, more...)
}

// measured is a scenario of the run matrix of one request.
func measured(id, summary string, messages func(Options) []message) Scenario {
	return Scenario{
		ID: id, Suite: SuiteMatrix, Version: 1, Summary: summary, Turns: 1, maxTokens: UnstatedTokens,
		first:  func(o Options) chat { return chat{Messages: messages(o)} },
		checks: basics(),
	}
}

func asked(id, summary, prompt string) Scenario {
	return measured(id, summary, func(Options) []message { return []message{user(prompt)} })
}

// textScenarios are those of the run matrix that ask one thing in text. Their prompts are as short as they look: what
// tells one request from the other is the nonce and the tag, not a block of text before the question.
func textScenarios() []Scenario {
	long := measured("text_long", "a summary of about 1,200 tokens of text", func(Options) []message {
		return []message{user(document(proseSeed("text_long"), charsOf(longTokens), nil) + "\n\n" + digestAsk)}
	})
	long.Prompt = longTokens
	turns := measured("multi_turn_matrix", "the fourth turn of a conversation whose earlier turns are given", func(Options) []message { return gardenTalk() })
	turns.Name = "multi_turn"
	format := formatted(asked("json_mode", "a JSON object, with response_format json_object", cityPrompt), json.RawMessage(`{"type":"json_object"}`))
	format.checks = basics(check("json_schema", `{"schema":`+citySchema+`}`))
	blocks := asked("diffusion_text", "a paragraph from an engine that makes whole blocks: not streamed, so that only its wall rate is known", gearsPrompt)
	blocks.Blocking = true
	return []Scenario{asked("text_short", "a paragraph in answer to a short question", gearsPrompt), long, turns, functionCall(), format, blocks}
}

// gardenTalk is the conversation of multi_turn. Earlier answers are part of the prompt, so that every engine is asked the
// same.
func gardenTalk() []message {
	said := func(text string) message { return message{Role: "assistant", Content: text} }
	return []message{
		{Role: "system", Content: "You help people who garden on balconies. You answer briefly and keep in mind what they told you."},
		user("My balcony faces north and gets two hours of sun a day. I have three pots."),
		said("That is enough light for herbs that like shade, such as mint, parsley and chives."),
		user("I have no room for anything that spreads. One of the pots is much smaller than the others."),
		said("Then leave out the mint. Put the chives into the small pot, and parsley and chervil into the others."),
		user("How often do they need water in July?"),
		said("Look at them every morning, and water when the upper two centimeters of the soil are dry: every second day, about."),
		user("Sum up for my neighbor, who looks after the plants while I am away, what stands in which pot, and what is to be done each morning."),
	}
}

func functionCall() Scenario {
	s := measured("function_call", "one call of a declared tool", nil)
	s.first = func(o Options) chat {
		return chat{Messages: []message{user(oneCity)}, Tools: []tool{weatherTool(weatherSchema)}, ToolChoice: "auto", Parallel: o.serial()}
	}
	s.checks = []exchange.Check{{Gate: "usage_present"}, {Gate: "finish_reason"}, {Gate: "function_call"}, {Gate: "tool_call_shape"}}
	return s
}
