package chart

import (
	"math"
	"strings"
	"testing"
)

// TestWaterfall holds that phases and tokens stand at their times, in proportion.
func TestWaterfall(t *testing.T) {
	w := Waterfall{
		Title: "x", End: 1000,
		Spans: []Span{{Name: "prefill", From: 0, To: 250, Waiting: true}, {Name: "decode", From: 250, To: 1000}, {Name: "instant", From: 500, To: 500}},
		Lanes: []Lane{{"reasoning", steady(10, 250, 10)}, {"text", steady(65, 350, 10)}},
	}
	got := string(w.SVG())
	wellFormed(t, SVG(got))
	for _, want := range []string{
		`class="wait" x="112" y="26" width="191"`, `class="f1" x="303" y="46" width="573"`, `y="66" width="1"`, // 764 px are a second
		"prefill: 250.0 ms", "reasoning: 10 token events", "65 ev", "ev/s", "tick t1", "tick t2", `class="area"`, ">1 s<", ">0.2 s<",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "v17"); n != 75 {
		t.Errorf("%d strokes of tokens, want 75", n)
	}
}

// TestWaterfallBounds holds that odd input draws something sound, and that a long stream stays small.
func TestWaterfallBounds(t *testing.T) {
	for name, w := range map[string]Waterfall{
		"empty": {}, "negative": {End: -1, Spans: []Span{{Name: "a", From: 3, To: 1}}}, "infinite": {End: math.Inf(1)}, "not a number": {End: math.NaN()},
		"outside":   {End: 10, Spans: []Span{{Name: "<b>", From: -5, To: 50}}, Lanes: []Lane{{"\x1b", []float64{-1, 0, 10, 11}}}},
		"many":      {End: 1e6, Lanes: []Lane{{"text", steady(200_000, 0, 5)}}},
		"too lanes": {End: 1, Lanes: make([]Lane, 9)},
	} {
		got := w.SVG()
		wellFormed(t, got)
		if strings.Contains(string(got), "NaN") || strings.Contains(string(got), "Inf") || strings.Contains(string(got), "<b>") {
			t.Errorf("%s: %s", name, got)
		}
		if len(got) > 64<<10 {
			t.Errorf("%s takes %d bytes", name, len(got))
		}
	}
}
