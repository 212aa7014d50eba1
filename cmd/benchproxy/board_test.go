package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// stuck is an output that nobody reads until it is let go.
type stuck struct {
	bytes.Buffer
	free chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	return s.Buffer.Write(p)
}

// TestRowsNeverWaitForTheirReader holds that the recorder, which hands rows over, is not held up by a stopped output, and
// that what found no room is told.
func TestRowsNeverWaitForTheirReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stuck{free: make(chan struct{})}
		var errOut bytes.Buffer
		b := newBoard(env{Stdout: out, Stderr: &errOut, TTY: func(io.Writer) (int, bool) { return 0, false }}, boardLines, nil)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Run(ctx)
		}()
		row := exchange.Summary{Seq: 1, Model: "m", Outcome: exchange.OutcomeComplete}
		b.Row(row)
		synctest.Wait() // Run holds the first row
		fit := waitingBytes / len(b.line(row))
		for range fit + 7 {
			b.Row(row)
		}
		if got := b.Total().Exchanges; int(got) != fit+8 {
			t.Errorf("%d exchanges counted, want %d", got, fit+8)
		}
		stop()
		close(out.free)
		<-done
		if got := strings.Count(out.String(), "\n"); got != 1+1+fit {
			t.Errorf("%d lines printed, want a head and %d", got, 1+fit)
		}
		if want := "7 rows are not shown"; !strings.Contains(errOut.String(), want) {
			t.Errorf("stderr %q, want %q", errOut.String(), want)
		}
	})
}

// TestRunningPartIsDrawnAndRemoved looks at what a terminal gets.
func TestRunningPartIsDrawnAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut bytes.Buffer
		e := env{Stdout: &out, Stderr: &errOut, Getenv: func(string) string { return "" }, TTY: func(io.Writer) (int, bool) { return 30, true }}
		b := newBoard(e, boardLines, func() []string { return []string{"1 running", "a line that is longer than the screen is wide"} })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Run(ctx)
		}()
		b.Row(exchange.Summary{Seq: 1, Model: "m", Outcome: exchange.OutcomeComplete})
		synctest.Wait()
		b.Note("%d still running", 1)
		synctest.Wait()
		stop()
		<-done
		drawn, erased := "1 running\na line that is longer than t…\n", "\x1b[2A\r\x1b[J"
		if want := drawn + erased + "1 still running\n" + drawn + erased; errOut.String() != want {
			t.Errorf("stderr %q, want %q", errOut.String(), want)
		}
		if lines := strings.Split(out.String(), "\n"); len(lines) != 3 || !strings.Contains(lines[1], "complete") {
			t.Errorf("stdout %q", out.String())
		}
	})
}

// TestTerminalIsNotFlooded holds that a fast stream of rows leaves few lines behind, loses none from its counts, and shows
// the last ones while it lasts.
func TestTerminalIsNotFlooded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut bytes.Buffer
		e := env{Stdout: &out, Stderr: &errOut, Getenv: func(string) string { return "" }, TTY: func(io.Writer) (int, bool) { return 200, true }}
		b := newBoard(e, boardLines, func() []string { return nil })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Run(ctx)
		}()
		const each, seconds = 100, 20
		for i := range seconds {
			for j := range each {
				b.Row(exchange.Summary{Seq: uint64(i*each + j + 1), Model: "m", Outcome: exchange.OutcomeComplete})
			}
			time.Sleep(time.Second)
		}
		stop()
		<-done
		rows := strings.Count(out.String(), "\n") - 1
		if rows < rowBurst || rows > rowBurst+seconds {
			t.Errorf("%d rows were printed", rows)
		}
		if got := b.Total().Exchanges; int(got) != each*seconds {
			t.Errorf("%d exchanges counted", got)
		}
		if said := errOut.String(); !strings.Contains(said, fmt.Sprintf("%d rows were not printed", each*seconds-rows)) || !strings.Contains(said, "more ended, the last of them:\n") || !strings.Contains(said, "\n2000  m") {
			t.Errorf("stderr ends %q", said[max(0, len(said)-600):])
		}
	})
}
