package report

import (
	"slices"
	"strings"
)

// Named is one number of a report under a name that reports of two times share.
type Named struct {
	Name  string  `json:"name"` // section, row and column
	Value float64 `json:"value"`
	Lo    float64 `json:"lo,omitempty"` // with Hi the spread, 0 for none
	Hi    float64 `json:"hi,omitempty"`
	N     int     `json:"n,omitempty"`

	column Column
	cell   Cell
	where  []string // section, row, column

	section string // its id
}

// numbers are all numbers of the document that have a name: those of rows that a key column names.
func (d *Document) numbers() []Named {
	out := []Named{}
	for i := range d.Sections {
		out = d.Sections[i].numbers(out)
	}
	return out
}

func (s *Section) numbers(out []Named) []Named {
	seen := map[string]bool{}
	for _, row := range s.Table.Rows {
		var key []string
		for i, c := range s.Table.Columns {
			if c.Key {
				key = append(key, row[i].Show(c))
			}
		}
		name := strings.Join(key, ", ")
		if name == "" || seen[name] { // a row that is not the only one of its name has none
			continue
		}
		seen[name] = true
		for i, c := range s.Table.Columns {
			v, ok := row[i].Value()
			if !ok || c.Key || !c.Number {
				continue
			}
			if slices.ContainsFunc(s.Table.Columns[:i], func(o Column) bool { return o.Name == c.Name }) {
				continue // the first one has the name
			}
			n := Named{Value: v, column: c, cell: row[i], where: []string{s.Title, name, c.Name}, section: s.ID}
			n.Name = s.ID + " | " + name + " | " + c.Name
			if sp := row[i].spread; sp != nil {
				n.Lo, n.Hi, n.N = sp.Lo, sp.Hi, sp.N
			}
			out = append(out, n)
		}
	}
	for i := range s.Parts {
		out = s.Parts[i].numbers(out)
	}
	return out
}
