package gates

import (
	"math/rand/v2"
	"testing"
)

// simulateDraws is how many of so many samples of n draws from one distribution lie beyond the bar of another.
func simulateDraws(from, to []float64, n, samples int, bar float64) (beyond int) {
	rng := rand.New(rand.NewPCG(1, 2)) // other numbers than the rule's
	counts := make([]int, len(from))
	for range samples {
		clear(counts)
		for range n {
			at, k := rng.Float64(), 0
			for k < len(from)-1 && at >= from[k] {
				at -= from[k]
				k++
			}
			counts[k]++
		}
		if totalVariation(counts, to) > bar {
			beyond++
		}
	}
	return beyond
}

func TestTotalVariation(t *testing.T) {
	for _, c := range []struct {
		counts []int
		probs  []float64
		want   float64
	}{
		{[]int{5, 5}, []float64{0.5, 0.5}, 0}, {[]int{10, 0}, []float64{0.5, 0.5}, 0.5}, {[]int{0, 10}, []float64{1, 0}, 1},
	} {
		if got := totalVariation(c.counts, c.probs); !near(got, c.want) {
			t.Errorf("%v of %v: %v, want %v", c.counts, c.probs, got, c.want)
		}
	}
	if a, b := noiseBar([]float64{0.6, 0.4}, 100, 0.01), noiseBar([]float64{0.6, 0.4}, 100, 0.01); a != b {
		t.Errorf("the bar is %v and then %v", a, b)
	}
}
