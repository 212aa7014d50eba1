package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// screen is what is drawn on a terminal below all that was printed: lines that are taken away and drawn again. It never
// takes more rows than the terminal has, or they would scroll out of reach and fill the scrollback; and it counts the rows
// anew before it takes them away, since a terminal that became narrower wraps what is on it.
type screen struct {
	out    io.Writer
	width  func(io.Writer) (int, bool)
	height func(io.Writer) int // nil, or 0, where it is not known
	drawn  []string
	at     time.Time // when
	open   bool      // the cursor stands behind the last line, not below it

	resumed <-chan os.Signal // the process goes on after it was stopped, as by Ctrl-Z: a shell wrote below what is drawn
}

func newScreen(e env, out io.Writer) screen {
	return screen{out: out, width: e.TTY, height: e.Height, resumed: e.Resumed}
}

// A process that was stopped goes on with a tick that is overdue, and the word of it may come a moment later.
const (
	longUndrawn = time.Second
	wordDelay   = 50 * time.Millisecond
)

// left reports whether the process was stopped since something was drawn.
func (s *screen) left() bool {
	select {
	case <-s.resumed:
		return true
	default:
	}
	if s.resumed == nil || len(s.drawn) == 0 || clock.Since(s.at) < longUndrawn {
		return false
	}
	late := time.NewTimer(wordDelay)
	defer late.Stop()
	select {
	case <-s.resumed:
		return true
	case <-late.C:
		return false
	}
}

// columns is how wide the terminal is now.
func (s *screen) columns() int {
	width, _ := s.width(s.out)
	return max(width, 1)
}

// picture is the text that draws lines, as many and as much of each as there is room for.
func (s *screen) picture(lines []string) string {
	if s.height != nil {
		if height := s.height(s.out); height > 0 {
			lines = lines[max(0, len(lines)-max(height-2, 1)):] // the last ones: a bar stands there
		}
	}
	columns := s.columns()
	s.drawn, s.at = make([]string, len(lines)), clock.Now()
	for i, l := range lines {
		s.drawn[i] = runewidth.Truncate(printable(l), max(columns-1, 1), "…")
	}
	text := strings.Join(s.drawn, "\n")
	if len(lines) > 0 && !s.open {
		text += "\n"
	}
	return text
}

// erasure is the text that takes away what is drawn: the cursor goes up over it and the rest of the screen is cleared. What
// others wrote below stays, and it with that.
func (s *screen) erasure() string {
	if s.left() {
		s.drawn = nil
	}
	if len(s.drawn) == 0 {
		return ""
	}
	columns, rows := s.columns(), 0
	for _, l := range s.drawn {
		rows += max(1, (runewidth.StringWidth(l)+columns-1)/columns)
	}
	s.drawn = nil
	if s.open {
		rows--
	}
	if rows == 0 {
		return "\r\x1b[K"
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", rows)
}

// lively reports whether e's stderr is a terminal on which something may be drawn again and again.
func lively(e env) bool {
	_, tty := e.TTY(e.Stderr)
	return tty && e.Getenv("TERM") != "dumb" && e.Getenv("CI") == ""
}
