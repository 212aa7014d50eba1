package exchange

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
)

// appendTo adds the figures to the end of a JSON object as the fields of figuresJSON, byte for byte as encoding/json
// writes them. A listing writes many rows, and reflection over three maps was most of the cost of one.
func (fs Figures) appendTo(object []byte) (b []byte, err error) {
	names := slices.Sorted(maps.Keys(fs))
	b = append(object[:len(object)-1], `,"metrics":{`...)
	for i, name := range names {
		b = appendKey(b, name, i == 0)
		if f := fs[name]; !f.Present() {
			b = append(b, "null"...)
		} else if b, err = appendNumber(b, f.Value); err != nil {
			return nil, err
		}
	}
	b = append(b, `},"basis":{`...)
	first := true
	for _, name := range names {
		if f := fs[name]; f.Present() {
			b = appendWord(appendKey(b, name, first), string(f.Basis))
			first = false
		}
	}
	b = append(b, `},"absent":{`...)
	first = true
	for _, name := range names {
		if f := fs[name]; !f.Present() {
			b = appendWord(appendKey(b, name, first), string(f.Reason))
			first = false
		}
	}
	return append(b, "}}"...), nil
}

func appendKey(b []byte, name string, first bool) []byte {
	if !first {
		b = append(b, ',')
	}
	return append(appendWord(b, name), ':')
}

// appendWord adds a string. Names, bases and reasons are plain words, which need no escaping; anything else gets it.
func appendWord(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			q, _ := json.Marshal(s) // a string always marshals
			return append(b, q...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendNumber adds a number; NaN and the infinities are an error.
func appendNumber(b []byte, v float64) ([]byte, error) {
	if a := math.Abs(v); a == 0 || a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(b, v, 'f', -1, 64), nil
	}
	q, err := json.Marshal(v)
	return append(b, q...), err
}
