package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/valyala/fastjson"
)

// The helpers of this file read one JSON value of a wanted type. null, a missing value and a value of another type are
// all absent.

// text is the content of a string. It is valid until the parser reads the next value.
func text(v *fastjson.Value) []byte {
	if v == nil || v.Type() != fastjson.TypeString {
		return nil
	}
	b, _ := v.StringBytes()
	return b
}

// word is a string, or a number in its own spelling.
func word(v *fastjson.Value) string {
	if v == nil {
		return ""
	}
	switch v.Type() {
	case fastjson.TypeString:
		return string(text(v))
	case fastjson.TypeNumber:
		return string(v.MarshalTo(nil))
	}
	return ""
}

// present reports whether v is there and not null.
func present(v *fastjson.Value) bool { return v != nil && v.Type() != fastjson.TypeNull }

// count is an optional whole number that is not negative.
type count struct {
	n  int64
	ok bool
}

// countOf reads a count; 12.0 is 12, and 1.5, -1 and "12" are absent.
func countOf(v *fastjson.Value) count {
	if v == nil || v.Type() != fastjson.TypeNumber {
		return count{}
	}
	if n, err := v.Int64(); err == nil {
		return count{n, n >= 0}
	}
	f, err := v.Float64()
	if err != nil || f < 0 || f != math.Trunc(f) || f > 1<<53 {
		return count{}
	}
	return count{int64(f), true}
}

// or is c, or d when c is absent.
func (c count) or(d count) count {
	if c.ok {
		return c
	}
	return d
}

// plus is the sum of c and d, where an absent d adds nothing. It does not overflow.
func (c count) plus(d count) count {
	if !d.ok {
		return c
	}
	if d.n > math.MaxInt64-c.n {
		return count{math.MaxInt64, c.ok}
	}
	return count{c.n + d.n, c.ok}
}

// ptr is nil for an absent count.
func (c count) ptr() *int64 {
	if !c.ok {
		return nil
	}
	n := c.n
	return &n
}

// number is a finite number, or nil.
func number(v *fastjson.Value) *float64 {
	if v == nil || v.Type() != fastjson.TypeNumber {
		return nil
	}
	f, err := v.Float64()
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// The years a moment can lie in: outside them nanoseconds do not fit an int64, or it is no time at all (Go's zero time).
const (
	firstYear = 1971
	lastYear  = 2261
)

// moment is a time in RFC 3339 in ns since 1970, or 0.
func moment(b []byte) int64 {
	if len(b) == 0 {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil || t.Year() < firstYear || t.Year() > lastYear {
		return 0
	}
	return t.UnixNano()
}

// indexOf is a position that fits an int32, or ok false.
func indexOf(v *fastjson.Value) (i int, ok bool) {
	c := countOf(v)
	return int(min(c.n, math.MaxInt32)), c.ok
}

// valid reports whether b is exactly one JSON value.
func valid(b []byte) bool { return json.Valid(b) }

// trim drops the white space of JSON around a value.
func trim(b []byte) []byte { return bytes.TrimSpace(b) }
