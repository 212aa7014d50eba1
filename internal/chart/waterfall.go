package chart

import (
	"math"
	"strings"
)

// Span is one phase of an exchange, from and to in milliseconds since the start of the chart.
type Span struct {
	Name     string
	From, To float64
	Waiting  bool // nothing came in it
}

// Lane is a row of instants of one kind, in milliseconds since the start of the chart, ascending.
type Lane struct {
	Name  string
	Times []float64
}

// Waterfall is where the time of one exchange went: its phases, and when each token event came.
type Waterfall struct {
	Title string
	Width float64 // in CSS pixels; 0 is 960
	Spans []Span
	Lanes []Lane  // token events by kind, at most 6
	End   float64 // ms shown
}

// Sizes of a waterfall, in CSS pixels.
const (
	fallWidth  = 960 // unless said
	fallLabel  = 112 // room for names at the left
	fallValue  = 84  // and for durations at the right
	fallRow    = 20
	fallLane   = 26
	fallRates  = 56
	fallAxis   = 22
	fallBar    = 10
	fallParts  = 120 // most parts into which the time is cut for the rate
	partEvents = 5   // token events in a part, on the mean
)

// SVG draws it. Without a length of time there is nothing to draw, and a line says so.
func (w Waterfall) SVG() SVG {
	rates, lanes := w.rates(), min(len(w.Lanes), palette)
	height := fallAxis + fallRow*len(w.Spans) + fallLane*lanes + 6
	if len(rates) > 0 {
		height += fallRates
	}
	c := newCanvas(w.width(), float64(height), "waterfall", w.Title)
	if !(w.End > 0) || math.IsInf(w.End, 0) {
		c.text("ink", 4, 16, "no time passed that could be drawn")
		return c.end()
	}
	w.axis(c, float64(height))
	y := float64(fallAxis)
	for _, s := range w.Spans {
		w.span(c, s, y)
		y += fallRow
	}
	for i, l := range w.Lanes[:lanes] {
		w.lane(c, l, i, y)
		y += fallLane
	}
	if len(rates) > 0 {
		w.rate(c, rates, y)
	}
	return c.end()
}

func (w Waterfall) width() float64 {
	if w.Width > fallLabel+fallValue {
		return w.Width
	}
	return fallWidth
}

func (w Waterfall) x(ms float64) float64 {
	share := min(max(ms/w.End, 0), 1)
	return fallLabel + share*(w.width()-fallLabel-fallValue)
}

func (w Waterfall) axis(c *canvas, height float64) {
	for _, t := range ticks(0, w.End, int(w.width()/120)) {
		c.line("grid", w.x(t), fallAxis-4, w.x(t), height)
		c.text("mid", w.x(t), 11, w.tick(t))
	}
	c.line("axis", w.x(0), fallAxis-4, w.x(w.End), fallAxis-4)
}

// tick is an instant of the axis; all have one unit.
func (w Waterfall) tick(ms float64) string {
	switch {
	case w.End < 1:
		return Number(ms*1e3) + " us"
	case w.End < 1000:
		return Number(ms) + " ms"
	}
	return Number(ms/1e3) + " s"
}

func (w Waterfall) span(c *canvas, s Span, y float64) {
	class := "f1"
	if s.Waiting {
		class = "wait"
	}
	from, to := w.x(s.From), w.x(s.To)
	took := Milliseconds(max(s.To-s.From, 0))
	c.group(s.Name+": "+took+", from "+Milliseconds(s.From), func() {
		c.text("end ink", fallLabel-8, y+fallBar+3, s.Name)
		c.rect(class, from, y+4, max(to-from, 1), fallBar)
		c.text("end", w.width()-4, y+fallBar+3, took)
	})
}

// lane draws a stroke for each instant. Instants that fall on one half of a pixel are one stroke.
func (w Waterfall) lane(c *canvas, l Lane, n int, y float64) {
	var d strings.Builder
	last := -1.0
	for _, t := range l.Times {
		if x := math.Round(w.x(t)*2) / 2; x != last {
			d.WriteString("M" + coordinate(x) + " " + coordinate(y+4) + "v" + coordinate(fallLane-9))
			last = x
		}
	}
	c.group(l.Name+": "+Number(float64(len(l.Times)))+" token events", func() {
		c.text("end ink", fallLabel-8, y+17, l.Name)
		if d.Len() > 0 {
			c.path("tick "+seriesClass("t", n), d.String())
		}
		c.text("end", w.width()-4, y+17, Number(float64(len(l.Times)))+" ev")
	})
}

// rates are token events a second in each part of the time from the first to the last of them, nil for too few.
func (w Waterfall) rates() []float64 {
	total := 0
	for _, l := range w.Lanes {
		total += len(l.Times)
	}
	if total < 8 || !(w.End > 0) {
		return nil
	}
	out := make([]float64, min(total/partEvents+8, fallParts))
	part := w.End / float64(len(out))
	for _, l := range w.Lanes {
		for _, t := range l.Times {
			if t >= 0 && t <= w.End {
				out[min(int(t/part), len(out)-1)] += 1e3 / part
			}
		}
	}
	return out
}

// rate draws the rates as an area with its highest value.
func (w Waterfall) rate(c *canvas, rates []float64, y float64) {
	most := 0.0
	for _, r := range rates {
		most = max(most, r)
	}
	foot, part := y+fallRates-6, w.End/float64(len(rates))
	var d strings.Builder
	d.WriteString("M" + coordinate(w.x(0)) + " " + coordinate(foot))
	for i, r := range rates {
		top := foot - r/most*(fallRates-14)
		d.WriteString("L" + coordinate(w.x(float64(i)*part)) + " " + coordinate(top) + "H" + coordinate(w.x(float64(i+1)*part)))
	}
	d.WriteString("V" + coordinate(foot) + "z")
	c.group("token events a second, in parts of "+Milliseconds(part), func() {
		c.text("end ink", fallLabel-8, foot-fallRates/2+12, "rate")
		c.path("area", d.String())
		c.line("axis", w.x(0), foot, w.x(w.End), foot)
		c.text("end", w.width()-4, y+16, Number(most)+" ev/s")
	})
}
