package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/engines/models"
	"github.com/benchproxy/benchproxy/internal/clock"
)

// pullBar shows on a terminal's stderr how far downloads are: a line for each that runs, and one for all. Nothing is drawn
// where there is no terminal.
type pullBar struct {
	out   io.Writer
	width int // 0: not a terminal
	look  func() []models.Progress
	began clock.Origin
	seen  []pullSample
	lines int // that are drawn
}

type pullSample struct {
	at   time.Duration
	have int64
}

func newPullBar(e env, look func() []models.Progress) *pullBar {
	b := &pullBar{out: e.Stderr, look: look, began: clock.Start()}
	if width, ok := e.TTY(e.Stderr); ok && e.Getenv("TERM") != "dumb" && e.Getenv("CI") == "" {
		b.width = width
	}
	return b
}

// Run draws until ctx ends, and then takes the lines away.
func (b *pullBar) Run(ctx context.Context) {
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
			b.draw(b.text(b.look(), time.Duration(b.began.NS())))
		}
	}
}

// during draws while work runs.
func (b *pullBar) during(work func()) {
	ctx, stop := context.WithCancel(context.Background())
	var drawn sync.WaitGroup
	drawn.Go(func() { b.Run(ctx) })
	work()
	stop()
	drawn.Wait()
}

func (b *pullBar) draw(lines []string) {
	b.erase()
	for _, l := range lines {
		fmt.Fprintln(b.out, runewidth.Truncate(l, max(b.width-1, 1), "…"))
	}
	b.lines = len(lines)
}

func (b *pullBar) erase() {
	if b.lines > 0 {
		fmt.Fprintf(b.out, "\x1b[%dA\r\x1b[J", b.lines)
	}
	b.lines = 0
}

// text is what is drawn at a time since the beginning.
func (b *pullBar) text(all []models.Progress, at time.Duration) (lines []string) {
	done, have := 0, int64(0)
	for _, p := range all {
		have += p.Have
		switch p.Phase {
		case models.PhaseDone, models.PhaseFailed:
			done++
		case models.PhaseLoading, models.PhaseWaiting, models.PhaseVerifying:
			lines = append(lines, pullLine(p))
		}
	}
	total := fmt.Sprintf("%d/%d models, %s", done, len(all), bytesText(have))
	if rate, ok := b.rate(pullSample{at, have}); ok {
		total += fmt.Sprintf(", %s/s", bytesText(int64(rate)))
	}
	return append(lines, total)
}

// pullLine is how far one download is.
func pullLine(p models.Progress) string {
	bar := barOf(0, 0)
	size := "?"
	if p.Size > 0 {
		bar, size = barOf(int(p.Have>>10), int(p.Size>>10)), bytesText(p.Size)
	}
	words := []string{bar, bytesText(p.Have) + " of " + size, printable(filepath.Base(p.Path))}
	if p.Phase != models.PhaseLoading {
		words = append(words, "("+string(p.Phase)+")")
	}
	return strings.Join(words, "  ")
}

// rate is the bytes a second of the last moments. Bytes that are thrown away are not counted against them.
func (b *pullBar) rate(now pullSample) (float64, bool) {
	if n := len(b.seen); n > 0 && now.have < b.seen[n-1].have {
		b.seen = nil
	}
	b.seen = append(b.seen, now)
	for len(b.seen) > 2 && now.at-b.seen[1].at >= progressWindow {
		b.seen = b.seen[1:]
	}
	first := b.seen[0]
	if now.at <= first.at {
		return 0, false
	}
	return float64(now.have-first.have) / (now.at - first.at).Seconds(), true
}
