package chart

import "math"

// Bar is one value of a bar chart. Lo and Hi are its spread; equal ones are none. A value that is not finite has Why in its
// place.
type Bar struct {
	Label  string
	Series int // bars of one series look alike
	Value  float64
	Lo, Hi float64
	Why    string
}

// BarGroup is bars under a common heading; "" for none.
type BarGroup struct {
	Label string
	Bars  []Bar
}

// BarPlot is a chart of level bars.
type BarPlot struct {
	Title  string // what a screen reader says
	Axis   Axis
	Groups []BarGroup
}

// Empty reports whether no bar has a value.
func (p *BarPlot) Empty() bool {
	x := scale{axis: p.Axis}
	for _, g := range p.Groups {
		for _, b := range g.Bars {
			if _, ok := x.of(b.Value); ok {
				return false
			}
		}
	}
	return true
}

const (
	barHeight = 15.0
	barStep   = 22.0
	widestBar = 34 // characters of a label
)

// Bars draws a bar chart: one row a value with its label, its spread as a whisker and its number in words.
func Bars(p BarPlot) SVG {
	var values []float64
	rows, widest := 0.0, 0
	for _, g := range p.Groups {
		if g.Label != "" {
			rows++
		}
		for _, b := range g.Bars {
			rows++
			values = append(values, b.Value)
			if b.Lo != b.Hi {
				values = append(values, b.Hi)
			}
			widest = max(widest, min(len([]rune(b.Label)), widestBar))
		}
	}
	const top = 8.0
	bottom := top + rows*barStep
	c := newCanvas(plotWidth, bottom+plotBottom, "plot", p.Title)
	x := newScale(p.Axis, values, 20+float64(widest)*glyph, plotWidth-90)
	base := scale{from: bottom, to: top}
	for _, t := range x.ticks {
		at, _ := x.place(t)
		c.line("grid", at, top, at, bottom)
	}
	x.below(c, base)
	c.text("end", x.to, bottom+plotBottom-8, p.Axis.title())
	y := top
	for _, g := range p.Groups {
		if g.Label != "" {
			c.text("ink", 8, y+15, g.Label)
			y += barStep
		}
		for _, b := range g.Bars {
			b.draw(c, x, y)
			y += barStep
		}
	}
	return c.end()
}

// draw draws the bar in the row that begins at y.
func (b *Bar) draw(c *canvas, x scale, y float64) {
	label := b.Label
	if r := []rune(label); len(r) > widestBar { // names differ at their ends: degree and source stand there
		label = string(r[:widestBar/2]) + "…" + string(r[len(r)-widestBar/2+1:])
	}
	c.text("end ink", x.from-8, y+14, label)
	to, ok := x.place(b.Value)
	if !ok {
		c.text("", x.from+6, y+14, "— "+b.Why)
		return
	}
	words := Number(b.Value) + " " + x.axis.Unit
	tip, end := b.Label+": "+words, to
	if b.Lo != b.Hi {
		tip += ", " + Number(b.Lo) + " to " + Number(b.Hi)
	}
	c.group(tip, func() {
		from := x.from
		if x.lo < 0 && !x.axis.Log {
			from, _ = x.place(0)
		}
		c.rect(seriesClass("f", b.Series), math.Min(from, to), y+(barStep-barHeight)/2, math.Abs(to-from), barHeight)
		if lo, okLo := x.place(b.Lo); okLo && b.Lo != b.Hi {
			hi, _ := x.place(b.Hi)
			mid := y + barStep/2
			c.line("axis", lo, mid, hi, mid)
			c.line("axis", lo, mid-4, lo, mid+4)
			c.line("axis", hi, mid-4, hi, mid+4)
			end = max(end, hi)
		}
	})
	c.text("", max(end, x.from)+6, y+14, words)
}
