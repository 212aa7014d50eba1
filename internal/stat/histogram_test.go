package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHistogramQuantiles(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	h := NewHistogram()
	var values []float64
	for range 5000 {
		v := math.Round(r.ExpFloat64() * 1e8)
		values = append(values, v)
		h.Add(v)
	}
	slices.Sort(values)
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99} {
		got, ok := h.Quantile(q)
		if want := Quantile(values, q); !ok || math.Abs(got-want) > 0.005*want {
			t.Errorf("quantile %v: %v (%v), want %v", q, got, ok, want)
		}
	}
	if top, ok := h.Quantile(1); !ok || math.Abs(top-values[len(values)-1]) > 0.001*top {
		t.Errorf("maximum %v, want %v", top, values[len(values)-1])
	}
}

func TestHistogramKeepsTheSampleFloors(t *testing.T) {
	h := NewHistogram()
	if _, ok := h.Quantile(0.5); ok {
		t.Error("an empty histogram has a median")
	}
	for n := 1; n <= 662; n++ {
		h.Add(float64(n))
		for q, floor := range map[float64]int{0.5: 11, 0.9: 64, 0.95: 130, 0.99: 662, 0.01: 662} {
			if _, ok := h.Quantile(q); ok != (n >= floor) {
				t.Fatalf("quantile %v of %d values: %v", q, n, ok)
			}
		}
	}
}

func TestHistogramMergeIsAddingAll(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	parts := []*Histogram{NewHistogram(), NewHistogram(), NewHistogram()}
	all, merged := NewHistogram(), NewHistogram()
	for i := range 3000 {
		v := math.Round(r.ExpFloat64() * 1e6)
		parts[i%3].Add(v)
		all.Add(v)
	}
	parts[0].Add(math.NaN())
	parts[1].Add(-1)
	parts[2].Add(2 * float64(histogramMax))
	for _, p := range parts {
		b, err := p.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		read := NewHistogram()
		if err := read.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if !read.counts.Equals(p.counts) {
			t.Error("a histogram is not the same after writing and reading")
		}
		merged.Merge(p)
	}
	if !merged.counts.Equals(all.counts) || merged.N() != 3000 || merged.OutOfRange() != 3 {
		t.Errorf("merged %d values and %d out of range", merged.N(), merged.OutOfRange())
	}
	if err := merged.UnmarshalBinary([]byte("no histogram")); err == nil || merged.N() != 3000 {
		t.Errorf("garbage was read (%v), or changed the histogram", err)
	}
}
