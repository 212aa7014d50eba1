package build

import (
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/report"
)

// markDevices writes below every table that has numbers of a run whose device is not on record that it has.
func (e *Evidence) markDevices(sections []report.Section) {
	var unknown []string
	for _, r := range e.Runs {
		if !r.deviceKnown() {
			unknown = append(unknown, r.Label)
		}
	}
	if len(unknown) > 0 {
		for i := range sections {
			e.markSection(&sections[i], unknown)
		}
	}
}

func (e *Evidence) markSection(s *report.Section, unknown []string) {
	var found []string
	if len(s.Table.Rows) > 0 {
		for _, label := range unknown {
			if tells(s, label) || slices.ContainsFunc(e.Comparisons, func(c Compared) bool {
				return (c.Reference == label || c.Candidate == label) && strings.HasSuffix(s.Title, c.name())
			}) {
				found = append(found, label)
			}
		}
	}
	if len(found) > 0 {
		s.Notes = append(s.Notes, "The device is not on record: "+strings.Join(found, ", ")+".")
	}
	for i := range s.Parts {
		e.markSection(&s.Parts[i], unknown)
	}
}

// tells reports whether a table has a column or a cell of a run.
func tells(s *report.Section, label string) bool {
	return slices.ContainsFunc(s.Table.Columns, func(c report.Column) bool { return c.Name == label }) ||
		slices.ContainsFunc(s.Table.Rows, func(row []report.Cell) bool {
			return slices.ContainsFunc(row, func(c report.Cell) bool {
				words, ok := c.Words()
				return ok && words == label
			})
		})
}
