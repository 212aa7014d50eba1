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
	for _, s := range d.Sections {
		fmt.Fprintf(b, "\n## %s\n\n", inline(s.Title))
		s.Table.markdown(b)
		for _, n := range s.Notes {
			fmt.Fprintf(b, "\n%s\n", inline(n))
		}
	}
	return b.Flush()
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
