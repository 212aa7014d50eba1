package wire

import (
	"fmt"

	"github.com/valyala/fastjson"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Token is one token of an answer or of its prompt.
type Token struct {
	ID      int64                // -1 when the engine told no ids
	Text    string               // byte for byte, so it may be a part of a character; "" when not told
	Spelled bool                 // the engine told its text; that of an end token is often empty
	Logprob *float64             // nil when not told
	Top     []exchange.TokenProb // the most likely tokens at its place, best first; nil when not told, or not for sure
}

// Scale says what the numbers of log-probability lists are.
type Scale string

// The scales. Only raw values of two answers can be held against each other.
const (
	ScaleNone         Scale = ""              // there are none
	ScaleRaw          Scale = "raw"           // logarithms of the model's own distribution
	ScalePostSampling Scale = "post_sampling" // after temperature and the other samplers (llama.cpp's prob and top_probs)
	ScaleLegacy       Scale = "legacy"        // of llama.cpp builds that did not say: raw at temperature 0 only
)

// TokenList is what an answer says of its tokens: those of choice 0.
type TokenList struct {
	Dialect   Dialect
	Generated []Token
	PromptIDs []int64 // as the engine told them, or as the request gave them
	Prompt    []Token // of the prompt, where the engine scored it; the first has no log-probability
	Scale     Scale
	// Cut says why tokens are missing from Generated, or why their lists are from some place on; "" when they are whole.
	Cut string
	// Missing says that Generated lacks tokens, in it or behind it: it is then no record of the answer.
	Missing bool
}

// IDs reports whether every generated token has an id.
func (l *TokenList) IDs() bool {
	for i := range l.Generated {
		if l.Generated[i].ID < 0 {
			return false
		}
	}
	return len(l.Generated) > 0
}

// Texts reports whether the text of every generated token is told.
func (l *TokenList) Texts() bool {
	for i := range l.Generated {
		if !l.Generated[i].Spelled {
			return false
		}
	}
	return len(l.Generated) > 0
}

// Tokens reads the tokens of a sealed exchange. It reads the body once more, for few look at it: a list of
// log-probabilities is many times the size of the text. An engine that tells text only gives an empty list.
func Tokens(x *exchange.Exchange) *TokenList {
	p := NewParser(InfoOf(x))
	r := &tokenReader{}
	p.tokens = r
	for _, chunk := range x.Response.Body.Chunks {
		p.Feed(chunk, 0)
	}
	t := p.Finish(x.End == exchange.EndEOF && x.Response.Body.Whole())
	r.list.Dialect = t.Dialect
	request := RequestOf(x)
	switch {
	case request.Echo:
		return &TokenList{Dialect: t.Dialect, Cut: "the answer repeats the prompt", Missing: true}
	case t.Oversized > 0:
		r.cut("an event was too large to be read")
		r.list.Missing = true
	}
	if len(r.list.PromptIDs) == 0 {
		r.list.PromptIDs = promptIDs(x)
	}
	r.verify(t)
	return &r.list
}

// tokenReader gathers the tokens of choice 0, event by event.
type tokenReader struct {
	list   TokenList
	listed bool // an entry came
	ids    bool // a list of ids came: it lacks no token
}

// entry is a log-probability entry as a dialect gives it.
type entry struct {
	Token
	scale Scale
}

// cut notes the first reason for which the lists are not whole.
func (r *tokenReader) cut(format string, args ...any) {
	if r.list.Cut == "" {
		r.list.Cut = fmt.Sprintf(format, args...)
	}
}

// take reads the tokens of one value of the body.
func (r *tokenReader) take(a *answer, lang *language, v *fastjson.Value) {
	if a.quiet || v.Type() != fastjson.TypeObject {
		return
	}
	switch lang.name {
	case DialectChat, DialectCompletions:
		r.takeOpenAI(v)
	case DialectLlamaCpp:
		if v.Get("choices") != nil {
			r.takeOpenAI(v)
		} else {
			r.takeLlamaCpp(v)
		}
	case DialectOllama:
		r.add(nil, entriesOf(v.Get("logprobs")))
	case DialectResponses:
		r.takeResponses(v)
	case DialectGemini:
		r.takeGemini(v)
	case DialectSGLang:
		r.takeSGLang(a, v)
	}
}

// add appends what one event tells: token ids, and entries that should be of the same tokens. llama.cpp leaves the
// entries of byte tokens out, so entries are kept only as long as they fit the ids.
func (r *tokenReader) add(ids []int64, entries []entry) {
	fit := 0
	r.ids = r.ids || len(ids) > 0
	if r.list.Cut == "" {
		fit = r.fitting(ids, entries)
	}
	if len(ids) == 0 && fit < len(entries) {
		r.list.Missing = true
	}
	for i := range max(fit, len(ids)) {
		t := Token{ID: -1}
		if i < fit {
			t = entries[i].Token
			r.listed = true
			r.scale(entries[i].scale)
		}
		if i < len(ids) {
			t.ID = ids[i]
		}
		r.list.Generated = append(r.list.Generated, t)
	}
}

// fitting is the number of entries that are surely those of the ids. Without ids they are the tokens.
func (r *tokenReader) fitting(ids []int64, entries []entry) int {
	if len(ids) == 0 {
		return len(entries)
	}
	told := len(entries) > 0 && entries[0].ID >= 0
	n := 0
	for n < len(ids) && n < len(entries) && (!told || entries[n].ID == ids[n]) {
		n++
	}
	switch {
	case n == len(ids) && n == len(entries), len(entries) == 0 && !r.listed:
		return n
	case !told:
		n = 0 // which of the tokens they are cannot be told
	}
	r.cut("the lists and the tokens part at token %d", len(r.list.Generated)+n+1)
	return n
}

func (r *tokenReader) scale(s Scale) {
	if r.list.Scale == ScaleNone || s != ScaleRaw {
		r.list.Scale = s
	}
}

// verify holds the tokens against the rest of the answer: a list without ids may lack a token, and then every list
// behind it would be that of another place.
func (r *tokenReader) verify(t *Transcript) {
	l := &r.list
	n := len(l.Generated)
	if n == 0 || t.Usage == nil || t.Usage.Completion == nil || t.Usage.PerChoice || len(t.Choices) > 1 {
		return
	}
	want := int(*t.Usage.Completion)
	if n == want || n == want-1 && l.endsWith(t) { // the end token is counted and not listed
		return
	}
	if n > want && l.IDs() {
		return // an engine that counts the end token not
	}
	c := t.Choice0()
	if c.Reasoning != "" || len(c.ToolCalls) > 0 {
		r.drop(0, "%d tokens are listed of %d", n, want)
		return
	}
	r.drop(l.within(c.Text), "%d tokens are listed of %d", n, want)
}

// drop forgets the lists from token i on, and the tokens too when nothing but the lists tells them. Some are missing
// either way: llama.cpp streams no id of a token that it holds back for being a part of a character.
func (r *tokenReader) drop(i int, format string, args ...any) {
	r.cut(format, args...)
	l := &r.list
	l.Missing = true
	if !r.ids {
		l.Generated = l.Generated[:i]
		return
	}
	for k := i; k < len(l.Generated); k++ {
		l.Generated[k] = Token{ID: l.Generated[k].ID}
	}
}

// endsWith reports whether the answer ended by itself and the texts of its tokens are all of its text.
func (l *TokenList) endsWith(t *Transcript) bool {
	c := t.Choice0()
	return t.FinishNorm != "length" && (c.Reasoning != "" || len(c.ToolCalls) > 0 || l.within(c.Text) == len(l.Generated))
}

// within is the number of leading tokens whose texts stand at the beginning of text, one after the other.
func (l *TokenList) within(text string) int {
	for i := range l.Generated {
		piece := l.Generated[i].Text
		if len(piece) > len(text) || text[:len(piece)] != piece {
			return i
		}
		text = text[len(piece):]
	}
	return len(l.Generated)
}
