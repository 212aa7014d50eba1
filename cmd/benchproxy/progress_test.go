package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/replay"
)

func TestProgressLine(t *testing.T) {
	b := &progress{}
	for _, tc := range []struct {
		p    replay.Progress
		want string
	}{
		{replay.Progress{Warmup: true, InFlight: 2}, "warming up: 2 in flight"},
		{replay.Progress{Requests: 8, InFlight: 4, Left: -1}, "[------------------------]  0/8  4 in flight"},
		{replay.Progress{Requests: 8, Ended: 2, Failed: 1, InFlight: 4, Tokens: 100, Elapsed: time.Second, Left: 3 * time.Second},
			"[######------------------]  2/8  1 failed  4 in flight  100 tok/s  ETA 3s"},
		{replay.Progress{Requests: 8, Ended: 8, Tokens: 500, Elapsed: 9 * time.Second}, "[########################]  8/8  0 in flight  50 tok/s  ETA 0s"},
	} {
		if got := b.line(tc.p); got != tc.want {
			t.Errorf("got  %q\nwant %q", got, tc.want)
		}
	}
}

// TestProgressSharesTheScreen holds that what runs is drawn above the bar, that notes stay and nothing else does.
func TestProgressSharesTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		e := env{Stderr: &out, Getenv: func(string) string { return "" }, TTY: func(io.Writer) (int, bool) { return 30, true }}
		b := newProgress(e, false, func() replay.Progress { return replay.Progress{Requests: 2, Ended: 1, Left: -1} })
		b.streams = func() []string { return []string{"2 running", "one that is longer than the screen is wide"} }
		note(b, "before")
		ctx, cancel := context.WithTimeout(t.Context(), refresh*5/2)
		defer cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Run(ctx)
		}()
		time.Sleep(refresh * 3 / 2)
		note(b, "between")
		<-done
		note(b, "after")
		drawn, erased := "2 running\none that is longer than the …\n[############------------]  …", "\x1b[2A\r\x1b[J"
		if want := "before\n" + drawn + erased + "between\n" + drawn + erased + "after\n"; out.String() != want {
			t.Errorf("got  %q\nwant %q", out.String(), want)
		}
	})
}

func TestProgressIsForTerminals(t *testing.T) {
	look := func() replay.Progress { return replay.Progress{Requests: 2, Ended: 1, Left: -1} }
	for name, tc := range map[string]struct {
		tty, quiet bool
		vars       map[string]string
		want       bool
	}{
		"terminal": {tty: true, want: true}, "pipe": {}, "quiet": {tty: true, quiet: true},
		"CI": {tty: true, vars: map[string]string{"CI": "1"}}, "dumb": {tty: true, vars: map[string]string{"TERM": "dumb"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				e := env{Stderr: &out, Getenv: func(k string) string { return tc.vars[k] }, TTY: func(io.Writer) (int, bool) { return 40, tc.tty }}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				newProgress(e, tc.quiet, look).Run(ctx)
				if drew := strings.Contains(out.String(), "1/2"); drew != tc.want {
					t.Errorf("drew %q", out.String())
				}
				if tc.want && !strings.HasSuffix(out.String(), "\r\x1b[K") {
					t.Error("the bar is left on the screen")
				}
			})
		})
	}
}
