package pysource

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SyntaxError says where a source stops being Python.
type SyntaxError struct {
	Line int // from 1
	Text string
}

// Error is "line N: what is wrong".
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Text) }

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenNewline
	tokenIndent
	tokenDedent
	tokenName
	tokenKeyword
	tokenNumber
	tokenString
	tokenOp
)

// token is one token of the source. Positions are bytes of the source as it is read, after its line ends were made one.
type token struct {
	kind tokenKind
	text string
	line int
	str  *stringToken // of a string
}

// keywords are reserved. The soft ones (match, case, type, _) are names that the parser looks at.
var keywords = map[string]bool{
	"False": true, "None": true, "True": true, "and": true, "as": true, "assert": true, "async": true, "await": true, "break": true,
	"class": true, "continue": true, "def": true, "del": true, "elif": true, "else": true, "except": true, "finally": true, "for": true,
	"from": true, "global": true, "if": true, "import": true, "in": true, "is": true, "lambda": true, "nonlocal": true, "not": true,
	"or": true, "pass": true, "raise": true, "return": true, "try": true, "while": true, "with": true, "yield": true,
}

// operators and brackets; the longest that fits is the token.
var operators = map[string]bool{
	"**=": true, "//=": true, ">>=": true, "<<=": true, "...": true, "**": true, "//": true, ">>": true, "<<": true,
	"<=": true, ">=": true, "==": true, "!=": true, "->": true, "+=": true, "-=": true, "*=": true, "/=": true,
	"%=": true, "&=": true, "|=": true, "^=": true, "@=": true, ":=": true, "+": true, "-": true, "*": true, "/": true,
	"%": true, "@": true, "&": true, "|": true, "^": true, "~": true, "<": true, ">": true, "(": true, ")": true,
	"[": true, "]": true, "{": true, "}": true, ",": true, ":": true, ".": true, ";": true, "=": true,
}

// longestOperator is the length of the longest of them.
const longestOperator = 3

// indent is the width of an indentation, with tabs to the next eighth column and with tabs as one. Two indentations
// compare only when both widths say the same.
type indent struct{ wide, narrow int }

// lexer makes tokens. It reports errors by panicking with a *SyntaxError, which Parse takes up.
type lexer struct {
	src     string
	pos     int
	line    int
	toks    []token
	parens  []byte // open brackets, innermost last
	indents []indent
	field   bool // reads a replacement field of an f-string, which ends at its closing brace
	depth   int  // f-strings around this one
}

func (l *lexer) fail(format string, args ...any) {
	panic(&SyntaxError{Line: l.line, Text: fmt.Sprintf(format, args...)})
}

func (l *lexer) emit(kind tokenKind, text string) {
	l.toks = append(l.toks, token{kind: kind, text: text, line: l.line})
}

// peek is the byte n places on, 0 at the end.
func (l *lexer) peek(n int) byte {
	if l.pos+n < len(l.src) {
		return l.src[l.pos+n]
	}
	return 0
}

// lex makes the tokens of a source, the end among them.
func lex(src string) []token {
	src = strings.TrimPrefix(src, "\ufeff")
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: src, line: 1, indents: []indent{{}}}
	if !utf8.ValidString(src) || strings.ContainsRune(src, 0) {
		l.fail("not the text of a source")
	}
	for start := true; l.pos < len(l.src); {
		if start {
			if !l.indentation() {
				continue
			}
			start = false
		}
		if l.lineEnd() {
			start = len(l.toks) > 0 && l.toks[len(l.toks)-1].kind == tokenNewline
			continue
		}
		l.token()
	}
	l.finish()
	return l.toks
}

// finish closes the last line and all blocks.
func (l *lexer) finish() {
	if len(l.parens) > 0 {
		l.fail("%q was never closed", l.parens[len(l.parens)-1])
	}
	if n := len(l.toks); n > 0 && l.toks[n-1].kind != tokenNewline && l.toks[n-1].kind != tokenDedent {
		l.emit(tokenNewline, "")
	}
	for range l.indents[1:] {
		l.emit(tokenDedent, "")
	}
	l.emit(tokenEnd, "end of source")
}

// indentation reads the blanks before a line and opens or closes blocks by them. It is false for a line that holds
// nothing, which it skips.
func (l *lexer) indentation() bool {
	var in indent
	for ; l.pos < len(l.src); l.pos++ {
		switch l.src[l.pos] {
		case ' ':
			in.wide, in.narrow = in.wide+1, in.narrow+1
			continue
		case '\t':
			in.wide, in.narrow = (in.wide/8+1)*8, in.narrow+1
			continue
		case '\f':
			in = indent{}
			continue
		}
		break
	}
	l.comment()
	if l.pos == len(l.src) {
		return false
	}
	if l.src[l.pos] == '\n' {
		l.pos++
		l.line++
		return false
	}
	l.block(in)
	return true
}

