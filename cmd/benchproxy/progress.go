package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/replay"
)

// progress is what a terminal's stderr shows of a replay: the requests that run now, and a bar below them that tells how
// far it is. Nothing is drawn where there is no terminal. What is written to it stands above, and stays.
type progress struct {
	out     io.Writer
	lively  bool // it is a terminal on which something may be drawn
	look    func() replay.Progress
	streams func() []string // lines of what runs now; nil for none
	seen    []progressSample

	mu      sync.Mutex
	screen  screen
	drawing bool
	written []byte // waits for the next drawing
}

type progressSample struct {
	at     time.Duration
	tokens float64
}

// progressWindow is the time over which the bar's token rate is taken.
const progressWindow = 5 * time.Second

func newProgress(e env, quiet bool, look func() replay.Progress) *progress {
	b := &progress{out: e.Stderr, look: look, lively: !quiet && lively(e), screen: newScreen(e, e.Stderr)}
	b.screen.open = true
	return b
}

// Write puts lines above what is drawn.
func (b *progress) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.drawing {
		return b.out.Write(p)
	}
	b.written = append(b.written, p...)
	return len(p), nil
}

// Run draws until ctx ends, and then takes what it drew away.
func (b *progress) Run(ctx context.Context) {
	if !b.lively {
		<-ctx.Done()
		return
	}
	b.mu.Lock()
	b.drawing = true
	b.mu.Unlock()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			b.end()
			return
		case <-tick.C:
			b.draw(b.line(b.look()))
		}
	}
}

// end takes away what is drawn, and lets what is written through from now on.
func (b *progress) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drawing = false
	fmt.Fprint(b.out, b.screen.erasure()+string(b.written))
	b.written = nil
}

// draw puts one picture in the place of the one before, in one write.
func (b *progress) draw(line string) {
	var lines []string
	if b.streams != nil {
		lines = b.streams()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	text := b.screen.erasure() + string(b.written)
	fmt.Fprint(b.out, text+b.screen.picture(append(lines, line)))
	b.written = nil
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
