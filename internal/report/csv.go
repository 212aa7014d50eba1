package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// CSV writes the table with one line of heads. Numbers are whole, as they were derived; what is absent is empty.
func (t *Table) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	line := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		line[i] = c.Name
	}
	if err := out.Write(line); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	for _, row := range t.Rows {
		for i, c := range row {
			line[i] = c.plain()
		}
		if err := out.Write(line); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// plain is the cell for programs. A text that a spreadsheet would take for a formula is quoted by an apostrophe: names come
// from clients and engines.
func (c Cell) plain() string {
	switch c.kind {
	case numberCell:
		return strconv.FormatFloat(c.number, 'f', -1, 64)
	case textCell:
		text := printable(c.text)
		if text != "" && isFormula(text[0]) {
			return "'" + text
		}
		return text
	}
	return ""
}

func isFormula(first byte) bool {
	switch first {
	case '=', '+', '-', '@':
		return true
	}
	return false
}
