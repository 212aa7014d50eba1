package gates

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/benchproxy/benchproxy/internal/wire"
)

// decodeParams are the parameters of sustained_decode.
type decodeParams struct {
	Budget   *int64     `json:"budget"`    // tokens to be generated; null = the output limit of the request
	MinChars int        `json:"min_chars"` // the content must be longer; 0 = 300
	Coverage [][]string `json:"coverage"`  // one word of each list must be there; none = an explanation of hash tables
}

// Validate wants a budget that can be met.
func (p *decodeParams) Validate() error {
	switch {
	case p.Budget != nil && *p.Budget <= 0:
		return fmt.Errorf("budget %d is not a number from 1", *p.Budget)
	case p.MinChars < 0:
		return fmt.Errorf("min_chars %d is below 0", p.MinChars)
	case slices.ContainsFunc(p.Coverage, func(words []string) bool { return len(words) == 0 || slices.Contains(words, "") }):
		return errors.New("coverage has a list without words, or an empty word")
	}
	return nil
}

// minDecodeChars is how long the text of a sustained decode must be at least: what is shorter is not the explanation
// that was asked for, whatever the engine counts.
const minDecodeChars = 300

// hashTable is what an explanation of hash tables speaks of.
var hashTable = [][]string{
	{"hash"}, {"key"}, {"value"}, {"array", "bucket", "slot"}, {"collision", "collide"},
	{"hash function", "load factor", "linked list", "chaining", "probing", "open addressing", "rehash", "resiz", "modulo", "computes an index"},
}

func decodeGate() Gate {
	return Gate{
		ID: "sustained_decode", Version: 1, Family: "answer",
		Summary: "the whole budget was generated, as text about what was asked",
		Explain: `What is timed as a long decode must be one. The completion tokens that the engine reports must be an integer (512.0 is none)
equal to the budget: the parameter "budget", else the request's output limit. The answer must end for length or stop, and its
content channel must be longer than "min_chars" characters (300) and speak of the subject: of each list of "coverage" at least
one entry must begin a word of it, upper and lower case alike. By default that is an explanation of hash tables: hash; key;
value; array, bucket or slot; collision; and one mechanism. A text that begins with a refusal fails, and so does one of which
half and more of the sentences, four at least, only announce what will be explained.
It says that tokens were decoded for real; it does not score whether the explanation is right.
ok: all of that holds. fail: one thing does not. incomparable: no budget is known. not_run, skipped: there is no whole answer.`,
		Params: func() any { return &decodeParams{} },
		judge:  answered(sustainedDecode),
	}
}

func sustainedDecode(e *Evidence, t Turn) Finding {
	p := e.params.(*decodeParams)
	budget := p.Budget
	if budget == nil {
		budget = t.Analysis.Request.MaxTokens
	}
	switch {
	case budget == nil:
		return incomparable("neither the check nor the request states a budget")
	case t.Transcript.FinishNorm != finishLength && t.Transcript.FinishNorm != finishStop:
		return fail("it ended for %q, neither length nor stop", t.Transcript.FinishNorm)
	}
	if f := fullBudget(t, *budget); f.Reason != "" {
		return f
	}
	text := strip(t.Content())
	if n := utf8.RuneCountInString(text); n <= cmp.Or(p.MinChars, minDecodeChars) {
		return fail("the content has %d characters: too short for what was asked", n)
	}
	if refuses(text) {
		return fail("it refuses: %s", excerpt(text))
	}
	coverage := p.Coverage
	if len(coverage) == 0 {
		coverage = hashTable
	}
	lower := strings.ToLower(text)
	for _, words := range coverage {
		if !slices.ContainsFunc(words, func(w string) bool { return beginsWord(lower, strings.ToLower(w)) }) {
			return fail("it does not speak of %s", strings.Join(words, ", "))
		}
	}
	if promises, sentences := promised(lower); promises >= 4 && 2*promises >= sentences {
		return fail("%d of %d sentences only announce what will be explained", promises, sentences)
	}
	return ok()
}

