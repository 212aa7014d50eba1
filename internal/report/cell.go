package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Cell is one value. The zero value is an absent one.
type Cell struct {
	text   string // of a text cell; of an absent one, the words that stand for it ("" is a dash)
	number float64
	kind   cellKind
	reason exchange.Reason
	basis  exchange.Basis
	tone   Tone
	title  string
	refs   []string
	spread *Spread
	anchor string // the cell is what refs of others name
}

type cellKind uint8

const (
	absentCell cellKind = iota
	textCell
	numberCell
)

// Tone is what a value means for the reader.
type Tone string

// The tones. They are told by a sign as well as by a color.
const (
	Good   Tone = "good"
	Bad    Tone = "bad"
	Marked Tone = "marked" // to be read with care
)

// Spread is how sure a number is.
type Spread struct {
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
	N  int     `json:"n"` // samples behind the number
	// Kind says what Lo and Hi are: SpreadInterval or SpreadRange.
	Kind string `json:"kind"`
}

// Kinds of a spread.
const (
	SpreadInterval = "interval" // holds the true value with 95 % confidence
	SpreadRange    = "range"    // least and largest sample: no statement about the next one
)

// Text is a cell of words.
func Text(s string) Cell { return Cell{text: s, kind: textCell} }

// Number is a cell of a number; one that is not finite is absent.
func Number(v float64) Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Absent("not_finite")
	}
	return Cell{number: v, kind: numberCell}
}

// Count is a cell of a whole number.
func Count[T int | int64 | uint64](n T) Cell { return Number(float64(n)) }

// Optional is a cell of a number that may be missing, and why.
func Optional(v *float64, why exchange.Reason) Cell {
	if v == nil {
		return Absent(why)
	}
	return Number(*v)
}

// Absent is a cell without a value, and why it has none.
func Absent(why exchange.Reason) Cell { return Cell{reason: why} }

// AbsentAs is a cell without a value that words stand for: n/a, fail, partial 1/3.
func AbsentAs(words string, why exchange.Reason) Cell { return Cell{text: words, reason: why} }

// Figure is a cell of a metric: its value, or the reason for its absence.
func Figure(f exchange.Figure) Cell {
	if !f.Present() {
		return Absent(f.Reason)
	}
	return Number(f.Value).Based(f.Basis)
}

// Based is the cell with the basis of its number.
func (c Cell) Based(b exchange.Basis) Cell {
	if c.kind == numberCell {
		c.basis = b
	}
	return c
}

// Toned is the cell with a meaning.
func (c Cell) Toned(t Tone) Cell {
	c.tone = t
	return c
}

// Tone is the meaning of the cell; "" for none.
func (c Cell) Tone() Tone { return c.tone }

// Titled is the cell with words that tell more of it.
func (c Cell) Titled(words string) Cell {
	c.title = words
	return c
}

// mostRefs bounds the exchanges that one cell names.
const mostRefs = 8

// Of is the cell with the exchanges that it rests on, the first eight.
func (c Cell) Of(ids ...exchange.ID) Cell {
	for _, id := range ids[:min(len(ids), mostRefs)] {
		c.refs = append(c.refs, string(id))
	}
	return c
}

// In is the cell with what it rests on: exchanges or sections of the report, by their id.
func (c Cell) In(refs ...string) Cell {
	c.refs = append(c.refs, refs[:min(len(refs), mostRefs)]...)
	return c
}

// Refs are what the cell rests on: exchanges or sections of the report, by their id.
func (c Cell) Refs() []string { return slices.Clone(c.refs) }

// Anchored is the cell as what the refs of others lead to.
func (c Cell) Anchored(id string) Cell {
	c.anchor = id
	return c
}

// Anchor is the id that refs of others name the cell by; "" for none.
func (c Cell) Anchor() string { return c.anchor }

// Spread is the cell with how sure its number is.
func (c Cell) Spread(s Spread) Cell {
	if c.kind == numberCell {
		c.spread = &s
	}
	return c
}

// Spreads is how sure the number is; ok is false when that is not known.
func (c Cell) Spreads() (s Spread, ok bool) {
	if c.spread == nil {
		return Spread{}, false
	}
	return *c.spread, true
}

// Words is the text of the cell; ok is false for a number and for what is absent.
func (c Cell) Words() (s string, ok bool) { return c.text, c.kind == textCell }

// Value is the number of the cell; ok is false when it has none.
func (c Cell) Value() (v float64, ok bool) { return c.number, c.kind == numberCell }

// Show is the cell as words, in its column: a dash or its own words for what is absent, a tilde before an estimate.
func (c Cell) Show(col Column) string {
	switch c.kind {
	case textCell:
		return c.text
	case numberCell:
		s := strconv.FormatFloat(c.number, 'f', col.Digits, 64) + col.Suffix
		if c.basis == exchange.BasisEstimated {
			return "~" + s
		}
		return s
	}
	if c.text != "" {
		return c.text
	}
	return "—"
}

// tell is what a reader learns who asks for more: spread, basis, reason and what the number rests on.
func (c Cell) tell(col Column) string {
	var parts []string
	if c.title != "" {
		parts = append(parts, c.title)
	}
	if s := c.spread; s != nil {
		words := "95 % interval"
		if s.Kind == SpreadRange {
			words = "range"
		}
		number := func(v float64) string { return strconv.FormatFloat(v, 'f', col.Digits, 64) }
		parts = append(parts, words+" "+number(s.Lo)+" to "+number(s.Hi)+", n "+strconv.Itoa(s.N))
	}
	if c.basis != "" {
		parts = append(parts, string(c.basis))
	}
	if c.reason != "" {
		parts = append(parts, strings.ReplaceAll(string(c.reason), "_", " "))
	}
	return strings.Join(parts, "; ")
}
