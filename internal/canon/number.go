package canon

import (
	"bytes"
	"strconv"
)

// num writes the number at pos by the scanner's rule.
func (s *scanner) num() error {
	n := numberLength(s.in[s.pos:])
	if n == 0 {
		return ErrSyntax
	}
	out, err := s.number(s.out, s.in[s.pos:s.pos+n])
	if err != nil {
		return err
	}
	s.out = out
	s.pos += n
	return nil
}

// numberLength is the length of the JSON number b begins with, 0 when there is none.
func numberLength(b []byte) int {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	digits := countDigits(b[i:])
	if digits == 0 {
		return 0
	}
	if b[i] == '0' {
		digits = 1 // no leading zeros: what follows is a syntax error to the caller
	}
	i += digits
	if i < len(b) && b[i] == '.' {
		digits = countDigits(b[i+1:])
		if digits == 0 {
			return 0
		}
		i += 1 + digits
	}
	if i == len(b) || b[i]|0x20 != 'e' {
		return i
	}
	i++
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	digits = countDigits(b[i:])
	if digits == 0 {
		return 0
	}
	return i + digits
}

func countDigits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}

// maxIntDigits is the longest integer that Python reads.
const maxIntDigits = 4300

// appendPython writes a number as Python 3 prints what it read: an integer exactly, anything else as the shortest
// text that gives the same double, with a fraction or an exponent of at least two digits.
func appendPython(dst, text []byte) ([]byte, error) {
	if !bytes.ContainsAny(text, ".eE") {
		if len(bytes.TrimPrefix(text, []byte("-"))) > maxIntDigits {
			return dst, ErrNumber
		}
		if string(text) == "-0" {
			text = text[1:]
		}
		return append(dst, text...), nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil { // only out of range is left, and ParseFloat gives the infinity that Python reads too
		if f > 0 {
			return append(dst, "Infinity"...), nil
		}
		return append(dst, "-Infinity"...), nil
	}
	return appendPythonFloat(dst, f), nil
}

// sameInPython reports whether Python prints the number as it is written.
func sameInPython(number []byte) bool {
	if len(number) < 16 && countDigits(number) == len(number) { // nearly all there are
		return true
	}
	var buf [64]byte
	printed, err := appendPython(buf[:0], number)
	return err == nil && string(printed) == string(number)
}

// appendPythonFloat is repr of a finite float: positional for decimal exponents from -4 to 15.
func appendPythonFloat(dst []byte, f float64) []byte {
	var buf [32]byte
	sci := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	exp, _ := strconv.Atoi(string(sci[bytes.IndexByte(sci, 'e')+1:])) // our own text
	if exp < -4 || exp >= 16 {
		return append(dst, sci...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}
