package pysource

import "strings"

var stringPrefixes = map[string]bool{
	"r": true, "u": true, "b": true, "br": true, "rb": true, "f": true, "fr": true, "rf": true, "t": true, "tr": true, "rt": true,
}

// stringToken is one string literal: what there is to know about it beyond its being one.
type stringToken struct {
	kind   byte // 0 for text, b, f or t
	fields []field
}

// field is a replacement field of an f-string.
type field struct {
	toks []token // of its expression, with an end
	spec []field // fields of its format
}

// str takes a string whose prefix, in lower case, has been taken.
func (l *lexer) str(prefix string) {
	quote := l.src[l.pos : l.pos+1]
	if strings.HasPrefix(l.src[l.pos:], quote+quote+quote) {
		quote += quote + quote
	}
	line := l.line
	l.pos += len(quote)
	s := &stringToken{}
	raw := strings.Contains(prefix, "r")
	for _, kind := range []byte("bft") {
		if strings.IndexByte(prefix, kind) >= 0 {
			s.kind = kind
		}
	}
	if s.kind == 'f' || s.kind == 't' {
		s.fields = l.formatted(quote, raw)
	} else {
		body := l.plain(quote)
		l.checkText(body, s.kind == 'b', raw)
	}
	l.toks = append(l.toks, token{kind: tokenString, text: "a string", line: line, str: s})
}

// plain takes the rest of a string without fields and gives its body.
func (l *lexer) plain(quote string) string {
	start := l.pos
	for l.pos < len(l.src) {
		if strings.HasPrefix(l.src[l.pos:], quote) {
			body := l.src[start:l.pos]
			l.pos += len(quote)
			return body
		}
		escaped := l.src[l.pos] == '\\'
		if escaped {
			l.pos++
		}
		l.inside(quote, escaped)
	}
	l.fail("unterminated string")
	return ""
}

// inside takes one byte inside of a string. A line ends in one with single quotes only behind a backslash.
func (l *lexer) inside(quote string, escaped bool) {
	if l.peek(0) == '\n' {
		if len(quote) == 1 && !escaped {
			l.fail("unterminated string")
		}
		l.line++
	}
	l.pos++
}

// checkText refuses what a string of this kind cannot hold.
func (l *lexer) checkText(body string, bytes, raw bool) {
	for i := 0; i < len(body); i++ {
		if bytes && body[i] >= 0x80 {
			l.fail("bytes hold ASCII only")
		}
		if body[i] != '\\' || raw || i+1 == len(body) {
			continue
		}
		i++
		if want := hexDigits[body[i]]; want > 0 && (!bytes || body[i] == 'x') && !allHex(body[i+1:], want) {
			l.fail("malformed escape \\%c", body[i])
		}
		if body[i] == 'N' && !bytes {
			i += l.named(body[i:])
		}
	}
}

// named is the length of the name of an escape that begins with N, braces included. Whether there is a character of that
// name is not looked at.
func (l *lexer) named(escape string) int {
	n := strings.IndexByte(escape, '}')
	if n < 3 || escape[1] != '{' {
		l.fail("malformed escape \\N")
	}
	return n
}

// hexDigits are how many digits an escape has.
var hexDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

func allHex(s string, n int) bool {
	return len(s) >= n && strings.Trim(s[:n], "0123456789abcdefABCDEF") == "" && (n < 8 || strings.ToLower(s[:n]) <= "0010ffff")
}

// formatted takes the rest of an f-string and gives its fields.
func (l *lexer) formatted(quote string, raw bool) []field {
	var fields []field
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case strings.HasPrefix(l.src[l.pos:], quote):
			l.pos += len(quote)
			return fields
		case c == '\\':
			l.escape(quote, raw)
		case c == '{' && l.peek(1) == '{', c == '}' && l.peek(1) == '}':
			l.pos += 2
		case c == '{':
			fields = append(fields, l.replacement(quote, raw))
		case c == '}':
			l.fail("a single '}' in an f-string")
		default:
			l.inside(quote, false)
		}
	}
	l.fail("unterminated f-string")
	return nil
}

// escape takes a backslash in an f-string with what belongs to it. A brace behind it keeps its own meaning.
func (l *lexer) escape(quote string, raw bool) {
	l.pos++
	if !raw && l.peek(0) == 'N' {
		l.pos += l.named(l.src[l.pos:]) + 1
		return
	}
	if c := l.peek(0); c != '{' && c != '}' && c != 0 {
		l.inside(quote, true)
	}
}

// maxFields is how deep f-strings nest, as in CPython.
const maxFields = 149

// replacement takes a replacement field from its opening to its closing brace.
func (l *lexer) replacement(quote string, raw bool) field {
	if l.depth >= maxFields {
		l.fail("f-strings are nested too deeply")
	}
	sub := &lexer{src: l.src, pos: l.pos + 1, line: l.line, field: true, depth: l.depth + 1}
	for !sub.fieldEnds() {
		sub.token()
	}
	sub.emit(tokenEnd, "end of the field")
	f := field{toks: sub.toks}
	sub.fieldTail(&f, quote, raw)
	l.pos, l.line = sub.pos, sub.line
	return f
}

// fieldEnds skips blanks and reports whether the expression of a field is over.
func (l *lexer) fieldEnds() bool {
	for l.lineEnd() {
		if l.pos == len(l.src) {
			l.fail("a field of an f-string was never closed")
		}
	}
	if len(l.parens) > 0 {
		return false
	}
	switch l.peek(0) {
	case '}', ':':
		return true
	case '!':
		return l.peek(1) != '='
	case '=':
		rest := strings.TrimLeft(l.src[l.pos+1:], " \t\n\f")
		return rest != "" && (rest[0] == '}' || rest[0] == ':' || rest[0] == '!' && !strings.HasPrefix(rest, "!="))
	}
	return false
}

// fieldTail takes what follows the expression of a field: the sign to show it, a conversion, a format, the brace.
func (l *lexer) fieldTail(f *field, quote string, raw bool) {
	if l.peek(0) == '=' {
		l.pos++
		l.lineEnd()
	}
	if l.peek(0) == '!' {
		l.pos++
		name := l.identifier()
		if name != "r" && name != "s" && name != "a" {
			l.fail("unknown conversion %q in an f-string", name)
		}
		l.pos += len(name)
		l.lineEnd()
	}
	if l.peek(0) == ':' {
		l.pos++
		l.format(f, quote, raw)
	}
	if l.peek(0) != '}' {
		l.fail("a field of an f-string does not end behind its expression")
	}
	l.pos++
}

// format takes the format of a field up to the closing brace. Each opening brace in it begins a field.
func (l *lexer) format(f *field, quote string, raw bool) {
	for l.pos < len(l.src) && l.src[l.pos] != '}' {
		switch c := l.src[l.pos]; {
		case strings.HasPrefix(l.src[l.pos:], quote):
			l.fail("a field of an f-string was never closed")
		case c == '{':
			f.spec = append(f.spec, l.replacement(quote, raw))
		case c == '\\':
			l.escape(quote, raw)
		default:
			l.inside(quote, false)
		}
	}
}
