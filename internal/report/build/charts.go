package build

import (
	"fmt"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/report"
)

// drawLines adds a plot to a section or, where it has no value, a line that says so.
func drawLines(s *report.Section, c report.Chart, p chart.Plot) {
	if p.Empty() {
		s.Notes = append(s.Notes, undrawn(c))
		return
	}
	c.SVG = chart.Lines(p)
	s.Charts = append(s.Charts, c)
}

// drawBars adds bars to a section or, where none has a value, a line that says so.
func drawBars(s *report.Section, c report.Chart, p chart.BarPlot) {
	if p.Empty() {
		s.Notes = append(s.Notes, undrawn(c))
		return
	}
	c.SVG = chart.Bars(p)
	s.Charts = append(s.Charts, c)
}

func undrawn(c report.Chart) string {
	return fmt.Sprintf("Not drawn, as no number is there: %s.", c.Title)
}
