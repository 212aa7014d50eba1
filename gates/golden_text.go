package gates

import (
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// part is one token as text, or the rest of an answer whose tokens are not known.
type part struct {
	id   int64  // -1 when not known
	text string // byte for byte
}

// script is what an answer generated, in the order in which it did: the form in which two answers are compared.
type script struct {
	parts []part
	whole bool // every part is a token with its text
	ended bool // the model ended it; otherwise a limit cut it
	endID int64
}

// text is everything that was generated, without the token that ended it.
func (s *script) text() string {
	var b strings.Builder
	for _, p := range s.parts {
		b.WriteString(p.text)
	}
	return b.String()
}

// starts are the byte offsets at which the parts begin, and the end of the last one.
func (s *script) starts() []int {
	at := make([]int, len(s.parts)+1)
	for i, p := range s.parts {
		at[i+1] = at[i] + len(p.text)
	}
	return at
}

// divergence is the first place at which two scripts part.
type divergence struct {
	none      bool
	index     int     // token of the golden, from 0; its number of tokens where the golden ends and the other goes on
	offset    int     // byte of the text at which that token begins
	golden    spelled // what the golden has there
	candidate spelled // and the other
	open      bool    // which token the other has there is not known: only its text is
}

// diverge finds the first divergence of a candidate from a golden. Text is what counts: the same text in other tokens is
// none, and neither is one that ends at its limit where the other goes on.
func diverge(golden, candidate *script) divergence {
	g, c := golden.text(), candidate.text()
	n := commonPrefix(g, c)
	switch {
	case n == len(g) && n == len(c), n == len(c) && !candidate.ended, n == len(g) && !golden.ended:
		return divergence{none: true}
	}
	gs, cs := golden.starts(), candidate.starts()
	d := divergence{index: tokenAt(gs, n), candidate: spelled{id: -1}}
	k := 0
	for ; ; d.index-- { // back to where both begin a token
		if k = tokenStarting(cs, gs[d.index]); k >= 0 {
			break
		}
	}
	d.offset = gs[d.index]
	d.golden = golden.token(d.index)
	d.candidate = candidate.token(k)
	d.open = !candidate.whole && !d.candidate.end
	return d
}

// token is token i of a script; behind the last one it is the token that ends it.
func (s *script) token(i int) spelled {
	if i >= len(s.parts) {
		return spelled{id: s.endID, end: true}
	}
	return spelled{id: s.parts[i].id, text: s.parts[i].text}
}

// tokenAt is the last token that begins at or before byte n.
func tokenAt(starts []int, n int) int {
	i := 0
	for i+1 < len(starts) && starts[i+1] <= n {
		i++
	}
	return i
}

// tokenStarting is the last token that begins at byte n, -1 when none does. The last one, for tokens can be empty.
func tokenStarting(starts []int, n int) int {
	for i := len(starts) - 1; i >= 0; i-- {
		if starts[i] == n {
			return i
		}
	}
	return -1
}

// commonPrefix is the number of bytes that a and b begin with in common.
func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// divergeByID finds the first divergence of two lists of ids, for scripts whose texts are not all known.
func divergeByID(golden, candidate *script) divergence {
	for i := range max(len(golden.parts), len(candidate.parts)) {
		switch {
		case i == len(golden.parts) && !golden.ended, i == len(candidate.parts) && !candidate.ended:
			return divergence{none: true}
		}
		if g, c := golden.token(i), candidate.token(i); !g.same(c) {
			return divergence{index: i, golden: g, candidate: c}
		}
	}
	return divergence{none: true}
}

// scriptOfGolden is what a golden generated. Its last token may be the one that ended it. One without tokens has its
// text in their place.
func scriptOfGolden(g *exchange.Golden) *script {
	s := &script{whole: g.Spelled && len(g.Tokens) > 0, ended: endedItself(g.Finish), endID: -1}
	for i := range g.Tokens {
		s.parts = append(s.parts, part{g.Tokens[i].ID, g.Tokens[i].Spelling()})
	}
	if len(g.Tokens) == 0 {
		s.add(channelText(channelsOfGolden(g)))
		return s
	}
	s.takeEnd()
	return s
}

// add appends text whose tokens are not known.
func (s *script) add(text string) {
	if text != "" {
		s.parts = append(s.parts, part{-1, text})
	}
}

// endedItself reports whether a normalized finish reason says that the model ended the answer.
func endedItself(finish string) bool { return finish == finishStop || finish == finishTools }

// takeEnd takes the token that ended an answer off its parts, where it is listed.
func (s *script) takeEnd() {
	if last := len(s.parts) - 1; s.ended && last >= 0 && isEndSpelling(s.parts[last].text) {
		s.endID = s.parts[last].id
		s.parts = s.parts[:last]
	}
}

// scriptOfAnswer is what an answer generated, for comparison with a golden. Where its engine lists no tokens, the text
// that its parser took apart is put together again the way the golden's was; why says so when the golden does not show how.
func scriptOfAnswer(a *answer, g *exchange.Golden) (variants []*script, why string) {
	if l := a.tokens; !l.Missing && (l.Texts() || l.IDs()) {
		s := &script{ended: endedItself(a.finish), endID: -1, whole: l.Texts()}
		for i := range l.Generated {
			s.parts = append(s.parts, part{l.Generated[i].ID, l.Generated[i].Text})
		}
		s.takeEnd()
		return []*script{s}, ""
	}
	texts, why := rebuilt(&a.channels, g)
	for _, text := range texts {
		s := &script{ended: endedItself(a.finish), endID: -1}
		s.add(text)
		variants = append(variants, s)
	}
	return variants, why
}

// ids reports whether every part has one.
func (s *script) ids() bool {
	return len(s.parts) > 0 && !slices.ContainsFunc(s.parts, func(p part) bool { return p.id < 0 })
}
