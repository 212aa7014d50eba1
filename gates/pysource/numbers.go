package pysource

import (
	"strconv"
	"strings"
)

// number takes a number.
func (l *lexer) number() {
	start := l.pos
	switch {
	case l.peek(0) == '0' && strings.IndexByte("xX", l.peek(1)) >= 0 && l.peek(1) != 0:
		l.based("0123456789abcdefABCDEF")
	case l.peek(0) == '0' && strings.IndexByte("oO", l.peek(1)) >= 0 && l.peek(1) != 0:
		l.based("01234567")
	case l.peek(0) == '0' && strings.IndexByte("bB", l.peek(1)) >= 0 && l.peek(1) != 0:
		l.based("01")
	default:
		l.decimal()
	}
	l.numberEnd()
	l.emit(tokenNumber, l.src[start:l.pos])
}

// based takes the prefix and the digits of a number of another base; an underscore may stand before each digit.
func (l *lexer) based(digits string) {
	l.pos += 2
	for first := true; ; first = false {
		c := l.peek(0)
		if c == '_' {
			l.pos++
			c = l.peek(0)
		} else if !first && (c == 0 || strings.IndexByte(digits, c) < 0) {
			return
		}
		if c == 0 || strings.IndexByte(digits, c) < 0 {
			l.fail("malformed number")
		}
		l.pos++
	}
}

// decimal takes an integer, a float or an imaginary number.
func (l *lexer) decimal() {
	start := l.pos
	l.digits()
	whole := l.src[start:l.pos]
	float := false
	if l.peek(0) == '.' {
		float = true
		l.pos++
		if isDigit(l.peek(0)) {
			l.digits()
		}
	}
	if c := l.peek(0); c == 'e' || c == 'E' {
		n := 1
		if s := l.peek(1); s == '+' || s == '-' {
			n = 2
		}
		if isDigit(l.peek(n)) {
			float = true
			l.pos += n
			l.digits()
		}
	}
	if c := l.peek(0); c == 'j' || c == 'J' {
		float = true
		l.pos++
	}
	if !float && len(whole) > 1 && whole[0] == '0' && strings.Trim(whole, "0_") != "" {
		l.fail("an integer does not begin with 0")
	}
}

// digits takes digits with single underscores between them; none at all is fine before a point.
func (l *lexer) digits() {
	for {
		for isDigit(l.peek(0)) {
			l.pos++
		}
		if l.peek(0) != '_' {
			return
		}
		if !isDigit(l.peek(1)) {
			l.fail("malformed number")
		}
		l.pos++
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// numberEnd refuses a name that follows a number without a blank, unless it is a keyword that may stand there.
func (l *lexer) numberEnd() {
	switch name := l.identifier(); name {
	case "", "and", "else", "for", "if", "in", "is", "not", "or":
	default:
		l.fail("malformed number")
	}
}

// integer is the value of an integer literal in any spelling; ok is false for floats, imaginary and huge ones.
func integer(literal string) (value int64, ok bool) {
	text := strings.ReplaceAll(literal, "_", "")
	if strings.Trim(text, "0") == "" {
		return 0, true // 000 is no octal number
	}
	value, err := strconv.ParseInt(text, 0, 64)
	return value, err == nil
}
