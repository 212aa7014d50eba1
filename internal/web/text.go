package web

import (
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"
)

// segment is a part of a recorded text: as it is, or the name of something that would not show or would steer how the
// rest shows.
type segment struct {
	Text string
	Mark bool
}

// visible takes recorded text apart so that everything in it can be seen and nothing in it acts: control characters,
// marks of direction, invisible characters and bytes that are no UTF-8 stand as their names. Lines and tabs stay. At most
// limit bytes are taken; cut is how many were not.
func visible(s string, limit int) (out []segment, cut int) {
	if len(s) > limit {
		end := limit
		for end > 0 && limit-end < utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		s, cut = s[:end], len(s)-end
	}
	var marks []byte // that stand in a row are one segment, made once: there may be as many as the text has bytes
	flush := func() {
		if len(marks) > 0 {
			out, marks = append(out, segment{string(marks), true}), marks[:0]
		}
	}
	for text, mark := range parts(s) {
		if mark {
			marks = append(marks, text...)
			continue
		}
		flush()
		out = append(out, segment{text, false})
	}
	flush()
	return out, cut
}

// parts are the pieces of a recorded text in order: text as it is, and the name of each character that is not shown as it
// is.
func parts(s string) iter.Seq2[string, bool] {
	return func(yield func(text string, mark bool) bool) {
		from := 0
		for i := 0; i < len(s); {
			r, n := utf8.DecodeRuneInString(s[i:])
			if name := markOf(r, n, s[i]); name != "" {
				if from < i && !yield(s[from:i], false) || !yield(name, true) {
					return
				}
				from = i + n
			}
			i += n
		}
		if from < len(s) {
			yield(s[from:], false)
		}
	}
}

// markOf is the name of a character that is not shown as it is, "" for all others. Joiners stay: scripts and emoji need
// them.
func markOf(r rune, size int, first byte) string {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf(`\x%02x`, first)
	case r == '\n' || r == '\t' || r == zeroWidthJoiner || r == zeroWidthNonJoiner:
		return ""
	case r < ' ':
		return string('\u2400' + r) // the picture of the control character
	case r == 0x7f:
		return "\u2421"
	case r == ' ' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r):
		return ""
	}
	return fmt.Sprintf("U+%04X", r)
}

// oneLine is a recorded text as a label: on one line, without what steers, at most limit characters.
func oneLine(s string, limit int) string {
	var b strings.Builder
	n, blank := 0, false
	for _, r := range s {
		if unicode.IsSpace(r) {
			blank = n > 0
			continue
		}
		if n >= limit || blank && n+1 >= limit {
			return b.String() + "…"
		}
		if blank {
			b.WriteByte(' ')
			n, blank = n+1, false
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '·'
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

// cutQuery parts a request target from its query.
func cutQuery(target string) (path, query string, found bool) { return strings.Cut(target, "?") }
