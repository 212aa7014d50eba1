package web

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// absentText stands where there is no number.
const absentText = "–"

// templateFuncs are what the templates write recorded things with. Their results are text, which the templates escape,
// but for svg, whose markup is ours.
func templateFuncs() template.FuncMap {
	return template.FuncMap{
		"svg":      func(s chart.SVG) template.HTML { return template.HTML(s) },
		"label":    func(s string) string { return oneLine(s, 60) },
		"line":     func(s string) string { return oneLine(s, 400) },
		"bytes":    bytesText,
		"count":    func(n any) string { return countText(n) },
		"clock":    func(t time.Time) string { return t.Local().Format("15:04:05.000") },
		"moment":   momentText,
		"duration": func(d time.Duration) string { return chart.Milliseconds(float64(d) / 1e6) },
		"ms":       chart.Milliseconds,
		"shown":    shownText,
		"shownrate": func(s shown) string {
			return shownAs(s, func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) })
		},
		"shownms": func(s shown) string { return shownAs(s, chart.Milliseconds) },
		"figure":  figureText,
		"rate":    func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) },
		"spark":   func(e Ended) chart.SVG { return sparkOf(e.Times, e.Row.Metrics["total_wall_ms"].Value, false) },
		"streamspark": func(s Stream) chart.SVG {
			return sparkOf(s.Times, float64(s.Age)/1e6, true)
		},
		"visible": func(s string) []segment { segments, _ := visible(s, excerptBytes); return segments },
	}
}

func sparkOf(times []float64, span float64, open bool) chart.SVG {
	return chart.Spark{Times: times, Span: span, Open: open}.SVG()
}

func momentText(t time.Time) string {
	if t.IsZero() {
		return absentText
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func shownText(s shown) string { return shownAs(s, chart.Number) }

func shownAs(s shown, text func(float64) string) string {
	switch s.basis {
	case 0:
		return absentText
	case 2:
		return "~" + text(float64(s.value))
	}
	return text(float64(s.value))
}

// figureText is a figure with its unit; an estimate has a "~" before it.
func figureText(f exchange.Figure, unit string) string {
	if !f.Present() {
		return absentText
	}
	text := chart.Number(f.Value) + " " + unit
	if unit == "ms" {
		text = chart.Milliseconds(f.Value)
	}
	if f.Basis == exchange.BasisEstimated {
		return "~" + text
	}
	return text
}

func countText(n any) string {
	switch v := n.(type) {
	case int:
		return chart.Number(float64(v))
	case int64:
		return chart.Number(float64(v))
	case uint64:
		return chart.Number(float64(v))
	}
	return fmt.Sprint(n)
}

// bytesText is a size for people.
func bytesText(n int64) string {
	v := float64(n)
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	unit := ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v /= 1024; v < 1024 {
			break
		}
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}

// outcomeText is the outcome of a row with the cause of a failure.
func outcomeText(row *exchange.Summary) string {
	text := string(row.Outcome)
	if row.Outcome == exchange.OutcomeUpstreamError && row.Status != 0 {
		return text + " " + strconv.Itoa(row.Status)
	}
	if row.Cause != nil && row.Outcome != exchange.OutcomeComplete {
		return text + " " + row.Cause.Code
	}
	return text
}

// verdictText is the outcome with all that makes it special.
func verdictText(row *exchange.Summary) string {
	var notes []string
	notes = append(notes, row.Flags...)
	if row.State == exchange.StateTruncated && !slices.Contains(row.Flags, "record_truncated") {
		notes = append(notes, "record truncated")
	}
	if len(notes) == 0 {
		return outcomeText(row)
	}
	return outcomeText(row) + " · " + strings.Join(notes, ", ")
}
