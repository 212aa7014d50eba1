package report

import (
	"math"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Document is a report: the bottom line first, then its sections.
type Document struct {
	Title    string    `json:"title"`
	Summary  []string  `json:"summary"` // the bottom line, a sentence each
	Facts    []Fact    `json:"facts"`   // what the evidence is: run, versions, digests
	Sections []Section `json:"sections"`
}

// Fact is a name and its value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Section is a table under its heading.
type Section struct {
	ID    string   `json:"id"` // of the section, stable between versions: failures, waves ...
	Title string   `json:"title"`
	Table Table    `json:"table"`
	Notes []string `json:"notes,omitempty"` // below the table
}

// Table is rows of cells under typed columns.
type Table struct {
	Columns []Column `json:"columns"`
	Rows    [][]Cell `json:"rows"`
	// Omitted is how many more rows there are than Rows holds: a list of failures has an end that people read.
	Omitted int `json:"omitted,omitempty"`
}

// Column is one column of a table.
type Column struct {
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Number bool   `json:"number,omitempty"` // its cells are numbers, or absent
	Digits int    `json:"digits,omitempty"` // behind the point, of a number as text
}

// Head is the heading of the column: its name and unit.
func (c Column) Head() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " " + c.Unit
}

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Cell is one value. The zero value is an absent one.
type Cell struct {
	text   string
	number float64
	kind   cellKind
	reason exchange.Reason
	basis  exchange.Basis
}

type cellKind uint8

const (
	absentCell cellKind = iota
	textCell
	numberCell
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

// Absent is a cell without a value, and why it has none.
func Absent(why exchange.Reason) Cell { return Cell{reason: why} }

// Figure is a cell of a metric: its value, or the reason for its absence.
func Figure(f exchange.Figure) Cell {
	if !f.Present() {
		return Absent(f.Reason)
	}
	c := Number(f.Value)
	c.basis = f.Basis
	return c
}

// Show is the cell as words, in its column: a dash for what is absent, a tilde before an estimate.
func (c Cell) Show(col Column) string {
	switch c.kind {
	case textCell:
		return c.text
	case numberCell:
		s := strconv.FormatFloat(c.number, 'f', col.Digits, 64)
		if c.basis == exchange.BasisEstimated {
			return "~" + s
		}
		return s
	}
	return "—"
}
