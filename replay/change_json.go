package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonPath names a value inside a JSON document: member names and, where name is "", places in an array.
type jsonPath []pathStep

type pathStep struct {
	name  string
	index int // of an array; -1 for a member
}

// parsePath reads a path as users write it: names joined by dots, places in brackets, a backslash before a dot or bracket
// that belongs to a name: messages[0].content, stream_options.include_usage, metadata.v1\.2.
func parsePath(text string) (jsonPath, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("path %q is not UTF-8", text)
	}
	var path jsonPath
	var name strings.Builder
	named := false // a name is being read
	flush := func() error {
		if !named {
			return fmt.Errorf("path %q has an empty name", text)
		}
		path = append(path, pathStep{name: name.String(), index: -1})
		name.Reset()
		named = false
		return nil
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i == len(text) {
				return nil, fmt.Errorf("path %q ends in a backslash", text)
			}
			name.WriteByte(text[i])
			named = true
		case '.':
			if !named && i > 0 && text[i-1] == ']' {
				continue
			}
			if err := flush(); err != nil {
				return nil, err
			}
		case '[':
			if named {
				_ = flush() // there is a name
			}
			end := strings.IndexByte(text[i:], ']')
			if end < 0 {
				return nil, fmt.Errorf("path %q has an open bracket", text)
			}
			n, err := strconv.Atoi(text[i+1 : i+end])
			if err != nil || n < 0 || len(path) == 0 {
				return nil, fmt.Errorf("path %q: %q is no place in an array", text, text[i:i+end+1])
			}
			path = append(path, pathStep{index: n})
			i += end
		default:
			name.WriteByte(c)
			named = true
		}
	}
	if named || !strings.HasSuffix(text, "]") {
		if err := flush(); err != nil {
			return nil, err
		}
	}
	return path, nil
}

func (p jsonPath) String() string {
	var b strings.Builder
	for i, s := range p {
		switch {
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
			continue
		case i > 0:
			b.WriteByte('.')
		}
		b.WriteString(pathEscaper.Replace(s.name))
	}
	return b.String()
}

var pathEscaper = strings.NewReplacer(`\`, `\\`, `.`, `\.`, `[`, `\[`, `]`, `\]`)

// stretch is a stretch of a document.
type stretch struct{ from, to int }

// jsonBody is a JSON document that is changed by splices: every byte outside of a change stays as it is.
type jsonBody []byte

var errNotJSON = errors.New("the body is not a JSON object")

// asJSON checks that b is a JSON object.
func asJSON(b []byte) (jsonBody, error) {
	if t := bytes.TrimLeft(b, " \t\r\n"); len(t) == 0 || t[0] != '{' || !json.Valid(b) {
		return nil, errNotJSON
	}
	return b, nil
}

// blanks is the first place from i on that is no white space.
func (b jsonBody) blanks(i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// end is the place behind the value that begins at i.
func (b jsonBody) end(i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			} else if depth < 0 {
				return i // of a number or word that ends here
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// element is a member of an object or an element of an array: its value, and where it begins with its name.
type element struct {
	start int // of the name, or of the value in an array
	value stretch
	name  string // decoded; "" in an array
}

// elements are the parts of the object or array that begins at open; close is the place of its last bracket.
func (b jsonBody) elements(open int) (list []element, close int) {
	object := b[open] == '{'
	i := b.blanks(open + 1)
	for b[i] != '}' && b[i] != ']' {
		e := element{start: i}
		if object {
			end := b.end(i)
			_ = json.Unmarshal(b[i:end], &e.name) // it is a string of a valid document
			i = b.blanks(end)                     // the colon
			i = b.blanks(i + 1)
		}
		e.value = stretch{i, b.end(i)}
		list = append(list, e)
		if i = b.blanks(e.value.to); b[i] == ',' {
			i = b.blanks(i + 1)
		}
	}
	return list, i
}

// place is how far a path leads.
type place struct {
	parent int       // where the last container on the way begins
	list   []element // its parts
	close  int       // its last bracket
	at     int       // the part that is meant; -1 when there is none
	depth  int       // steps of the path that were found
}

// find follows a path. Of members with one name the last counts, as for most readers.
func (b jsonBody) find(path jsonPath) (p place, err error) {
	p.parent = b.blanks(0)
	for depth, step := range path {
		open := b[p.parent]
		if step.index >= 0 && open != '[' || step.index < 0 && open != '{' {
			return p, fmt.Errorf("%s is no %s", orBody(path[:depth]), map[bool]string{true: "array", false: "object"}[step.index >= 0])
		}
		p.list, p.close = b.elements(p.parent)
		p.at, p.depth = -1, depth
		for i, e := range p.list {
			if step.index == i || step.index < 0 && e.name == step.name {
				p.at = i
			}
		}
		if p.at < 0 {
			return p, nil
		}
		if p.depth = depth + 1; p.depth < len(path) {
			p.parent = p.list[p.at].value.from
		}
	}
	return p, nil
}

func orBody(path jsonPath) string {
	if len(path) == 0 {
		return "the body"
	}
	return path.String()
}

// value is the text of the value that a path leads to; ok is false when it leads to none.
func (b jsonBody) value(path jsonPath) (text stretch, ok bool) {
	p, err := b.find(path)
	if err != nil || p.depth < len(path) {
		return stretch{}, false
	}
	return p.list[p.at].value, true
}

// splice is b with a stretch of it replaced. It is a new document.
func (b jsonBody) splice(s stretch, text string) jsonBody {
	out := make([]byte, 0, len(b)-(s.to-s.from)+len(text))
	return append(append(append(out, b[:s.from]...), text...), b[s.to:]...)
}

// set gives the value at path, making the members that lead there; from is what was there, "" for nothing.
func (b jsonBody) set(path jsonPath, value string) (out jsonBody, from string, err error) {
	p, err := b.find(path)
	if err != nil {
		return nil, "", err
	}
	if p.depth == len(path) {
		s := p.list[p.at].value
		return b.splice(s, value), string(b[s.from:s.to]), nil
	}
	for i := len(path) - 1; i > p.depth; i-- {
		if path[i].index >= 0 {
			return nil, "", fmt.Errorf("%s is not there", path[:i])
		}
		value = "{" + quoted(path[i].name) + ":" + value + "}"
	}
	step := path[p.depth]
	if step.index > len(p.list) {
		return nil, "", fmt.Errorf("%s is not there", path[:p.depth+1])
	}
	if step.index < 0 {
		value = quoted(step.name) + ":" + value
	}
	at := p.parent + 1
	if n := len(p.list); n > 0 {
		at, value = p.list[n-1].value.to, ","+value
	}
	return b.splice(stretch{at, at}, value), "", nil
}

// unset removes the value at path; from is what was there, "" when there was nothing to remove.
func (b jsonBody) unset(path jsonPath) (out jsonBody, from string, err error) {
	for out = b; ; { // a name may stand there twice
		p, err := out.find(path)
		if err != nil || p.depth < len(path) {
			return out, from, nil // a path that leads nowhere has nothing to remove
		}
		e := p.list[p.at]
		s := stretch{e.start, e.value.to}
		switch {
		case p.at > 0:
			s.from = p.list[p.at-1].value.to
		case len(p.list) > 1:
			s.to = p.list[1].start
		}
		from = string(out[e.value.from:e.value.to])
		out = out.splice(s, "")
		if path[len(path)-1].index >= 0 {
			return out, from, nil
		}
	}
}

// quoted is s as a JSON string, with nothing escaped that need not be.
func quoted(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
