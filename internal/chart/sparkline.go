package chart

import (
	"cmp"
	"strings"
)

// Spark is when the tokens of one stream came, small enough to stand in a row of a table.
type Spark struct {
	Times []float64 // of the token events, ascending, in the unit of Span
	Span  float64   // the time shown, from 0; times behind it are left out
	Open  bool      // the stream goes on
	Of    string    // what came at Times, in the plural; "" is token events
}

// Sizes of a sparkline, in CSS pixels. A bin is two wide.
const (
	sparkWidth  = 120
	sparkHeight = 18
	sparkBins   = sparkWidth / 2
)

// SVG draws a bar for each sixtieth of the time, as high as that part has token events; the wait before the first one is
// a line. A stream of nothing is a line alone.
func (s Spark) SVG() SVG {
	c := newCanvas(sparkWidth, sparkHeight, "spark", s.title())
	bins, most := s.bins()
	const foot = sparkHeight - 1
	wait := float64(sparkWidth)
	var d strings.Builder
	for i, n := range bins {
		if n == 0 {
			continue
		}
		x := float64(2 * i)
		wait = min(wait, x)
		h := max(1, float64(n)/float64(most)*(foot-1))
		d.WriteString("M" + coordinate(x) + " " + coordinate(foot) + "v-" + coordinate(h) + "h1.6v" + coordinate(h) + "z")
	}
	if wait > 0 {
		c.rect("wait", 0, foot-1, wait, 1)
	}
	if d.Len() > 0 {
		c.path("f1", d.String())
	}
	if s.Open {
		c.rect("f2", sparkWidth-1.5, 2, 1.5, sparkHeight-3)
	}
	return c.end()
}

func (s Spark) title() string {
	if len(s.Times) == 0 {
		return "no token event"
	}
	return Number(float64(len(s.Times))) + " " + cmp.Or(s.Of, "token events") + " over time, 0 to " + Milliseconds(s.Span)
}

func (s Spark) bins() (bins [sparkBins]int, most int) {
	for _, t := range s.Times {
		if !(s.Span > 0) || !(t >= 0 && t <= s.Span) { // what is no number is in no bin
			continue
		}
		i := min(int(t/s.Span*sparkBins), sparkBins-1)
		bins[i]++
		most = max(most, bins[i])
	}
	return bins, most
}