// fullBudget holds that the reported count is the budget, and is an integer. A finding without reason says that it is.
func fullBudget(t Turn, budget int64) Finding {
	u := t.Transcript.Usage
	if u == nil || u.Completion == nil || u.Partial || u.Opening {
		return fail("the engine reports no completion tokens")
	}
	if text := t.countText(); text != "" {
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			return fail("the count of completion tokens is %s, which is no integer", text)
		}
	}
	if *u.Completion != budget {
		return fail("%d of %d tokens were generated", *u.Completion, budget)
	}
	return Finding{}
}

// countKeys are the names of the completion count by dialect.
var countKeys = map[wire.Dialect]string{
	wire.DialectChat: "completion_tokens", wire.DialectCompletions: "completion_tokens", wire.DialectSGLang: "completion_tokens",
	wire.DialectResponses: "output_tokens", wire.DialectAnthropic: "output_tokens", wire.DialectOllama: "eval_count",
	wire.DialectLlamaCpp: "tokens_predicted",
}

// countText is the last count of completion tokens as the engine spelled it, "" where that cannot be told: the
// transcript has its value only. Inside a string of JSON the quotes around the name would be escaped, so that it cannot
// be mistaken there.
func (t Turn) countText() string {
	name := countKeys[t.Transcript.Dialect]
	if name == "" || t.Transcript.Coding != "" {
		return ""
	}
	body, key := t.Response.Body.Bytes(), []byte(`"`+name+`"`)
	for end := len(body); ; {
		i := bytes.LastIndex(body[:end], key)
		if i < 0 {
			return ""
		}
		rest, colon := bytes.CutPrefix(bytes.TrimLeft(body[i+len(key):], " \t\r\n"), []byte(":"))
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if n := len(rest) - len(bytes.TrimLeft(rest, "0123456789.eE+-")); colon && n > 0 {
			return string(rest[:n])
		}
		end = i
	}
}

// beginsWord reports whether a word of text begins with what.
func beginsWord(text, what string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], what)
		if i < 0 {
			return false
		}
		i += from
		if before, _ := utf8.DecodeLastRuneInString(text[:i]); !inWord(before) || before == '-' || before == '_' {
			return true
		}
		from = i + 1
	}
}

// refusals are how an answer begins that declines to answer.
var refusals = []string{
	"i'm sorry", "i am sorry", "sorry, ", "i cannot", "i can't", "i can not", "i am unable", "i'm unable", "i am not able",
	"i'm not able", "i won't", "i must decline", "as an ai", "unfortunately, i ", "抱歉", "对不起", "我无法", "我不能",
}

// refuses reports whether a text begins with a refusal.
func refuses(text string) bool {
	head := strings.ToLower(strings.ReplaceAll(text[:min(len(text), 200)], "’", "'"))
	return slices.ContainsFunc(refusals, func(r string) bool { return strings.HasPrefix(head, r) })
}

// promises are how a sentence begins that announces what comes instead of saying it.
var promises = []string{
	"i will", "i'll", "i am going to", "i'm going to", "i shall", "let me", "let us", "let's", "we will", "we'll", "now i will",
	"now, i will", "next, i will", "next i will", "in this explanation", "in this answer", "this explanation will", "below, i will",
	"sure, i", "okay, i", "ok, i", "here, i will", "我将", "我会", "接下来", "下面我", "让我",
}

// promised counts the sentences of a text in lower case, and those that only announce.
func promised(lower string) (promising, sentences int) {
	for s := range strings.FieldsFuncSeq(strings.ReplaceAll(lower, "’", "'"), func(r rune) bool { return strings.ContainsRune(".!?\n。！？", r) }) {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		sentences++
		if slices.ContainsFunc(promises, func(p string) bool { return strings.HasPrefix(s, p) }) {
			promising++
		}
	}
	return promising, sentences
}
