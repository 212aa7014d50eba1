package stat

import (
	"math"
	"testing"
)

// TestCensusHasNoFloor holds that all there is has its quantiles, however little that is.
func TestCensusHasNoFloor(t *testing.T) {
	h := NewHistogram()
	if v := h.Census(0.99); v != 0 {
		t.Errorf("of none: %v", v)
	}
	for _, v := range []float64{0, 1000, 2000, 1e9} {
		h.Add(v)
	}
	for q, want := range map[float64]float64{0.25: 0, 0.5: 1000, 1: 1e9} {
		if got := h.Census(q); math.Abs(got-want) > want/1000 {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
}
