package main

import (
	"fmt"
	"strconv"
	"strings"
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

// stateWidth is the width of the column that tells how far a running exchange is.
const stateWidth = 22

// runningLine is one running exchange: what it waits for, or how its tokens come. What matters most stands first, for a
// narrow screen cuts the rest.
func runningLine(s *web.Stream) string {
	state, rest := "", bytesText(s.Bytes)
	switch s.Phase {
	case web.PhaseWaiting:
		state, rest = "waiting for engine", ""
	case web.PhasePrefill:
		state = "no token yet"
	default:
		tokens := strconv.FormatInt(s.Tokens, 10) + " tok"
		if s.Estimated {
			tokens = "~" + tokens
		}
		state = fmt.Sprintf("%-9s  %5.1f tok/s", tokens, s.Rate)
		rest += ", first after " + s.First.Round(time.Millisecond).String()
	}
	name := runewidth.FillRight(runewidth.Truncate(printable(s.Name()), modelWidth, "…"), modelWidth)
	return strings.TrimRight(fmt.Sprintf("%4d  %6s  %-*s  %s  %s", s.Seq, s.Age.Round(100*time.Millisecond), stateWidth, state, name, rest), " ")
}
