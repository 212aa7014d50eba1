package wire

import "bytes"

// valueSplitter finds JSON values that follow each other: the one value of a plain JSON body, or the elements of a
// top-level array as they come. It only counts brackets and minds strings; whether a value is JSON is not its matter.
type valueSplitter struct {
	array  bool // the values are the elements of one array
	opened bool // the array's "[" was seen
	closed bool // the array's "]" was seen
	any    bool // a value was handed out

	pos     int // next byte to look at
	start   int // first byte of the value in work
	kind    valueKind
	depth   int
	quoted  bool // inside a string
	escaped bool // after a backslash in a string
}

type valueKind uint8

const (
	noValue    valueKind = iota
	bracketed            // object or array: ends with its last bracket
	textValue            // string: ends with its quote
	plainValue           // number or word: ends before what cannot be part of it
)

// next implements splitter.
func (v *valueSplitter) next(buf []byte) (step, bool) {
	for v.pos < len(buf) {
		c := buf[v.pos]
		if v.kind == noValue {
			v.between(c)
			continue
		}
		if v.kind == plainValue {
			if isDelimiter(c) {
				return v.handOut(buf), true
			}
			v.pos++
			continue
		}
		if v.quoted && !v.escaped {
			if v.pos = plainEnd(buf, v.pos); v.pos == len(buf) {
				break
			}
			c = buf[v.pos]
		}
		v.pos++
		if v.inside(c) {
			return v.handOut(buf), true
		}
	}
	return step{}, false
}

// between handles a byte outside every value.
func (v *valueSplitter) between(c byte) {
	v.start = v.pos
	v.pos++
	switch {
	case v.array && !v.opened:
		v.opened = c == '['
	case v.closed:
	case v.array && c == ']':
		v.closed = true
	case c == '{' || c == '[':
		v.kind, v.depth = bracketed, 1
	case v.any && !v.array: // after a plain JSON body only further objects count; the rest is noise
	case c == '"':
		v.kind, v.quoted = textValue, true
	case !isDelimiter(c) && c < 0x80: // no value begins outside ASCII; a byte order mark may stand here
		v.kind = plainValue
	}
}

// inside handles a byte of a string, an object or an array, and reports whether it ends the value.
func (v *valueSplitter) inside(c byte) bool {
	switch {
	case v.escaped:
		v.escaped = false
	case v.quoted:
		if c == '\\' {
			v.escaped = true
		} else if c == '"' {
			v.quoted = false
			return v.kind == textValue
		}
	case c == '"':
		v.quoted = true
	case c == '{' || c == '[':
		v.depth++
	case c == '}' || c == ']':
		v.depth--
		return v.depth == 0
	}
	return false
}

// plainEnd is the first byte from i on that means something inside a string.
func plainEnd(buf []byte, i int) int {
	for i < len(buf) && buf[i] != '"' && buf[i] != '\\' {
		i++
	}
	return i
}

func isDelimiter(c byte) bool {
	return c <= ' ' || c == ',' || c == ':' || c == '{' || c == '}' || c == '[' || c == ']' || c == '"'
}

func (v *valueSplitter) handOut(buf []byte) step {
	s := step{start: v.start, end: v.pos, event: true, data: buf[v.start:v.pos]}
	v.any, v.kind, v.start, v.pos = true, noValue, 0, 0
	return s
}

// end implements splitter. Only a number or a word can be completed by the end of the body.
func (v *valueSplitter) end(buf []byte, whole bool) tail {
	t := tail{step: step{end: len(buf)}, closed: v.closed}
	switch {
	case v.kind == plainValue && whole && valid(bytes.TrimSpace(buf[v.start:])):
		t.step = step{start: v.start, end: len(buf), event: true, data: buf[v.start:]}
	case v.kind != noValue || v.array && !v.closed:
		t.cut = true
	}
	return t
}
