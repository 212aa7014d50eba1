package scenario

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/canon"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The output limits of the validation.
const (
	validationTokens = 256
	decodeTokens     = 512
)

const (
	shortPrompt   = "What is 17 plus 25? Answer with the number alone, without any other word or sign."
	shortZhPrompt = "中国的首都是哪座城市？只回答城市的名称，用汉字书写，不要加标点，也不要加别的字。"
	jsonPrompt    = `Answer with one JSON object and nothing else, without a code fence. It has exactly three keys: "name" is the text Mars, ` +
		`"moons" is the integer 2, and "habitable" is the boolean false.`
	unicodePrompt = `Answer with one JSON object and nothing else, without a code fence. It has exactly three keys: "city" is the text Zürich, ` +
		`"greeting" is the text 你好，世界, and "symbols" is a list of the two texts ☀ and 🚲.`
	decodePrompt = "Explain to a programmer how a hash table works. Speak of the array of buckets, of the hash function that turns a key into " +
		"an index, of what is stored of keys and values, of collisions and at least two ways to deal with them, of the load factor, and of " +
		"growing the table. Begin with the explanation itself, write at least twelve full paragraphs, and do not sum up early."
	codePrompt   = "Keep this code in mind: juniper-5938. I will ask for it later. For now answer with exactly OK and nothing else."
	codeQuestion = "Which code did I give you? Answer with the code alone."
	marsValue    = `{"name":"Mars","moons":2,"habitable":false}`
	unicodeValue = `{"city":"Zürich","greeting":"你好，世界","symbols":["☀","🚲"]}`
)

// validationScenarios are those of the validation that call no tools.
func validationScenarios() []Scenario {
	mars := check("json", `{"value":`+marsValue+`,"duplicates":"last"}`)
	return []Scenario{
		validated("short", "a sum, answered exactly", shortPrompt, check("exact", `{"text":"42"}`)),
		validated("short_zh", "a question in Chinese, answered exactly", shortZhPrompt, check("exact", `{"text":"北京"}`)),
		sustained("decode", "a long explanation that uses all of its budget", 0),
		sustained("decode_8k", "the same behind about 8,000 tokens of text", 8<<10),
		formatted(validated("json", "a JSON object, stated in words", jsonPrompt, mars), json.RawMessage(`{"type":"json_object"}`)),
		formatted(validated("json_schema", "a JSON object, stated by a schema", jsonPrompt, mars), json.RawMessage(marsSchema)),
		formatted(validated("json_unicode", "a JSON object with text of several scripts", unicodePrompt, check("json_unicode", `{"value":`+unicodeValue+`}`)),
			json.RawMessage(`{"type":"json_object"}`)),
		longContext("long_8k", 8<<10),
		longContext("long_32k", 32<<10),
		longContext("long_64k", 64<<10),
		multiTurn(),
	}
}

const marsSchema = `{"type":"json_schema","json_schema":{"name":"planet","strict":true,"schema":{"type":"object","properties":` +
	`{"name":{"type":"string"},"moons":{"type":"integer"},"habitable":{"type":"boolean"}},"required":["name","moons","habitable"],` +
	`"additionalProperties":false}}}`

func check(gate, params string) exchange.Check {
	return exchange.Check{Gate: gate, Params: json.RawMessage(params)}
}

// validated is a question of the validation whose answer passes one gate, besides saying what it used and why it ended.
func validated(id, summary, prompt string, content exchange.Check) Scenario {
	return Scenario{
		ID: id, Suite: SuiteValidation, Summary: summary, Turns: 1, maxTokens: validationTokens, validated: true,
		first:  func(Options) chat { return chat{Messages: []message{user(prompt)}} },
		checks: []exchange.Check{{Gate: "usage_present"}, {Gate: "finish_reason"}, content},
	}
}

// formatted asks for a form of the answer.
func formatted(s Scenario, format json.RawMessage) Scenario {
	first := s.first
	s.first = func(o Options) chat {
		c := first(o)
		c.ResponseFormat = format
		return c
	}
	return s
}

// sustained is a long answer, behind prose of about so many tokens. It may end for its limit.
func sustained(id, summary string, behind int) Scenario {
	s := validated(id, summary, decodePrompt, exchange.Check{Gate: "sustained_decode"})
	s.maxTokens = decodeTokens
	s.checks[1].Params = json.RawMessage(`{"allow":["stop","length"]}`)
	if behind > 0 {
		s.first = func(Options) chat {
			return chat{Messages: []message{user("Here is a text. It has nothing to do with what follows it.\n\n" +
				document(proseSeed(id), charsOf(behind), nil) + "\n\nLeave the text above aside. " + decodePrompt)}}
		}
	}
	return s
}

// hiddenCode is a code that a long document hides.
type hiddenCode struct {
	Label string  `json:"label"`
	Code  string  `json:"code"`
	Depth float64 `json:"depth"`
}

