package stat

import (
	"math/rand/v2"
	"slices"
)

// bootstrapRounds is how often a bootstrap draws the sample anew.
const bootstrapRounds = 2_000

// leastForBootstrap is the number of values from which on a resampled sample stands for another one.
const leastForBootstrap = 11

// BootstrapMean is the percentile bootstrap interval of the mean of a sample, in any order. Its confidence is the nominal
// one, which small or very skewed samples do not quite reach; ok is false below 11 values, where it would be far off.
func BootstrapMean(sample []float64) (iv Interval, ok bool) {
	sorted := finite(sample)
	if len(sorted) < leastForBootstrap {
		return Interval{}, false
	}
	r := random(2)
	means := make([]float64, min(bootstrapRounds, max(leastRounds, drawBudget/len(sorted))))
	for i := range means {
		sum := 0.0
		for range sorted {
			sum += sorted[r.IntN(len(sorted))]
		}
		means[i] = sum / float64(len(sorted))
	}
	slices.Sort(means)
	tail := (1 - Confidence) / 2
	return Interval{Lo: Quantile(means, tail), Hi: Quantile(means, 1-tail), Confidence: Confidence}, true
}

// random is a source of its own for each use, seeded alike each time.
func random(use uint64) *rand.Rand { return rand.New(rand.NewPCG(0x62656e6368, use)) }
