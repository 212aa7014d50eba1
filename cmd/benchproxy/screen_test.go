package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/web"
)

// terminalOf is a screen of a terminal whose size may change.
func terminalOf(width, height *int) screen {
	return newScreen(env{TTY: func(io.Writer) (int, bool) { return *width, true }, Height: func(io.Writer) int { return *height }}, io.Discard)
}

// TestScreenTakesAwayWhatItDrew holds that as many rows are taken away as the drawn lines take on the terminal of now.
func TestScreenTakesAwayWhatItDrew(t *testing.T) {
	width, height := 40, 20
	for _, open := range []bool{false, true} {
		s := terminalOf(&width, &height)
		s.open = open
		if got := s.erasure(); got != "" {
			t.Errorf("of nothing: %q", got)
		}
		for _, c := range []struct {
			lines          []string
			width, then    int
			closed, opened string
		}{
			{[]string{"a"}, 40, 40, "\x1b[1A\r\x1b[J", "\r\x1b[K"},
			{[]string{"a", "b", "c"}, 40, 40, "\x1b[3A\r\x1b[J", "\x1b[2A\r\x1b[J"},
			{[]string{"", "b"}, 40, 40, "\x1b[2A\r\x1b[J", "\x1b[1A\r\x1b[J"},
			{[]string{strings.Repeat("x", 100), "b"}, 40, 20, "\x1b[3A\r\x1b[J", "\x1b[2A\r\x1b[J"}, // 39 columns are two rows of 20
			{[]string{strings.Repeat("x", 100), "b"}, 40, 13, "\x1b[4A\r\x1b[J", "\x1b[3A\r\x1b[J"},
			{[]string{strings.Repeat("漢", 100)}, 40, 19, "\x1b[3A\r\x1b[J", "\x1b[2A\r\x1b[J"},
			{[]string{"abc"}, 40, 1, "\x1b[3A\r\x1b[J", "\x1b[2A\r\x1b[J"},
			{[]string{"abc"}, 40, 0, "\x1b[3A\r\x1b[J", "\x1b[2A\r\x1b[J"},
		} {
			width = c.width
			s.picture(c.lines)
			width = c.then
			want := c.closed
			if open {
				want = c.opened
			}
			if got := s.erasure(); got != want {
				t.Errorf("open %v, %q from %d to %d columns: %q, want %q", open, c.lines, c.width, c.then, got, want)
			}
		}
	}
}

// TestScreenDrawsWhatFits holds that no line is wider than the terminal, that there are not more than it has rows, and that
// nothing in them steers it.
func TestScreenDrawsWhatFits(t *testing.T) {
	width, height := 20, 6
	s := terminalOf(&width, &height)
	lines := []string{"1", "2", "3", "4", "5", "\x1b[2J\x07\r\n\u202e" + strings.Repeat("漢字", 20)}
	if got, want := s.picture(lines), "3\n4\n5\n·[2J····漢字漢字漢…\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, height = range []int{1, 2, 3} {
		if got := s.picture([]string{"1", "2"}); got != "2\n" {
			t.Errorf("on %d rows: %q", height, got)
		}
	}
	if height = 0; s.picture([]string{"1", "2"}) != "1\n2\n" {
		t.Error("a terminal whose rows are not known gets part")
	}
	if s.height = nil; s.picture(nil) != "" || s.erasure() != "" {
		t.Error("something is drawn of nothing")
	}
}

// TestScreenLeavesWhatAShellWrote holds that after a stop nothing is taken away: the cursor is below other lines then. The
// word of it may come after the tick that is overdue.
func TestScreenLeavesWhatAShellWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		width, height := 40, 20
		signals := make(chan os.Signal, 1)
		s := terminalOf(&width, &height)
		s.resumed = signals
		s.picture([]string{"a"})
		signals <- os.Interrupt
		if got := s.erasure(); got != "" {
			t.Errorf("told at once: %q", got)
		}
		s.picture([]string{"a"})
		time.Sleep(time.Minute)
		go func() {
			time.Sleep(wordDelay / 2)
			signals <- os.Interrupt
		}()
		if got := s.erasure(); got != "" {
			t.Errorf("told late: %q", got)
		}
		s.picture([]string{"a"})
		time.Sleep(time.Minute)
		if got := s.erasure(); got == "" {
			t.Error("a slow process leaves what it drew")
		}
	})
}

// TestRunningLines holds what stands first on a line: it is what a narrow screen shows.
func TestRunningLines(t *testing.T) {
	s := web.Stream{Seq: 7, Model: "a\x1bmodel", Age: 5234 * time.Millisecond, Phase: web.PhaseDecode, Tokens: 43, Estimated: true, Rate: 20.04, Bytes: 9011, First: 1234567 * time.Microsecond}
	if got, want := runningLine(&s), "   7    5.2s  ~43 tok     20.0 tok/s  a·model                 8.8 KiB, first after 1.235s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Phase = web.PhaseWaiting
	if got, want := runningLine(&s), "   7    5.2s  waiting for engine      a·model"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s.Phase = web.PhasePrefill
	if got := runningLine(&s); !strings.Contains(got, "no token yet  ") {
		t.Errorf("%q", got)
	}
}
