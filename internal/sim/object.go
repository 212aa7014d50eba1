package sim

import (
	"encoding/json"
	"strconv"
)

// member is one key of an object with its value.
type member struct {
	key   string
	value any
}

// object is a JSON object that keeps the order of its keys: the order is part of the bytes that must repeat, and of the
// likeness with the engine a dialect belongs to.
type object []member

// array is a JSON array.
type array []any

// with is a copy of o with more members behind its own.
func (o object) with(more ...member) object {
	return append(o[:len(o):len(o)], more...)
}

// encode writes a value made of objects, arrays, raw JSON and plain Go values.
func encode(v any) []byte { return appendValue(nil, v) }

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.key), ':')
			b = appendValue(b, m.value)
		}
		return append(b, '}')
	case array:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e)
		}
		return append(b, ']')
	case json.RawMessage:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return appendMarshaled(b, v)
}

// appendMarshaled is for values that need no speed: null, booleans, numbers, lists of them.
func appendMarshaled(b []byte, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil { // nothing that is written here can fail
		return append(b, "null"...)
	}
	return append(b, raw...)
}
