package main

import (
	"fmt"
	"os"
	"strings"
)

// writeMarkdown writes the results to a file. A file is replaced as a whole.
func (r *report) writeMarkdown(path string) error {
	if err := os.WriteFile(path, []byte(r.markdown()), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// markdown is the report as a page.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What benchproxy adds, beside other proxies\n\n")
	fmt.Fprintf(&b, "Written by `%s` at %s, of commit %s; not by hand.\n\n", dash(r.Command), r.Date, dash(r.Commit))
	fmt.Fprintf(&b, "Engine, proxies and clients share the machine, on loopback: read the ratios in this run, not absolutes.\n\n")
	for _, l := range r.heading() {
		fmt.Fprintf(&b, "- %s\n", l)
	}
	for _, s := range r.sheets() {
		fmt.Fprintf(&b, "\n## %s%s\n\n", strings.ToUpper(s.title[:1]), s.title[1:])
		b.WriteString("| ")
		writeRow(&b, s.head)
		b.WriteString("|---|" + strings.Repeat("--:|", len(s.head)) + "\n")
		for _, row := range s.rows {
			writeRow(&b, row)
		}
	}
	b.WriteString("\n## How to read it\n\n")
	for _, n := range r.notes() {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	return b.String()
}

func writeRow(b *strings.Builder, cells []string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}
