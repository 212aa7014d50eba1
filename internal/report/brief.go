package report

import (
	"bytes"
	"fmt"
	"slices"
)

// Brief is the document with the sections of these ids alone, without their parts where they have more than a page of them.
func (d *Document) Brief(ids ...string) *Document {
	out := &Document{Title: d.Title, Summary: d.Summary, Facts: d.Facts}
	for _, s := range d.Sections {
		if slices.Contains(ids, s.ID) {
			out.Sections = append(out.Sections, s)
		}
	}
	return out
}

// MarkdownWithin is the document as Markdown of at most so many bytes: sections at its end are left out, and it says so.
// The head is there in any case.
func (d *Document) MarkdownWithin(limit int) ([]byte, error) {
	const reserve = 200 // for the line that tells what is left out
	short := *d
	for {
		var b bytes.Buffer
		if err := short.Markdown(&b); err != nil {
			return nil, err
		}
		if left := len(d.Sections) - len(short.Sections); left > 0 {
			fmt.Fprintf(&b, "\n%d more sections are left out here: the text may have %d bytes at most.\n", left, limit)
		}
		if b.Len() <= limit-reserve || len(short.Sections) == 0 {
			return b.Bytes(), nil
		}
		short.Sections = short.Sections[:len(short.Sections)-1]
	}
}