// block opens or closes blocks.
func (l *lexer) block(in indent) {
	top := l.indents[len(l.indents)-1]
	switch {
	case in == top:
		return
	case in.wide > top.wide && in.narrow > top.narrow:
		if len(l.indents) >= maxIndents {
			l.fail("too many levels of indentation")
		}
		l.indents = append(l.indents, in)
		l.emit(tokenIndent, "")
		return
	}
	for in.wide < l.indents[len(l.indents)-1].wide {
		l.indents = l.indents[:len(l.indents)-1]
		l.emit(tokenDedent, "")
	}
	if top = l.indents[len(l.indents)-1]; in != top {
		l.fail("the indentation matches no block around it")
	}
}

func (l *lexer) comment() {
	if l.peek(0) == '#' {
		if n := strings.IndexByte(l.src[l.pos:], '\n'); n >= 0 {
			l.pos += n
		} else {
			l.pos = len(l.src)
		}
	}
}

// lineEnd skips blanks, comments and joined lines, and reads a line end if one comes; it is a token outside of brackets.
func (l *lexer) lineEnd() bool {
	for {
		for c := l.peek(0); c == ' ' || c == '\t' || c == '\f'; c = l.peek(0) {
			l.pos++
		}
		if l.peek(0) != '\\' {
			break
		}
		if l.peek(1) != '\n' || l.pos+2 >= len(l.src) {
			l.fail("unexpected character behind a backslash")
		}
		l.pos += 2
		l.line++
	}
	l.comment()
	if l.peek(0) != '\n' {
		return l.pos == len(l.src)
	}
	if len(l.parens) == 0 && !l.field {
		l.emit(tokenNewline, "")
	}
	l.pos++
	l.line++
	return true
}

// token reads one token. Blanks have been skipped.
func (l *lexer) token() {
	c := l.src[l.pos]
	switch {
	case c >= '0' && c <= '9' || c == '.' && l.peek(1) >= '0' && l.peek(1) <= '9':
		l.number()
	case c == '"' || c == '\'':
		l.str("")
	default:
		if name := l.identifier(); name != "" {
			l.name(name)
			return
		}
		l.operator()
	}
}

// identifier is the identifier that comes, "" for none. It is not taken.
func (l *lexer) identifier() string {
	for i, r := range l.src[l.pos:] {
		letter := r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Other_ID_Start, r)
		more := i > 0 && (unicode.IsDigit(r) || unicode.In(r, unicode.Mn, unicode.Mc, unicode.Pc, unicode.Other_ID_Continue))
		if !letter && !more {
			return l.src[l.pos : l.pos+i]
		}
	}
	return l.src[l.pos:]
}

// name takes an identifier: a keyword, a name, or the prefix of a string.
func (l *lexer) name(name string) {
	if c := l.peek(len(name)); (c == '"' || c == '\'') && len(name) <= 2 && stringPrefixes[strings.ToLower(name)] {
		l.pos += len(name)
		l.str(strings.ToLower(name))
		return
	}
	kind := tokenName
	if keywords[name] {
		kind = tokenKeyword
	}
	l.emit(kind, name)
	l.pos += len(name)
}

var closers = map[string]byte{")": '(', "]": '[', "}": '{'}

// operator takes an operator or a bracket.
func (l *lexer) operator() {
	for n := min(longestOperator, len(l.src)-l.pos); n > 0; n-- {
		if op := l.src[l.pos : l.pos+n]; operators[op] {
			l.bracket(op)
			l.emit(tokenOp, op)
			l.pos += n
			return
		}
	}
	r, _ := utf8.DecodeRuneInString(l.src[l.pos:])
	l.fail("unexpected character %q", r)
}

// bracket keeps count of open brackets.
func (l *lexer) bracket(op string) {
	switch op {
	case "(", "[", "{":
		if len(l.parens) >= maxBrackets {
			l.fail("too many nested brackets")
		}
		l.parens = append(l.parens, op[0])
	case ")", "]", "}":
		if n := len(l.parens); n == 0 || l.parens[n-1] != closers[op] {
			l.fail("unmatched %q", op)
		}
		l.parens = l.parens[:len(l.parens)-1]
	}
}

// CPython's own limits of nested brackets and of levels of indentation.
const (
	maxBrackets = 200
	maxIndents  = 100
)
