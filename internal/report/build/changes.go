package build

import (
	"fmt"

	"github.com/benchproxy/benchproxy/internal/report"
)

// changes is what moved since an older report: each number that both have, with whether it moved beyond the noise of both.
// They stand here and in no other section, so that the headline is of now alone.
func changes(now, then *report.Document, name string) report.Section {
	s := report.Section{ID: "changes", Title: "Changes since " + name}
	s.Table = report.Table{Formula: "this report / the older one", Sample: "as in the section of each number", Source: "numbers that stand under one name in both reports", Spread: "beyond noise: the spreads of both do not overlap and the difference is 2 % or more; without a spread on both sides it is unknown",
		Columns: []report.Column{{Name: "Section", Key: true}, {Name: "Row", Key: true}, {Name: "Number", Key: true}, {Name: "was", Number: true, Digits: 2}, {Name: "is", Number: true, Digits: 2}, {Name: "ratio", Number: true, Digits: 3, Suffix: "×"}, {Name: "moved"}}}
	var quiet, unknown int
	for _, c := range report.Compare(now, then) {
		moved := report.Text("beyond noise")
		switch {
		case c.Unknown && !c.Large:
			quiet++
			continue
		case c.Unknown:
			moved = report.Text("noise unknown").Toned(report.Marked)
			unknown++
		case !c.Moved:
			quiet++
			continue
		case c.Better:
			moved = moved.Toned(report.Good)
		case c.Worse:
			moved = moved.Toned(report.Bad)
		}
		ratio := report.Absent("was_zero")
		if c.Was != 0 {
			ratio = report.Number(c.Is / c.Was)
		}
		s.Table.Add(report.Text(c.Section).In(c.SectionID), report.Text(c.Row), report.Text(c.Column), report.Number(c.Was), report.Number(c.Is), ratio, moved)
	}
	gone, added := report.Missing(now, then)
	s.Notes = []string{fmt.Sprintf("%d numbers did not move beyond noise; of %d the noise is unknown. %d numbers stand only in the older report, %d only in this one.", quiet, unknown, gone, added)}
	if len(s.Table.Rows) == 0 {
		s.Lead, s.Table = []string{"Nothing moved beyond noise."}, report.Table{}
	}
	return s
}
