package stat

import "math"

// Interval is a range that holds the true value with the stated confidence.
type Interval struct {
	Lo         float64 `json:"lo"`
	Hi         float64 `json:"hi"`
	Confidence float64 `json:"confidence"` // reached, at least the one asked for
}

// MedianInterval is the narrowest symmetric pair of order statistics of sorted (ascending) that holds the true median
// with at least the given confidence (0 < confidence < 1), whatever the distribution. ok is false when the sample is too small: 95 % takes 6.
func MedianInterval(sorted []float64, confidence float64) (iv Interval, ok bool) {
	n := len(sorted)
	// The k-th smallest and k-th largest miss the median when fewer than k samples fall on one side of it, which
	// has the chance below(k) = P(Binomial(n, 1/2) < k) on each side.
	k, below := 0, 0.0
	for next := 0.0; k < n/2; k++ {
		next = below + binomialHalf(n, k)
		if 1-2*next < confidence {
			break
		}
		below = next
	}
	if k == 0 {
		return Interval{}, false
	}
	return Interval{Lo: sorted[k-1], Hi: sorted[n-k], Confidence: 1 - 2*below}, true
}

// binomialHalf is P(Binomial(n, 1/2) = k), through logarithms so that a large n does not underflow early.
func binomialHalf(n, k int) float64 {
	lgamma := func(x int) float64 { v, _ := math.Lgamma(float64(x)); return v }
	return math.Exp(lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1) - float64(n)*math.Ln2)
}
