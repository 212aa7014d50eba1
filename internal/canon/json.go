package canon

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of arrays and objects that has a canonical form.
const MaxDepth = 256

// Reasons why a text has no canonical form.
var (
	ErrSyntax    = errors.New("not JSON")
	ErrDuplicate = errors.New("duplicate key")
	ErrUTF8      = errors.New("invalid UTF-8")
	ErrSurrogate = errors.New("lone surrogate")
	ErrDepth     = errors.New("nested too deeply")
	ErrNumber    = errors.New("number too long")
)

// JSON is the canonical form of the JSON text b: object keys sorted by code point, no white space, number text kept
// exactly, strings unescaped but for '"', '\' and control characters. The error wraps one of the reasons above.
func JSON(b []byte) ([]byte, error) {
	return canonical(b, appendRaw)
}

// appendRaw keeps the text of a number.
func appendRaw(dst, number []byte) ([]byte, error) { return append(dst, number...), nil }

// canonical writes b in canonical form, numbers by the given rule.
func canonical(b []byte, number func(dst, text []byte) ([]byte, error)) ([]byte, error) {
	s := scanner{in: b, out: make([]byte, 0, len(b)), number: number}
	if err := s.value(0); err != nil {
		return nil, fmt.Errorf("canonicalise JSON at byte %d: %w", s.pos, err)
	}
	s.blanks()
	if s.pos != len(b) {
		return nil, fmt.Errorf("canonicalise JSON at byte %d: %w", s.pos, ErrSyntax)
	}
	return s.out, nil
}

// scanner reads a text once and writes its canonical form as it goes. Members of an object are written in the order
// they come and put in order when the object closes.
type scanner struct {
	in      []byte
	pos     int
	out     []byte
	number  func(dst, text []byte) ([]byte, error)
	members []member // open objects' members, innermost last
	swap    []byte   // scratch for reordering
}

// member is where a member of an object was written: its key with quotes, up to the end of its value.
type member struct{ start, colon, end int }

func (s *scanner) blanks() {
	for s.pos < len(s.in) {
		switch s.in[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// peek skips white space and gives the next byte, 0 at the end.
func (s *scanner) peek() byte {
	s.blanks()
	if s.pos == len(s.in) {
		return 0
	}
	return s.in[s.pos]
}

func (s *scanner) value(depth int) error {
	if depth > MaxDepth {
		return ErrDepth
	}
	switch c := s.peek(); {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '"':
		return s.str()
	case c == '-' || '0' <= c && c <= '9':
		return s.num()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.in[s.pos:], []byte(word)) {
			s.out = append(s.out, word...)
			s.pos += len(word)
			return nil
		}
	}
	return ErrSyntax
}

func (s *scanner) array(depth int) error {
	s.pos++
	s.out = append(s.out, '[')
	if s.peek() == ']' {
		s.pos++
		s.out = append(s.out, ']')
		return nil
	}
	for {
		if err := s.value(depth + 1); err != nil {
			return err
		}
		c := s.peek()
		if c != ',' && c != ']' {
			return ErrSyntax
		}
		s.pos++
		s.out = append(s.out, c)
		if c == ']' {
			return nil
		}
	}
}

func (s *scanner) object(depth int) error {
	s.pos++
	s.out = append(s.out, '{')
	base := len(s.members)
	for c := s.peek(); c != '}'; c = s.peek() {
		if len(s.members) > base {
			if c != ',' {
				return ErrSyntax
			}
			s.pos++
		}
		if err := s.member(depth); err != nil {
			return err
		}
	}
	s.pos++
	err := s.sortMembers(s.members[base:])
	s.members = s.members[:base]
	s.out = append(s.out, '}')
	return err
}

// member writes one key and value; commas are set when the object closes.
func (s *scanner) member(depth int) error {
	if s.peek() != '"' {
		return ErrSyntax
	}
	m := member{start: len(s.out)}
	if err := s.str(); err != nil {
		return err
	}
	if s.peek() != ':' {
		return ErrSyntax
	}
	s.pos++
	m.colon = len(s.out)
	s.out = append(s.out, ':')
	if err := s.value(depth + 1); err != nil {
		return err
	}
	m.end = len(s.out)
	s.out = append(s.out, ',')
	s.members = append(s.members, m)
	return nil
}

// sortMembers puts the members of the object that just closed, which are the tail of out, in order.
func (s *scanner) sortMembers(ms []member) error {
	if len(ms) == 0 {
		return nil
	}
	key := func(m member) []byte { return s.out[m.start+1 : m.colon-1] }
	order := func(a, b member) int { return compareKeys(key(a), key(b)) }
	start := ms[0].start
	sorted := slices.IsSortedFunc(ms, order)
	if !sorted {
		slices.SortFunc(ms, order)
	}
	for i := 1; i < len(ms); i++ {
		if order(ms[i-1], ms[i]) == 0 {
			return ErrDuplicate
		}
	}
	if !sorted {
		s.swap = append(s.swap[:0], s.out[start:]...)
		s.out = s.out[:start]
		for _, m := range ms {
			s.out = append(s.out, s.swap[m.start-start:m.end-start+1]...)
		}
	}
	s.out = s.out[:len(s.out)-1] // the last comma
	return nil
}

// compareKeys orders two canonical keys by code point. Bytes of UTF-8 are in that order already; only an escape stands
// for a smaller byte than it is written with.
func compareKeys(a, b []byte) int {
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return bytes.Compare(a, b)
	}
	return bytes.Compare(unescapeKey(a), unescapeKey(b))
}

// unescapeKey undoes the escapes that a canonical key can hold.
func unescapeKey(k []byte) []byte {
	s := scanner{in: append(bytes.Clone(k), '"')}
	for s.in[s.pos] != '"' {
		if s.in[s.pos] != '\\' {
			s.out = append(s.out, s.in[s.pos])
			s.pos++
			continue
		}
		r, _ := s.escape() // cannot fail: the scanner wrote it
		s.out = utf8.AppendRune(s.out, r)
	}
	return s.out
}
