package chart

import (
	"html"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// SVG is a finished chart: markup that may stand in a page as it is.
type SVG string

// Style is the style sheet of every chart. A page that shows charts carries it once; a chart that stands alone has it in
// itself (canvas.alone). Variables may be set again by the page around it.
const Style = `:root {
  --chart-ink: #1d2430; --chart-soft: #667080; --chart-grid: #dfe3e9; --chart-ground: #ffffff;
  --chart-1: #1f5fbf; --chart-2: #c65d00; --chart-3: #17795e; --chart-4: #8a3ab0; --chart-5: #a3243b; --chart-6: #6b6f1a;
  --chart-good: #17795e; --chart-bad: #b3261e; --chart-wait: #b9c2cf;
}
@media screen and (prefers-color-scheme: dark) { :root {
  --chart-ink: #e3e8f0; --chart-soft: #98a3b3; --chart-grid: #2c3442; --chart-ground: #12161d;
  --chart-1: #6ea8ff; --chart-2: #ffa25c; --chart-3: #52c9a2; --chart-4: #cf93ef; --chart-5: #ff8a97; --chart-6: #cfd06a;
  --chart-good: #52c9a2; --chart-bad: #ff7b72; --chart-wait: #4a5566;
} }
.chart { display: block; max-width: 100%; height: auto; font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
.chart text { fill: var(--chart-soft); }
.chart text.ink { fill: var(--chart-ink); }
.chart text.mid { text-anchor: middle; }
.chart text.end { text-anchor: end; }
.chart .grid { stroke: var(--chart-grid); stroke-width: 1; fill: none; }
.chart .axis { stroke: var(--chart-soft); stroke-width: 1; fill: none; }
.chart .line { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
.chart .s1 { stroke: var(--chart-1); } .chart .s2 { stroke: var(--chart-2); stroke-dasharray: 6 3; }
.chart .s3 { stroke: var(--chart-3); stroke-dasharray: 2 2; } .chart .s4 { stroke: var(--chart-4); stroke-dasharray: 8 3 2 3; }
.chart .s5 { stroke: var(--chart-5); stroke-dasharray: 4 4; } .chart .s6 { stroke: var(--chart-6); stroke-dasharray: 1 3; }
.chart .f1 { fill: var(--chart-1); } .chart .f2 { fill: var(--chart-2); } .chart .f3 { fill: var(--chart-3); }
.chart .f4 { fill: var(--chart-4); } .chart .f5 { fill: var(--chart-5); } .chart .f6 { fill: var(--chart-6); }
.chart .d1 { stroke-dasharray: none; } .chart .d2 { stroke-dasharray: 6 3; } .chart .d3 { stroke-dasharray: 2 2; }
.chart .d4 { stroke-dasharray: 8 3 2 3; } .chart .d5 { stroke-dasharray: 4 4; } .chart .d6 { stroke-dasharray: 1 3; }
.chart .hollow { fill: var(--chart-ground); stroke-width: 1.5; }
.chart .tick { fill: none; stroke-width: 1; }
.chart .t1 { stroke: var(--chart-1); } .chart .t2 { stroke: var(--chart-2); } .chart .t3 { stroke: var(--chart-3); }
.chart .t4 { stroke: var(--chart-4); } .chart .t5 { stroke: var(--chart-5); } .chart .t6 { stroke: var(--chart-6); }
.chart .area { fill: var(--chart-1); fill-opacity: 0.35; stroke: none; }
.chart .wait { fill: var(--chart-wait); } .chart .good { fill: var(--chart-good); } .chart .bad { fill: var(--chart-bad); }
@media print { .chart { color-adjust: exact; print-color-adjust: exact; } }
`

// palette is the number of series that Style tells apart: s1 to s6 for strokes, f1 to f6 for areas.
const palette = 6

// seriesClass is the class of series n, from 0, with the prefix "s" (stroke) or "f" (fill). It begins anew behind the last.
func seriesClass(prefix string, n int) string { return prefix + strconv.Itoa(n%palette+1) }

// lineClass is the class of the line of series n. Behind the last color each round has the dash of the next one, so that 36
// lines differ in color or dash.
func lineClass(n int) string {
	class := "line " + seriesClass("s", n)
	if round := n / palette; round > 0 {
		class += " " + seriesClass("d", n+round)
	}
	return class
}

// canvas collects the markup of one chart. Coordinates are in CSS pixels from the upper left.
type canvas struct{ b strings.Builder }

// newCanvas begins a chart of that size. title is what a screen reader says of it; class tells kinds of charts apart.
func newCanvas(width, height float64, class, title string) *canvas {
	c := &canvas{}
	c.b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" class="chart ` + class + `" role="img"`)
	c.attr("viewBox", "0 0 "+coordinate(width)+" "+coordinate(height))
	c.attr("width", coordinate(width))
	c.attr("height", coordinate(height))
	c.b.WriteString(`><title>` + printable(title) + `</title>`)
	return c
}

// alone gives the chart its own style and ground, for a file of its own.
func (c *canvas) alone() {
	c.b.WriteString("<style>" + Style + "svg { background: var(--chart-ground); }</style>")
}

func (c *canvas) attr(name, value string) { c.b.WriteString(" " + name + `="` + value + `"`) }

func (c *canvas) rect(class string, x, y, w, h float64) {
	c.b.WriteString("<rect")
	c.attr("class", class)
	c.place([]string{"x", "y", "width", "height"}, x, y, w, h)
	c.b.WriteString("/>")
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.b.WriteString("<line")
	c.attr("class", class)
	c.place([]string{"x1", "y1", "x2", "y2"}, x1, y1, x2, y2)
	c.b.WriteString("/>")
}

func (c *canvas) circle(class string, x, y, r float64) {
	c.b.WriteString("<circle")
	c.attr("class", class)
	c.place([]string{"cx", "cy", "r"}, x, y, r)
	c.b.WriteString("/>")
}

// path draws what d, the data of a path, says.
func (c *canvas) path(class, d string) {
	c.b.WriteString("<path")
	c.attr("class", class)
	c.attr("d", d)
	c.b.WriteString("/>")
}

// text writes s with its base line at y. Classes end and mid set where x is of it, ink makes it strong.
func (c *canvas) text(class string, x, y float64, s string) {
	c.b.WriteString("<text")
	c.attr("class", class)
	c.place([]string{"x", "y"}, x, y)
	c.b.WriteString(">" + printable(s) + "</text>")
}

// group puts what draw draws under one tip, which a pointer shows.
func (c *canvas) group(tip string, draw func()) {
	c.b.WriteString("<g><title>" + printable(tip) + "</title>")
	draw()
	c.b.WriteString("</g>")
}

func (c *canvas) place(names []string, at ...float64) {
	for i, n := range names {
		c.attr(n, coordinate(at[i]))
	}
}

func (c *canvas) end() SVG {
	c.b.WriteString("</svg>")
	return SVG(c.b.String())
}

// coordinate is a number of a drawing: a tenth of a pixel is enough, and what is no number is 0.
func coordinate(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', -1, 64) // + 0 makes -0 a 0
}

// printable makes any text safe to stand in a chart: valid, without characters that steer, and escaped.
func printable(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) && r != thinSpace {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(s, "·")))
}

