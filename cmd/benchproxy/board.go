package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// board shows exchanges as they end: a table that grows, with the running ones below it on a terminal; plain lines
// elsewhere; JSON lines for scripts. Rows go to stdout, the running ones to stderr. On a terminal the table grows by what
// a person can follow: of a faster stream of rows the last ones stand in the running part, and are counted.
//
// Row only queues, and Run prints: an output that nobody reads (a pager, a stopped terminal) must not hold up the
// recorder, which calls Row.
type board struct {
	out, err io.Writer
	form     boardForm
	running  func() []string // lines about what runs now; nil for none
	rows     atomic.Pointer[rows]
	wake     chan struct{} // something waits to be printed

	begun  bool // the head of the table is printed; Run's, as are the others here
	screen screen
	width  int // that the table is laid out for
	room   rowBudget
	last   []string // rows that were not printed, the last of them
	held   int      // how many were not

	mu      sync.Mutex
	total   measure.Totals
	waiting []string // lines to print
	notes   []string // the same, for stderr
	bytes   int      // of them
	skipped int      // lines that found no room in waiting
}

// waitingBytes bounds the lines that wait to be printed.
const waitingBytes = 4 << 20

// The rows that a terminal gets: as many at once as fill a large screen, then one for every second. lastRows of those that
// are not printed are shown.
const (
	rowBurst = 60
	rowEvery = time.Second
	lastRows = 4
)

// rowBudget grows with time up to rowBurst rows.
type rowBudget struct {
	rows float64
	at   time.Time // of the last change; zero before the first
}

// take reports whether there is room for one more row, and uses it.
func (r *rowBudget) take() bool {
	now := clock.Now()
	if r.at.IsZero() {
		r.rows = rowBurst
	} else {
		r.rows = min(rowBurst, r.rows+float64(now.Sub(r.at))/float64(rowEvery))
	}
	r.at = now
	if r.rows < 1 {
		return false
	}
	r.rows--
	return true
}

type boardForm int

const (
	boardLines boardForm = iota // a table without a running part
	boardLive                   // a table with one
	boardJSON
	boardQuiet
)

// sampleLimit bounds the exchanges whose figures a summary is made of, and with them its memory.
const sampleLimit = 100_000

// refresh is how often the running part is drawn.
const refresh = 200 * time.Millisecond

func newBoard(e env, form boardForm, running func() []string) *board {
	b := &board{out: e.Stdout, err: e.Stderr, form: form, running: running, wake: make(chan struct{}, 1), screen: newScreen(e, e.Stderr),
		total: measure.Totals{Limit: sampleLimit}}
	if form == boardLines {
		if width, tty := e.TTY(e.Stdout); tty && lively(e) {
			b.form, b.width = boardLive, width
		}
	}
	b.rows.Store(newRows(exchangeColumns(), b.width))
	return b
}

// fit lays the table out anew when the terminal became wider or narrower, with its head above the next row.
func (b *board) fit() {
	if now := b.screen.columns(); now != b.width {
		b.width, b.begun = now, false
		b.rows.Store(newRows(exchangeColumns(), now))
	}
}

// Write takes lines of a log for stderr, where they stand between the rows.
func (b *board) Write(p []byte) (int, error) {
	if text := strings.TrimRight(string(p), "\n"); text != "" {
		b.Note("%s", text)
	}
	return len(p), nil
}

// Row takes an exchange that has ended and never waits. It is safe for concurrent use.
func (b *board) Row(s exchange.Summary) {
	line := b.line(s)
	b.mu.Lock()
	b.total.Add(&s)
	switch {
	case b.form == boardQuiet:
	case b.bytes+len(line) > waitingBytes:
		b.skipped++
	default:
		b.waiting, b.bytes = append(b.waiting, line), b.bytes+len(line)
	}
	b.mu.Unlock()
	b.rouse()
}

// Note prints a line for a person on stderr, between the rows.
func (b *board) Note(format string, args ...any) {
	b.mu.Lock()
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
	b.mu.Unlock()
	b.rouse()
}

// rouse wakes Run, which may be awake already.
func (b *board) rouse() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// line is the row of s in the form of the board.
func (b *board) line(s exchange.Summary) string {
	switch b.form {
	case boardQuiet:
		return ""
	case boardJSON:
		line, err := json.Marshal(s)
		if err != nil {
			return fmt.Sprintf(`{"error":%q}`, err)
		}
		return string(line)
	}
	return b.rows.Load().line(exchangeCells(s))
}

// Total is what the exchanges shown so far come to.
func (b *board) Total() measure.Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total.Run()
}

// Run prints rows as they come and keeps the running part current until ctx ends. Then it prints what still waits and
// removes the running part.
func (b *board) Run(ctx context.Context) {
	var redraw <-chan time.Time
	if b.form == boardLive && b.running != nil {
		tick := time.NewTicker(refresh)
		defer tick.Stop()
		redraw = tick.C
	}
	for {
		select {
		case <-ctx.Done():
			b.clear()
			b.print()
			if b.held > 0 {
				note(b.err, "%d rows were not printed: they came faster than a person reads; the summary counts them", b.held)
			}
			return
		case <-b.wake:
		case <-redraw:
		}
		b.erase()
		b.print()
		b.draw()
	}
}

// print writes the lines that wait. When nobody reads them any more they go nowhere, and the streams go on.
func (b *board) print() {
	b.mu.Lock()
	lines, notes, skipped := b.waiting, b.notes, b.skipped
	b.waiting, b.notes, b.bytes, b.skipped = nil, nil, 0, 0
	b.mu.Unlock()
	if b.form == boardLive {
		lines = b.followed(lines)
	}
	if len(lines) > 0 && !b.begun && b.form != boardJSON {
		fmt.Fprintln(b.out, b.rows.Load().head())
		b.begun = true
	}
	if len(lines) > 0 {
		fmt.Fprintln(b.out, strings.Join(lines, "\n"))
	}
	for _, n := range notes {
		note(b.err, "%s", n)
	}
	if skipped > 0 {
		note(b.err, "%d rows are not shown: the output was not read in time; the record has them", skipped)
	}
}

// followed are the lines that a person can follow; the others are counted, and the last of them kept.
func (b *board) followed(lines []string) (printed []string) {
	for _, l := range lines {
		if b.room.take() {
			printed = append(printed, l)
			continue
		}
		b.held++
		b.last = append(b.last[max(0, len(b.last)-lastRows+1):], l)
	}
	return printed
}

// erase removes the running part. It reports whether there was one.
func (b *board) erase() bool {
	text := b.screen.erasure()
	if text != "" {
		fmt.Fprint(b.err, text)
	}
	return text != ""
}

// clear removes the running part, or else what a terminal echoed of the keys that ended it all.
func (b *board) clear() {
	if !b.erase() && b.form == boardLive {
		fmt.Fprint(b.err, "\r\x1b[K")
	}
}

func (b *board) draw() {
	if b.form != boardLive || b.running == nil {
		return
	}
	b.fit()
	lines := b.running()
	if b.held > 0 {
		lines = slices.Concat([]string{fmt.Sprintf("%d more ended, the last of them:", b.held)}, b.last, lines)
	}
	if text := b.screen.picture(lines); text != "" {
		fmt.Fprint(b.err, text)
	}
}
