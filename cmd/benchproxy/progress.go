package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/replay"
)

// progress is a bar on a terminal's stderr that shows how far a replay is. Nothing is drawn where there is no terminal.
type progress struct {
	out   io.Writer
	width int // 0: not a terminal
	look  func() replay.Progress
	seen  []progressSample
	drawn bool
}

type progressSample struct {
	at     time.Duration
	tokens float64
}

// progressWindow is the time over which the bar's token rate is taken.
const progressWindow = 5 * time.Second

func newProgress(e env, quiet bool, look func() replay.Progress) *progress {
	b := &progress{out: e.Stderr, look: look}
	if width, ok := e.TTY(e.Stderr); ok && !quiet && e.Getenv("TERM") != "dumb" && e.Getenv("CI") == "" {
		b.width = width
	}
	return b
}

// Run draws until ctx ends, and then takes the bar away.
func (b *progress) Run(ctx context.Context) {
	if b.width == 0 {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			b.erase()
			return
		case <-tick.C:
			b.draw(b.line(b.look()))
		}
	}
}

func (b *progress) draw(line string) {
	fmt.Fprint(b.out, "\r\x1b[K"+runewidth.Truncate(line, max(b.width-1, 1), "…"))
	b.drawn = true
}

func (b *progress) erase() {
	if b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}

// line is the bar: how much is done, and how it goes.
func (b *progress) line(p replay.Progress) string {
	if p.Warmup {
		return fmt.Sprintf("warming up: %d in flight", p.InFlight)
	}
	parts := []string{barOf(p.Ended, p.Requests), fmt.Sprintf("%d/%d", p.Ended, p.Requests)}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.Failed))
	}
	parts = append(parts, fmt.Sprintf("%d in flight", p.InFlight))
	if rate, ok := b.rate(p); ok {
		parts = append(parts, fmt.Sprintf("%.0f tok/s", rate))
	}
	if p.Left >= 0 {
		parts = append(parts, "ETA "+p.Left.Round(time.Second).String())
	}
	return strings.Join(parts, "  ")
}

// rate is the tokens a second of the answers that ended in the last moments.
func (b *progress) rate(p replay.Progress) (float64, bool) {
	b.seen = append(b.seen, progressSample{p.Elapsed, p.Tokens})
	for len(b.seen) > 2 && p.Elapsed-b.seen[1].at >= progressWindow {
		b.seen = b.seen[1:]
	}
	first := b.seen[0]
	if p.Elapsed <= first.at {
		return 0, false
	}
	return (p.Tokens - first.tokens) / (p.Elapsed - first.at).Seconds(), true
}

// barOf is a bar of fixed width.
func barOf(done, all int) string {
	const width = 24
	full := 0
	if all > 0 {
		full = min(done*width/all, width)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]"
}