// thinSpace parts groups of three digits: narrow, and no place to break a line.
const thinSpace = '\u202f'

// Number is v for people: four significant digits below 10 000, whole and in groups of three above. A number that is none
// is a dash.
func Number(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "–"
	case a >= 9999.5:
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	case a == 0:
		return "0"
	case a < 0.001:
		return strconv.FormatFloat(v, 'g', 2, 64)
	default:
		places := max(0, 3-int(math.Floor(math.Log10(a))))
		s := strconv.FormatFloat(v, 'f', min(places, 4), 64)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
}

func grouped(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + string(thinSpace) + digits[i:]
	}
	return sign + digits
}

// Milliseconds is a duration for people, in the unit that fits: us, ms, s or min.
func Milliseconds(ms float64) string {
	switch a := math.Abs(ms); {
	case math.IsNaN(ms) || math.IsInf(ms, 0):
		return "–"
	case a == 0:
		return "0 ms"
	case a < 1:
		return fixed(ms*1e3, 0) + " us"
	case a < 10:
		return fixed(ms, 2) + " ms"
	case a < 1000:
		return fixed(ms, 1) + " ms"
	case a < 120_000:
		return fixed(ms/1e3, 2) + " s"
	}
	return fixed(ms/60_000, 1) + " min"
}

func fixed(v float64, places int) string { return strconv.FormatFloat(v, 'f', places, 64) }

// ticks are round places for an axis from lo to hi, about n of them, steps of 1, 2 or 5 times a power of ten.
func ticks(lo, hi float64, n int) []float64 {
	if !(hi > lo) || n < 1 || math.IsInf(hi-lo, 0) {
		return nil
	}
	rough := (hi - lo) / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := power
	for _, m := range []float64{2, 5, 10} {
		if rough > step {
			step = m * power
		}
	}
	var out []float64
	for i := math.Ceil(lo / step); i*step <= hi+step/1e6; i++ {
		out = append(out, i*step+0)
	}
	return out
}
