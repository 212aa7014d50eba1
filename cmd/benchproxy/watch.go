package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/benchproxy/benchproxy/internal/web"
)

// watchLines is how many running exchanges are shown one by one.
const watchLines = 8

// runningLines are a headline and one line for each of the oldest running exchanges; none when nothing runs.
func runningLines(l *web.Live) []string {
	streams, all := l.Running(watchLines)
	if all == 0 {
		return nil
	}
	out := []string{fmt.Sprintf("%d running", all)}
	for i := range streams {
		out = append(out, runningLine(&streams[i]))
	}
	return out
}

// runningLine is one running exchange: what it waits for, or how its tokens come.
func runningLine(s *web.Stream) string {
	name := runewidth.FillRight(runewidth.Truncate(printable(s.Name()), modelWidth, "…"), modelWidth)
	head := fmt.Sprintf("%4d  %s  %6s  ", s.Seq, name, s.Age.Round(100*time.Millisecond))
	switch s.Phase {
	case web.PhaseWaiting:
		return head + "waiting for the engine"
	case web.PhasePrefill:
		return head + bytesText(s.Bytes) + ", no token yet"
	}
	tokens := strconv.FormatInt(s.Tokens, 10) + " tokens"
	if s.Estimated {
		tokens = "~" + tokens
	}
	return head + fmt.Sprintf("%s, %s, %.1f tok/s, first after %s", bytesText(s.Bytes), tokens, s.Rate, s.First.Round(time.Millisecond))
}
