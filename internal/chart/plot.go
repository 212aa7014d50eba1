package chart

import (
	"math"
	"strings"
)

// Axis is what one direction of a plot shows.
type Axis struct {
	Label string
	Unit  string // "" for a bare number
	Log   bool   // decades of equal length; what is not above 0 has no place on it
}

func (a Axis) title() string {
	if a.Unit == "" {
		return a.Label
	}
	return a.Label + " (" + a.Unit + ")"
}

// Point is one value of a series. Lo and Hi are its spread; equal ones are none.
type Point struct{ X, Y, Lo, Hi float64 }

// Series is one line of a plot, its points in the order of X. A point that is not finite parts the line.
type Series struct {
	Name   string
	Points []Point
}

// Plot is a chart of lines over a number.
type Plot struct {
	Title  string // what a screen reader says
	X, Y   Axis
	Series []Series
	Steps  bool // each value holds until the next one: a distribution
}

// Empty reports whether the plot has no point that can be drawn.
func (p *Plot) Empty() bool {
	x, y := scale{axis: p.X}, scale{axis: p.Y}
	for _, s := range p.Series {
		for _, q := range s.Points {
			_, okX := x.of(q.X)
			_, okY := y.of(q.Y)
			if okX && okY {
				return false
			}
		}
	}
	return true
}

// Sizes of a plot, in CSS pixels.
const (
	plotWidth  = 720.0
	plotHeight = 320.0
	glyph      = 6.7  // width of a character
	textLine   = 16.0 // height of a line of text
	plotRight  = 24.0
	plotBottom = 44.0
	markSize   = 3.6
)

// Lines draws a plot: a legend, axes with units, and for each series a line with a dash, a mark and a color of its own.
// Spreads are whiskers.
func Lines(p Plot) SVG {
	c := newCanvas(plotWidth, plotHeight, "plot", p.Title)
	top := legend(c, p.Series, p.Steps) + textLine + 18
	x, y := p.scales(top)
	c.text("", 8, top-14, p.Y.title())
	y.grid(c, x)
	x.below(c, y)
	c.text("end", x.to, plotHeight-8, p.X.title())
	for i, s := range p.Series {
		drawSeries(c, i, s, [2]scale{x, y}, p.Steps)
	}
	return c.end()
}

// scales are those of both axes, below top.
func (p *Plot) scales(top float64) (x, y scale) {
	var xs, ys []float64
	for _, s := range p.Series {
		for _, q := range s.Points {
			xs, ys = append(xs, q.X), append(ys, q.Y)
			if q.Lo != q.Hi {
				ys = append(ys, q.Lo, q.Hi)
			}
		}
	}
	y = newScale(p.Y, ys, plotHeight-plotBottom, top)
	widest := 0
	for _, t := range y.ticks {
		widest = max(widest, len([]rune(Number(t))))
	}
	x = newScale(p.X, xs, 16+float64(widest)*glyph, plotWidth-plotRight)
	return x, y
}

// legend writes the names of the series with a sample of each, and gives the height that it took.
func legend(c *canvas, all []Series, bare bool) float64 {
	x, y := 8.0, textLine
	for i, s := range all {
		width := 34 + float64(len([]rune(s.Name)))*glyph + 18
		if x > 8 && x+width > plotWidth {
			x, y = 8, y+textLine
		}
		c.line(lineClass(i), x, y-4, x+26, y-4)
		if !bare {
			mark(c, i, x+13, y-4)
		}
		c.text("ink", x+34, y, s.Name)
		x += width
	}
	return y
}

// drawSeries draws series n; at are the scales of x and y.
func drawSeries(c *canvas, n int, s Series, at [2]scale, steps bool) {
	var d strings.Builder
	open, lastY := false, ""
	for _, q := range s.Points {
		x, okX := at[0].place(q.X)
		y, okY := at[1].place(q.Y)
		if !okX || !okY {
			open = false
			continue
		}
		px, py := coordinate(x), coordinate(y)
		switch {
		case !open:
			d.WriteString("M" + px + " " + py)
		case steps:
			d.WriteString("L" + px + " " + lastY + "L" + px + " " + py)
		default:
			d.WriteString("L" + px + " " + py)
		}
		open, lastY = true, py
	}
	c.path(lineClass(n), d.String())
	if steps {
		return
	}
	for _, q := range s.Points {
		x, okX := at[0].place(q.X)
		y, okY := at[1].place(q.Y)
		if !okX || !okY {
			continue
		}
		tip := s.Name + ": " + Number(q.Y) + " " + at[1].axis.Unit + " at " + Number(q.X) + " " + at[0].axis.Unit
		c.group(tip, func() {
			if lo, ok := at[1].place(q.Lo); ok && q.Lo != q.Hi {
				if hi, ok := at[1].place(q.Hi); ok {
					whisker(c, x, lo, hi)
				}
			}
			mark(c, n, x, y)
		})
	}
}

