package chart

import (
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got SVG) {
	t.Helper()
	wellFormed(t, got)
	path := "testdata/" + name
	text := strings.ReplaceAll(string(got), "><", ">\n<") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s: -want +got\n%s", name, diff)
	}
}

func linesSample() Plot {
	return Plot{
		Title: "Prefill", X: Axis{Label: "prompt", Unit: "tokens", Log: true}, Y: Axis{Label: "prefill", Unit: "tok/s"},
		Series: []Series{
			{"one <b>", []Point{{X: 1024, Y: 2400, Lo: 2300, Hi: 2550}, {X: 4096, Y: 3100}, {X: 16384, Y: 2900}}},
			{"two", []Point{{X: 1024, Y: 1400}, {X: 4096, Y: math.NaN()}, {X: 16384, Y: 1900}}},
		},
	}
}

func barsSample() BarPlot {
	return BarPlot{Title: "Decode", Axis: Axis{Label: "decode", Unit: "tok/s"}, Groups: []BarGroup{
		{"text_short", []Bar{{Label: "a", Value: 58.2, Lo: 57, Hi: 60}, {Label: "a name that is longer than any label may be & more", Series: 1, Value: 41}}},
		{"", []Bar{{Label: "c", Series: 2, Value: math.NaN(), Why: "failed"}}},
	}}
}

func TestPlots(t *testing.T) {
	golden(t, "lines.svg", Lines(linesSample()))
	golden(t, "bars.svg", Bars(barsSample()))
	steps := linesSample()
	steps.Steps = true
	golden(t, "steps.svg", Lines(steps))
}

// TestPlotsOfAnything holds that no numbers break a chart: none, one, equal ones, none that are finite, huge and tiny ones.
func TestPlotsOfAnything(t *testing.T) {
	for _, vs := range [][]float64{{}, {0}, {5}, {5, 5}, {math.NaN()}, {math.Inf(1), 1}, {-3, 4}, {1e-9, 1e12}, {math.MaxFloat64, -math.MaxFloat64}} {
		for _, log := range []bool{false, true} {
			p := Plot{X: Axis{Log: log}, Y: Axis{Log: log}, Series: make([]Series, 8)}
			b := BarPlot{Axis: Axis{Log: log}, Groups: make([]BarGroup, 1)}
			for i := range p.Series {
				for _, v := range vs {
					p.Series[i].Points = append(p.Series[i].Points, Point{X: v, Y: v, Lo: v / 2, Hi: v})
					b.Groups[0].Bars = append(b.Groups[0].Bars, Bar{Series: i, Value: v, Hi: v})
				}
			}
			for _, got := range []SVG{Lines(p), Bars(b)} {
				wellFormed(t, got)
				if strings.Contains(string(got), "NaN") || strings.Contains(string(got), "Inf") {
					t.Errorf("values %v, log %v: %s", vs, log, got)
				}
			}
		}
	}
}

// TestScaleHoldsItsValues holds that every value lies between the ends of its axis.
func TestScaleHoldsItsValues(t *testing.T) {
	for _, vs := range [][]float64{{1, 2, 3}, {0.001, 900}, {17}, {99.9}, {1000, 1001}, {3e6, 4}} {
		for _, log := range []bool{false, true} {
			s := newScale(Axis{Log: log}, vs, 0, 100)
			for _, v := range vs {
				if at, ok := s.place(v); !ok || at < -1e-6 || at > 100+1e-6 {
					t.Errorf("%v of %v (log %v) at %v, %v", v, vs, log, at, ok)
				}
			}
			if len(s.ticks) < 2 || len(s.ticks) > 12 {
				t.Errorf("%v (log %v): ticks %v", vs, log, s.ticks)
			}
		}
	}
}