func hiddenCodes() []hiddenCode {
	return []hiddenCode{{"ALPHA", "silver-4821", 0.1}, {"BETA", "amber-7392", 0.5}, {"GAMMA", "violet-1605", 0.9}}
}

// longContext hides three codes in a document of about so many tokens.
func longContext(id string, tokens int) Scenario {
	codes := hiddenCodes()
	params, err := json.Marshal(map[string]any{"codes": codes})
	if err != nil {
		panic("scenario: codes are always JSON")
	}
	s := validated(id, fmt.Sprintf("three codes, hidden in about %d,000 tokens", tokens>>10), "", check("long_context_recall", string(params)))
	s.first = func(Options) chat { return chat{Messages: []message{user(haystack(id, tokens, codes))}} }
	return s
}

// haystack is a document that hides codes, and the question for them. seed tells documents apart.
func haystack(seed string, tokens int, codes []hiddenCode) string {
	var hidden []needle
	var labels []string
	for _, c := range codes {
		hidden = append(hidden, needle{c.Depth, "Remember this: the code of " + c.Label + " is " + c.Code + "."})
		labels = append(labels, c.Label)
	}
	what := "the code of " + labels[0]
	if len(labels) > 1 {
		what = "the codes of " + strings.Join(labels[:len(labels)-1], ", ") + " and " + labels[len(labels)-1]
	}
	return "Read the following text. It states " + what + " once; you will be asked for it.\n\n" +
		document(proseSeed(seed), charsOf(tokens), hidden) +
		"\n\nWhat does the text say about " + what + "? Answer with one line for each, its name, a blank and its code, and nothing else."
}

// proseSeed is a seed made of a name.
func proseSeed(name string) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// multiTurn gives a code in the first turn and asks for it in the second. The answer between them is the engine's own.
func multiTurn() Scenario {
	s := validated("multi_turn", "a code from an earlier turn", codePrompt, check("exact", `{"text":"juniper-5938"}`))
	s.Turns = 2
	s.next = func(_ Options, _ int, before chat, a Answer) (chat, error) {
		if got := strings.TrimSpace(a.Content); got != "OK" {
			return chat{}, fmt.Errorf("the answer is %s, OK is expected", excerpt(got))
		}
		before.Messages = []message{{Role: "assistant", Content: a.Content}, user(codeQuestion)}
		return before, nil
	}
	return s
}

// excerpt is the beginning of an answer, quoted.
func excerpt(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// Digest is the hex SHA-256 that tells which question a case of the validation asks, whatever model and engine it is asked:
// that of the first messages, the limit, tools, form, sampling, thinking and streaming, and of the policies that change
// them. Tools in other languages come to the same one for the same fields (see canon.Digest).
func (s Scenario) Digest(o Options) (string, error) {
	if s.Blocking {
		o.Stream = false
	}
	c := s.opening(o)
	doc := map[string]any{
		"messages": c.Messages, "max_tokens": c.MaxTokens, "tools": c.Tools, "response_format": c.ResponseFormat,
		"sampling": Sampling(), "thinking": s.Thinking || o.Thinking, "stream": o.Stream,
	}
	if len(c.more) > 0 {
		doc["more"] = c.more
	}
	if o.StructuredResults {
		doc["structured_tool_results"] = true
	}
	if o.SerialTools && s.Turns > 1 && len(c.Tools) > 0 {
		doc["serial_tool_workflows"] = true
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("write question of %s: %w", s.ID, err)
	}
	digest, err := canon.Digest(b)
	return strings.TrimPrefix(digest, exchange.DigestPrefix), err
}

// SamplingFields is the sampling of the validation as reports state it.
type SamplingFields struct {
	Temperature      int `json:"temperature"`
	TopP             int `json:"top_p"`
	TopK             int `json:"top_k"`
	Seed             int `json:"seed"`
	RepeatPenalty    int `json:"repeat_penalty"`
	PresencePenalty  int `json:"presence_penalty"`
	FrequencyPenalty int `json:"frequency_penalty"`
}

// Sampling is that of every request of the validation suites.
func Sampling() SamplingFields {
	s := validationSampling()
	return SamplingFields{0, s.TopP, s.TopK, s.Seed, s.RepeatPenalty, s.PresencePenalty, s.FrequencyPenalty}
}

// PolicyFixtures are the tools that the suite of tool policies declares and the result that it gives, as JSON.
func PolicyFixtures() json.RawMessage {
	b, err := json.Marshal(map[string]any{
		"tools": []tool{weatherTool(weatherSchema), clockTool()}, "invalid_schema": json.RawMessage(patternSchema),
		"results": map[string]json.RawMessage{"get_weather": json.RawMessage(weatherResult)},
	})
	if err != nil {
		panic("scenario: fixtures are always JSON")
	}
	return b
}
