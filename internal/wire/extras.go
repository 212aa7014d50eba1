package wire

import (
	"bytes"
	"encoding/json"

	"github.com/valyala/fastjson"
)

// The bounds of what is kept beside the dialect: an answer has a handful of extra keys, and one that has thousands must
// not double the memory of its body.
const (
	maxExtras     = 64
	maxExtraBytes = 1 << 20
)

// keepExtras keeps the top-level fields of an event that want names, each verbatim. A later value replaces an earlier one.
func (a *answer) keepExtras(data []byte, want func(key string) bool) {
	eachField(data, func(key, value []byte) {
		if string(value) == "null" || !want(string(key)) {
			return
		}
		if a.extras == nil {
			a.extras = map[string]json.RawMessage{}
		}
		_, known := a.extras[string(key)]
		if len(value) > maxExtraBytes || !known && len(a.extras) >= maxExtras {
			a.omitted++
			return
		}
		a.extras[string(key)] = bytes.Clone(value)
	})
}

// keepUnknown keeps the top-level fields that a dialect does not know, if an event has any.
func (a *answer) keepUnknown(obj *fastjson.Object, data []byte, knows func(key string) bool) {
	obj.Visit(func(key []byte, v *fastjson.Value) {
		a.event.unknown = a.event.unknown || present(v) && !knows(string(key))
	})
	if a.event.unknown {
		a.keepExtras(data, func(key string) bool { return !knows(key) })
	}
}

// eachField calls visit for the fields of a JSON object with the raw text of key and value. It stops where the text is
// not JSON.
func eachField(data []byte, visit func(key, value []byte)) {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return
	}
	i++
	for {
		i = skipSpace(data, i)
		if i >= len(data) || data[i] != '"' {
			return
		}
		keyEnd := skipString(data, i)
		key := data[i+1 : max(keyEnd-1, i+1)]
		i = skipSpace(data, keyEnd)
		if i >= len(data) || data[i] != ':' {
			return
		}
		i = skipSpace(data, i+1)
		end := skipValue(data, i)
		if end == i {
			return
		}
		visit(key, data[i:end])
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ',' {
			return
		}
		i++
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			i = skipString(b, i)
		case c == '{' || c == '[':
			depth++
			i++
		case c == '}' || c == ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case depth > 0:
			i++
			continue
		case isDelimiter(c):
			return i
		default: // a number or a word: up to what cannot be part of it
			for i < len(b) && !isDelimiter(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return len(b)
}
