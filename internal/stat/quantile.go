package stat

import "math"

// Quantile is the q-quantile of sorted, which must be in ascending order and not empty; 0 <= q <= 1. Between two
// samples it interpolates linearly (the rule of NumPy and R type 7), so the median of an even number of samples is the
// mean of the middle two.
func Quantile(sorted []float64, q float64) float64 {
	pos := q * float64(len(sorted)-1)
	lo := int(math.Floor(pos))
	hi := min(lo+1, len(sorted)-1)
	part := pos - float64(lo)
	if part == 0 || sorted[lo] == sorted[hi] {
		return sorted[lo]
	}
	return sorted[lo]*(1-part) + sorted[hi]*part
}

// Floor is the number of samples below which the q-quantile is not printed: the least n for which, with 99 %
// confidence, at least two samples lie beyond the true quantile. It gives the known floors of load tests: 11 for p50,
// 64 for p90, 130 for p95, 662 for p99.
func Floor(q float64) int {
	for n := 2; ; n++ {
		// Chance that at most one of n samples lies beyond the quantile.
		chance := math.Pow(q, float64(n)) + float64(n)*(1-q)*math.Pow(q, float64(n-1))
		if chance <= 1-floorConfidence {
			return n
		}
	}
}

// floorConfidence is the confidence with which a printed percentile has samples on its far side.
const floorConfidence = 0.99
