package canon

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// str writes the string at pos in its one canonical spelling.
func (s *scanner) str() error {
	s.pos++
	s.out = append(s.out, '"')
	for {
		n := plainPrefix(s.in[s.pos:])
		s.out = append(s.out, s.in[s.pos:s.pos+n]...)
		s.pos += n
		if s.pos == len(s.in) {
			return ErrSyntax
		}
		switch c := s.in[s.pos]; {
		case c == '"':
			s.pos++
			s.out = append(s.out, '"')
			return nil
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return err
			}
			s.out = appendRune(s.out, r)
		case c < ' ':
			return ErrSyntax
		default:
			r, size := utf8.DecodeRune(s.in[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return ErrUTF8
			}
			s.out = append(s.out, s.in[s.pos:s.pos+size]...)
			s.pos += size
		}
	}
}

// plainPrefix is the length of the ASCII prefix of b that needs no second look.
func plainPrefix(b []byte) int {
	for i, c := range b {
		if c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			return i
		}
	}
	return len(b)
}

// escape reads the escape at pos. A surrogate pair is one rune; half of one has no meaning.
func (s *scanner) escape() (rune, error) {
	if s.pos+1 >= len(s.in) {
		return 0, ErrSyntax
	}
	c := s.in[s.pos+1]
	if c == 'u' {
		return s.unicodeEscape()
	}
	i := bytes.IndexByte([]byte(`"\/bfnrt`), c)
	if i < 0 {
		return 0, ErrSyntax
	}
	s.pos += 2
	return rune("\"\\/\b\f\n\r\t"[i]), nil
}

func (s *scanner) unicodeEscape() (rune, error) {
	r, ok := hex4(s.in[s.pos:])
	if !ok {
		return 0, ErrSyntax
	}
	s.pos += 6
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	low, ok := hex4(s.in[s.pos:])
	if !ok {
		return 0, ErrSurrogate
	}
	pair := utf16.DecodeRune(r, low)
	if pair == utf8.RuneError {
		return 0, ErrSurrogate
	}
	s.pos += 6
	return pair, nil
}

// hex4 reads the \uXXXX that b begins with.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		lower := c | 0x20
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= lower && lower <= 'f':
			r = r<<4 | rune(lower-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// appendRune writes r as the canonical form spells it.
func appendRune(dst []byte, r rune) []byte {
	if r == '"' || r == '\\' {
		return append(dst, '\\', byte(r))
	}
	if r >= ' ' {
		return utf8.AppendRune(dst, r)
	}
	if i := bytes.IndexByte([]byte("\b\f\n\r\t"), byte(r)); i >= 0 {
		return append(dst, '\\', "bfnrt"[i])
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
}
