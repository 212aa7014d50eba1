package chart

import (
	"math"
	"strings"
	"testing"
)

func steady(n int, from, every float64) (out []float64) {
	for i := range n {
		out = append(out, from+float64(i)*every)
	}
	return out
}

// TestSpark holds what a row shows: bars where tokens came, the wait before them, and that a stream goes on.
func TestSpark(t *testing.T) {
	for name, c := range map[string]struct {
		s    Spark
		want []string
		not  []string
	}{
		"nothing":        {Spark{}, []string{"no token event", `class="wait" x="0" y="16" width="120"`}, []string{"<path"}},
		"half waiting":   {Spark{Times: steady(30, 500, 10), Span: 1000}, []string{`width="60"`, "30 token events", "<path"}, []string{`class="f2"`}},
		"at once":        {Spark{Times: []float64{0, 1000}, Span: 1000, Open: true}, []string{`class="f2"`, "<path"}, []string{`class="wait"`}},
		"out of bounds":  {Spark{Times: []float64{-1, 2000, math.NaN()}, Span: 1000}, []string{`width="120"`}, []string{"<path"}},
		"no span":        {Spark{Times: []float64{1, 2}}, []string{`width="120"`}, []string{"<path"}},
		"not a number":   {Spark{Times: []float64{1}, Span: math.NaN()}, nil, []string{"<path", "NaN"}},
		"many in a bin":  {Spark{Times: steady(5000, 0, 0.2), Span: 1000}, []string{"v-16"}, nil},
		"one among many": {Spark{Times: append(steady(1000, 0, 0.001), 900), Span: 1000}, []string{"v-1h"}, nil},
	} {
		got := c.s.SVG()
		wellFormed(t, got)
		for _, w := range c.want {
			if !strings.Contains(string(got), w) {
				t.Errorf("%s lacks %q: %s", name, w, got)
			}
		}
		for _, n := range c.not {
			if strings.Contains(string(got), n) {
				t.Errorf("%s has %q: %s", name, n, got)
			}
		}
		if len(got) > 3<<10 {
			t.Errorf("%s takes %d bytes of a row", name, len(got))
		}
	}
}
