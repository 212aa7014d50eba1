package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// column is one column of a table: numbers stand right, words left.
type column struct {
	head  string
	right bool
	width int // least width; a longer cell of a streamed table is cut, a collected table grows
	drop  int // > 0: may be left out where the screen is narrow, the highest first
}

// table collects rows and prints them aligned.
type table struct {
	cols []column
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) {
	fitHeads(t.cols)
	for _, r := range t.rows {
		for i, c := range r {
			t.cols[i].width = max(t.cols[i].width, runewidth.StringWidth(c))
		}
	}
	fmt.Fprintln(w, headLine(t.cols))
	for _, r := range t.rows {
		fmt.Fprintln(w, rowLine(t.cols, r))
	}
}

// rows lays out a table whose rows are printed as they come. Once made it does not change.
type rows struct {
	cols   []column
	kept   []int // places of cols in the cells of a row
	screen int   // columns; 0 for no limit
}

// leastModel is how narrow the column of models may get.
const leastModel = 10

// newRows fits cols to a screen of that many columns, 0 for no limit: it leaves out what may be, and then shortens the
// models.
func newRows(cols []column, screen int) *rows {
	fitHeads(cols)
	r := &rows{cols: cols, screen: screen}
	for i := range cols {
		r.kept = append(r.kept, i)
	}
	for over := r.width() - screen; screen > 0 && over > 0; over = r.width() - screen {
		most := 0
		for i, c := range r.cols {
			if c.drop > r.cols[most].drop {
				most = i
			}
		}
		if r.cols[most].drop == 0 {
			m := slices.IndexFunc(r.cols, func(c column) bool { return c.head == modelHead })
			r.cols[m].width = max(leastModel, r.cols[m].width-over)
			break
		}
		r.cols, r.kept = slices.Delete(slices.Clone(r.cols), most, most+1), slices.Delete(r.kept, most, most+1)
	}
	return r
}

func (r *rows) width() int {
	total := 2 * (len(r.cols) - 1)
	for _, c := range r.cols {
		total += c.width
	}
	return total
}

func (r *rows) head() string { return headLine(r.cols) }

// line is one row; it takes the cells of all columns.
func (r *rows) line(cells []string) string {
	kept := make([]string, len(r.kept))
	for i, at := range r.kept {
		kept[i] = cells[at]
	}
	line := rowLine(r.cols, kept)
	if least := r.width(); r.screen >= least { // what goes over is behind the outcome
		line = runewidth.Truncate(line, r.screen, "…")
	}
	return line
}

// fitHeads makes each column at least as wide as its head.
func fitHeads(cols []column) {
	for i, c := range cols {
		cols[i].width = max(c.width, runewidth.StringWidth(c.head))
	}
}

func headLine(cols []column) string {
	heads := make([]string, len(cols))
	for i, c := range cols {
		heads[i] = c.head
	}
	return rowLine(cols, heads)
}

// rowLine lays out one row. Cells that are too wide are cut with an ellipsis, so that a stream of rows stays aligned.
func rowLine(cols []column, cells []string) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		last := i == len(cells)-1
		if !last || cols[i].right {
			c = runewidth.Truncate(c, cols[i].width, "…")
		}
		switch {
		case cols[i].right:
			b.WriteString(runewidth.FillLeft(c, cols[i].width))
		case last:
			b.WriteString(c)
		default:
			b.WriteString(runewidth.FillRight(c, cols[i].width))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// printable replaces what would move a terminal's cursor or recolor it: names come from clients and engines.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, s)
}

const (
	modelHead  = "MODEL"
	modelWidth = 22
)

// exchangeColumns is the layout of every listing of exchanges.
func exchangeColumns() []column {
	return []column{
		{head: "#", right: true, width: 4}, {head: modelHead, width: modelWidth}, {head: "PROMPT", right: true, width: 6, drop: 3},
		{head: "OUTPUT", right: true, width: 6, drop: 1}, {head: "TTFT ms", right: true, width: 8},
		{head: "PREFILL tok/s", right: true, width: 13, drop: 4}, {head: "DECODE tok/s", right: true, width: 12},
		{head: "TOTAL ms", right: true, width: 9, drop: 2}, {head: "OUTCOME", width: 18},
	}
}

// exchangeCells is one exchange in the layout of exchangeColumns.
func exchangeCells(s exchange.Summary) []string {
	name := s.Model
	if name == "" {
		name = s.Method + " " + s.Path
	}
	return []string{
		strconv.FormatUint(s.Seq, 10), printable(name), figure(s.Metrics["prompt_tokens"], 0), figure(s.Metrics["completion_tokens"], 0),
		figure(s.Metrics["ttft_ms"], 1), figure(s.Metrics["prefill_tps"], 1), figure(s.Metrics["decode_tps"], 1),
		figure(s.Metrics["total_wall_ms"], 1), verdict(s),
	}
}

// verdict is the outcome with what makes it special: the status or cause of a failure, the flags of a success.
func verdict(s exchange.Summary) string {
	var notes []string
	if s.Outcome == exchange.OutcomeUpstreamError && s.Status != 0 {
		notes = append(notes, strconv.Itoa(s.Status))
	} else if s.Outcome != exchange.OutcomeComplete && s.Cause != nil {
		notes = append(notes, s.Cause.Code)
	}
	notes = append(notes, s.Flags...)
	if s.State == exchange.StateTruncated {
		notes = append(notes, "record truncated")
	}
	if len(notes) == 0 {
		return string(s.Outcome)
	}
	return printable(fmt.Sprintf("%s (%s)", s.Outcome, strings.Join(notes, ", ")))
}

// figure is a number for a table: "-" when absent, "~" before an estimate.
func figure(f exchange.Figure, digits int) string {
	if !f.Present() {
		return "-"
	}
	s := strconv.FormatFloat(f.Value, 'f', digits, 64)
	if f.Basis == exchange.BasisEstimated {
		return "~" + s
	}
	return s
}

// bytesText is a size for people.
func bytesText(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
