package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Markdown writes the document as GitHub's Markdown.
func (d *Document) Markdown(w io.Writer) error {
	b := bufio.NewWriter(w) // it keeps its first error until Flush
	fmt.Fprintf(b, "# %s\n", inline(d.Title))
	if len(d.Summary) > 0 {
		fmt.Fprintln(b)
	}
	for i, s := range d.Summary {
		if i == 0 {
			fmt.Fprintf(b, "**%s**\n", inline(s))
		} else {
			fmt.Fprintf(b, "%s\n", inline(s))
		}
	}
	if len(d.Facts) > 0 {
		fmt.Fprintln(b)
	}
	for _, f := range d.Facts {
		fmt.Fprintf(b, "- %s: %s\n", inline(f.Name), inline(f.Value))
	}
	for i := range d.Sections {
		d.Sections[i].markdown(b, "##")
	}
	return b.Flush()
}

// deepest is the last level of headings.
const deepest = "######"

// markdown writes a section under a heading of that level. Charts are left out: their numbers stand in the table.
func (s *Section) markdown(b *bufio.Writer, level string) {
	fmt.Fprintf(b, "\n%s %s\n", level, inline(s.Title))
	for _, p := range s.Lead {
		fmt.Fprintf(b, "\n%s\n", inline(p))
	}
	if len(s.Table.Columns) > 0 {
		fmt.Fprintln(b)
		s.Table.markdown(b)
	}
	for _, told := range s.Table.tells() {
		fmt.Fprintf(b, "\n*%s:* %s\n", told.Name, inline(told.Value))
	}
	for _, n := range s.Notes {
		fmt.Fprintf(b, "\n%s\n", inline(n))
	}
	for _, e := range s.Excerpts {
		fmt.Fprintf(b, "\n%s\n\n", inline(e.Title))
		for i, text := range e.Texts {
			fmt.Fprintf(b, "> **%s:** …%s▸%s\n>\n", inline(e.Sides[i]), inline(e.Shared), inline(text))
		}
	}
	if len(level) < len(deepest) {
		level += "#"
	}
	for i := range s.Parts {
		s.Parts[i].markdown(b, level)
	}
}

// tells are the lines that a table says of itself.
func (t *Table) tells() []Fact {
	var out []Fact
	for _, f := range []Fact{{"Formula", t.Formula}, {"Source", t.Source}, {"Sample", t.Sample}, {"Spread", t.Spread}} {
		if f.Value != "" {
			out = append(out, f)
		}
	}
	return out
}

// markdown writes a table, numbers to the right.
func (t *Table) markdown(b *bufio.Writer) {
	rule := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		fmt.Fprintf(b, "| %s ", inline(c.Head()))
		rule[i] = "---"
		if c.Number {
			rule[i] = "---:"
		}
	}
	fmt.Fprintf(b, "|\n|%s|\n", strings.Join(rule, "|"))
	for _, row := range t.Rows {
		for i, c := range row {
			fmt.Fprintf(b, "| %s ", inline(c.Show(t.Columns[i])))
		}
		fmt.Fprintln(b, "|")
	}
	if t.Omitted > 0 {
		fmt.Fprintf(b, "\n%d more rows are left out here.\n", t.Omitted)
	}
}

// marks are the characters that mean something to Markdown, or to the HTML inside of it.
var marks = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;",
	"[", `\[`, "]", `\]`, "#", `\#`, "~", `\~`, "!", `\!`)

// inline is a text as Markdown shows it, on one line.
func inline(s string) string { return marks.Replace(printable(s)) }

// printable is a text on one line without what has no shape, such as the controls of a terminal.
func printable(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, s)), " ")
}