// whisker is an upright spread.
func whisker(c *canvas, x, lo, hi float64) {
	c.line("axis", x, lo, x, hi)
	c.line("axis", x-3, lo, x+3, lo)
	c.line("axis", x-3, hi, x+3, hi)
}

// mark is the sign of series n: circle, square, triangle, diamond, inverted triangle, hexagon. Every other round of the
// palette is hollow, and each begins with another sign.
func mark(c *canvas, n int, x, y float64) {
	class := seriesClass("f", n)
	if round := n / palette; round%2 == 1 {
		class = "hollow " + seriesClass("t", n)
	}
	const r = markSize
	corners := [][2]float64{}
	switch (n + n/palette) % palette {
	case 0:
		c.circle(class, x, y, r)
		return
	case 1:
		c.rect(class, x-r+0.3, y-r+0.3, 2*r-0.6, 2*r-0.6)
		return
	case 2:
		corners = [][2]float64{{0, -r - 1}, {r + 1, r}, {-r - 1, r}}
	case 3:
		corners = [][2]float64{{0, -r - 1.2}, {r + 1.2, 0}, {0, r + 1.2}, {-r - 1.2, 0}}
	case 4:
		corners = [][2]float64{{0, r + 1}, {r + 1, -r}, {-r - 1, -r}}
	case 5:
		corners = [][2]float64{{-r, 0}, {-r / 2, -r}, {r / 2, -r}, {r, 0}, {r / 2, r}, {-r / 2, r}}
	}
	d := ""
	for i, p := range corners {
		step := "L"
		if i == 0 {
			step = "M"
		}
		d += step + coordinate(x+p[0]) + " " + coordinate(y+p[1])
	}
	c.path(class, d+"Z")
}

// scale puts the numbers of an axis to places of the drawing.
type scale struct {
	axis     Axis
	from, to float64 // places of lo and hi
	lo, hi   float64 // logarithms of base 10 where the axis is one
	ticks    []float64
}

// newScale fits an axis to values: from 0 on where it is linear.
func newScale(a Axis, values []float64, from, to float64) scale {
	s := scale{axis: a, from: from, to: to, lo: math.Inf(1), hi: math.Inf(-1)}
	for _, v := range values {
		if v, ok := s.of(v); ok {
			s.lo, s.hi = min(s.lo, v), max(s.hi, v)
		}
	}
	if a.Log {
		s.logarithmic()
		return s
	}
	s.lo, s.hi = min(s.lo, 0), max(s.hi, 0)
	if s.hi <= s.lo || math.IsInf(s.hi-s.lo, 0) {
		s.lo, s.hi = 0, 1
	}
	s.ticks = ticks(s.lo, s.hi*1.02, 5)
	if n := len(s.ticks); n > 1 { // end on a tick, so that the highest value has room
		step := s.ticks[1] - s.ticks[0]
		if s.ticks[n-1] < s.hi {
			s.ticks = append(s.ticks, s.ticks[n-1]+step)
		}
		s.hi = max(s.hi, s.ticks[len(s.ticks)-1])
	}
	return s
}

// logarithmic ends the scale on ticks of 1, 2 and 5 times a power of ten, or of ten alone where there are many.
func (s *scale) logarithmic() {
	if s.hi < s.lo {
		s.lo, s.hi = 0, 1
	}
	steps := []float64{1, 2, 5}
	if s.hi-s.lo > 3 {
		steps = steps[:1]
	}
	var all []float64
	for power := math.Floor(s.lo); power <= math.Ceil(s.hi)+1; power++ {
		for _, m := range steps {
			all = append(all, m*math.Pow(10, power))
		}
	}
	first, last := 0, len(all)-1
	for first+1 < len(all) && math.Log10(all[first+1]) <= s.lo+1e-9 {
		first++
	}
	for last > first+1 && math.Log10(all[last-1]) >= s.hi-1e-9 {
		last--
	}
	s.ticks = all[first : last+1]
	s.lo, s.hi = math.Log10(all[first]), math.Log10(all[last])
}

// of is the value as the axis counts; ok is false where it has no place.
func (s *scale) of(v float64) (float64, bool) {
	if s.axis.Log {
		v = math.Log10(v)
	}
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

func (s *scale) place(v float64) (float64, bool) {
	v, ok := s.of(v)
	return s.from + (v-s.lo)/(s.hi-s.lo)*(s.to-s.from), ok
}

// grid draws the lines of an upright axis over the width of x, with their numbers.
func (s *scale) grid(c *canvas, x scale) {
	for _, t := range s.ticks {
		y, _ := s.place(t)
		c.line("grid", x.from, y, x.to, y)
		c.text("end", x.from-6, y+4, Number(t))
	}
}

// below draws the numbers of a level axis under y.
func (s *scale) below(c *canvas, y scale) {
	c.line("axis", s.from, y.from, s.to, y.from)
	for _, t := range s.ticks {
		x, _ := s.place(t)
		c.line("axis", x, y.from, x, y.from+4)
		c.text("mid", x, y.from+17, Number(t))
	}
}
