package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/benchproxy/benchproxy/internal/report"
)

// printSection shows a section of a report on a terminal. What is folded on a page is only counted, and charts are left to
// the page.
func printSection(w io.Writer, s *report.Section, part bool) {
	title := printable(s.Title)
	if part {
		title = "-- " + title
	}
	fmt.Fprintf(w, "\n%s\n", title)
	if s.Folded {
		fmt.Fprintf(w, "%d rows; --html, --md and --json show them\n", len(s.Table.Rows)+s.Table.Omitted)
		return
	}
	for _, p := range s.Lead {
		fmt.Fprintln(w, printable(p))
	}
	if len(s.Table.Columns) > 0 {
		printTable(w, &s.Table)
	}
	for _, n := range s.Notes {
		fmt.Fprintln(w, printable(n))
	}
	for i := range s.Excerpts {
		printExcerpt(w, &s.Excerpts[i])
	}
	for i := range s.Parts {
		printSection(w, &s.Parts[i], true)
	}
}

func printTable(w io.Writer, t *report.Table) {
	out := table{}
	for _, c := range t.Columns {
		head := strings.ToUpper(c.Name)
		if c.Unit != "" {
			head += " " + c.Unit
		}
		out.cols = append(out.cols, column{head: head, right: c.Number})
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = printable(c.Show(t.Columns[i]))
		}
		out.add(cells...)
	}
	out.print(w)
	if t.Omitted > 0 {
		fmt.Fprintf(w, "and %d more are left out\n", t.Omitted)
	}
}

func printExcerpt(w io.Writer, e *report.Excerpt) {
	fmt.Fprintln(w, printable(e.Title))
	for i, text := range e.Texts {
		fmt.Fprintf(w, "  %s  …%s▸%s\n", printable(e.Sides[i]), printable(e.Shared), printable(shorten(text)))
	}
}
