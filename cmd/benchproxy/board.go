package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// board shows exchanges as they end: a table that grows, with the running ones below it on a terminal; plain lines
// elsewhere; JSON lines for scripts. Rows go to stdout, the running ones to stderr.
type board struct {
	out, err io.Writer
	form     boardForm
	running  func() []string // lines about what runs now; nil for none
	width    int

	mu    sync.Mutex
	rows  *rows
	begun bool
	below int // lines of the running part on the screen
	total measure.Totals
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
	b := &board{out: e.Stdout, err: e.Stderr, form: form, running: running, total: measure.Totals{Limit: sampleLimit}}
	if form == boardLines {
		width, outTTY := e.TTY(e.Stdout)
		if _, errTTY := e.TTY(e.Stderr); outTTY && errTTY && e.Getenv("TERM") != "dumb" && e.Getenv("CI") == "" {
			b.form, b.width = boardLive, width
		}
	}
	b.rows = newRows(exchangeColumns(), b.width)
	return b
}

// Row shows an exchange that has ended. It is safe for concurrent use.
func (b *board) Row(s exchange.Summary) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total.Add(&s)
	switch b.form {
	case boardJSON:
		_ = json.NewEncoder(b.out).Encode(s) // when nobody reads any more, the streams go on
	case boardLines, boardLive:
		b.erase()
		if !b.begun {
			fmt.Fprintln(b.out, b.rows.head())
			b.begun = true
		}
		fmt.Fprintln(b.out, b.rows.line(exchangeCells(s)))
		b.draw()
	}
}

// Total is what the exchanges shown so far come to.
func (b *board) Total() measure.Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total.Run()
}

// Run keeps the running part current until ctx ends, and then removes it.
func (b *board) Run(ctx context.Context) {
	if b.form != boardLive || b.running == nil {
		return
	}
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			b.mu.Lock()
			b.erase()
			b.mu.Unlock()
			return
		case <-tick.C:
			b.mu.Lock()
			b.erase()
			b.draw()
			b.mu.Unlock()
		}
	}
}

// erase removes the running part: the cursor goes up over it and the rest of the screen is cleared.
func (b *board) erase() {
	if b.below > 0 {
		fmt.Fprintf(b.err, "\x1b[%dA\r\x1b[J", b.below)
		b.below = 0
	}
}

func (b *board) draw() {
	if b.form != boardLive || b.running == nil {
		return
	}
	lines := b.running()
	for i, l := range lines {
		lines[i] = runewidth.Truncate(printable(l), b.width-1, "…")
	}
	if len(lines) > 0 {
		fmt.Fprintln(b.err, strings.Join(lines, "\n"))
	}
	b.below = len(lines)
}
