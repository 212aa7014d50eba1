package gates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/canon"
)

// strictJSON reads one JSON text as strictly as the evidence is held: no duplicate keys, no NaN, no invalid UTF-8, no
// number that overflows. Numbers stay json.Number, so that 1 and 1.0 are two things.
func strictJSON(text []byte) (any, error) {
	form, err := canon.JSON(text)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(form))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, finite(v)
}

// finite refuses numbers that no double holds.
func finite(v any) error {
	switch v := v.(type) {
	case json.Number:
		if f, err := strconv.ParseFloat(string(v), 64); err != nil || math.IsInf(f, 0) {
			return fmt.Errorf("number %s overflows", v)
		}
	case []any:
		for _, item := range v {
			if err := finite(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := finite(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// isInteger reports whether a number is written as an integer.
func isInteger(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }

// sameTyped compares two values of strictJSON by kind and value: 1, 1.0 and true are three things, objects have the same
// keys, and lists the same order.
func sameTyped(a, b any) bool { return sameValue(a, b, true) }

// sameInPython compares as the seed's validation does: 19 and 19.0 are one number.
func sameInPython(a, b any) bool { return sameValue(a, b, false) }

func sameValue(a, b any, typed bool) bool {
	switch a := a.(type) {
	case json.Number:
		b, number := b.(json.Number)
		return number && (!typed || isInteger(a) == isInteger(b)) && sameNumber(a, b)
	case []any:
		b, list := b.([]any)
		if !list || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i], typed) {
				return false
			}
		}
		return true
	case map[string]any:
		b, object := b.(map[string]any)
		if !object || len(a) != len(b) {
			return false
		}
		for key := range a {
			if other, there := b[key]; !there || !sameValue(a[key], other, typed) {
				return false
			}
		}
		return true
	}
	return a == b // string, bool, nil
}

// sameNumber compares exactly where both are integers, and as doubles otherwise.
func sameNumber(a, b json.Number) bool {
	if isInteger(a) && isInteger(b) {
		const minus = "-0"
		return a == b || (a == minus || a == "0") && (b == minus || b == "0")
	}
	x, _ := a.Float64() // strictJSON has read it
	y, _ := b.Float64()
	return x == y
}

// oneLine puts a text of several lines in one.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
