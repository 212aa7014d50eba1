package report

import "github.com/benchproxy/benchproxy/internal/chart"

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

// Section is one subject of a report: words, charts and a table under a heading, and the parts it falls into.
type Section struct {
	ID       string    `json:"id"` // of the section, stable between versions: failures, waves ...
	Title    string    `json:"title"`
	Lead     []string  `json:"lead,omitempty"` // paragraphs before everything else
	Charts   []Chart   `json:"charts,omitempty"`
	Table    Table     `json:"table"`
	Notes    []string  `json:"notes,omitempty"`    // below the table
	Excerpts []Excerpt `json:"excerpts,omitempty"` // texts beside each other
	Parts    []Section `json:"parts,omitempty"`
	Folded   bool      `json:"folded,omitempty"` // HTML shows it closed: long evidence
}

// Chart is a drawing whose numbers stand in the table of its section, so that what has no drawings loses none.
type Chart struct {
	ID    string    `json:"id"`
	Title string    `json:"title"`
	SVG   chart.SVG `json:"-"`
}

// Excerpt is what two sides answered to one request, from where they part.
type Excerpt struct {
	Title  string   `json:"title"`
	Shared string   `json:"shared"` // the last characters that are the same
	Sides  []string `json:"sides"`  // whose text it is
	Texts  []string `json:"texts"`  // how each goes on
	Refs   []string `json:"refs"`   // exchange of each; "" when there is none
}

// Table is rows of cells under typed columns.
type Table struct {
	Columns []Column `json:"columns"`
	Rows    [][]Cell `json:"rows"`
	// Omitted is how many more rows there are than Rows holds: a list of failures has an end that people read.
	Omitted int `json:"omitted,omitempty"`

	// What every table of numbers says of itself; "" leaves the line out.
	Formula string `json:"formula,omitempty"` // how the numbers are made
	Source  string `json:"source,omitempty"`  // what they are made of
	Sample  string `json:"sample,omitempty"`  // of how many
	Spread  string `json:"spread,omitempty"`  // what stands for the noise
}

// Column is one column of a table.
type Column struct {
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Number bool   `json:"number,omitempty"` // its cells are numbers, or absent
	Digits int    `json:"digits,omitempty"` // behind the point, of a number as text
	Suffix string `json:"suffix,omitempty"` // behind each number as text
	Key    bool   `json:"key,omitempty"`    // its text is part of the row's name, by which reports of two times are compared
	// Better says which direction is good: higher or lower; "" for neither.
	Better string `json:"better,omitempty"`
}

// The directions of Column.Better.
const (
	Higher = "higher"
	Lower  = "lower"
)

// Head is the heading of the column: its name and unit.
func (c Column) Head() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " " + c.Unit
}

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }
