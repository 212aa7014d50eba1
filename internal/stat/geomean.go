package stat

import "math"

// GeoMean is the geometric mean of the values above 0, and how many these are; 0 of none. interval is its bootstrap
// interval, nil below 11 values.
func GeoMean(values []float64) (mean float64, n int, interval *Interval) {
	var logs []float64
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 0) {
			logs = append(logs, math.Log(v))
		}
	}
	if len(logs) == 0 {
		return 0, 0, nil
	}
	sum := 0.0
	for _, v := range logs {
		sum += v
	}
	mean = math.Exp(sum / float64(len(logs)))
	if iv, ok := BootstrapMean(logs); ok {
		interval = &Interval{Lo: math.Exp(iv.Lo), Hi: math.Exp(iv.Hi), Confidence: iv.Confidence}
	}
	return mean, len(logs), interval
}

// GeoMeanInterval is the interval of the geometric mean of candidate / reference over the things, as far as the takes of each
// tell: what these same things would come to if they were measured again. It says nothing of other things. ok is false when
// one of them lacks takes on a side, or when there are too few takes of them all.
//
// As in Compare, the takes of each thing are dealt anew to the two sides, and the interval is all factors that do not come out
// different; the statistic is the mean of the log ratios. Things whose ratios lie far apart make it wider, never narrower.
func GeoMeanInterval(things []Matched) (iv Interval, ok bool) {
	m := newMatching(things)
	if m.plain = true; len(m.things) == 0 || len(m.things) < len(things) || m.relabelings() < 2/(1-Confidence) {
		return Interval{}, false
	}
	sum := 0.0
	for _, t := range m.things {
		sum += mean(t.Candidate) - mean(t.Reference)
	}
	return m.intervalAround(sum / float64(len(m.things))), true
}
