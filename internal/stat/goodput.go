package stat

import "math"

// Share is a part of a whole, with the range that holds the true share.
type Share struct {
	Part  int `json:"part"`
	Whole int `json:"whole"`
	// Share is Part / Whole; null when Whole is 0.
	Share *float64 `json:"share"`
	// Interval is Wilson's; null when Whole is 0.
	Interval *Interval `json:"interval"`
}

// ShareOf is part of whole, 0 <= part <= whole.
func ShareOf(part, whole int) Share {
	s := Share{Part: part, Whole: whole}
	if whole == 0 {
		return s
	}
	p, n := float64(part)/float64(whole), float64(whole)
	z2 := normal95 * normal95
	center := (p + z2/(2*n)) / (1 + z2/n)
	half := normal95 / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	s.Share = &p
	s.Interval = &Interval{Lo: max(center-half, 0), Hi: min(center+half, 1), Confidence: Confidence}
	return s
}

// normal95 is how many standard deviations hold 95 % of a normal distribution.
const normal95 = 1.959963984540054
