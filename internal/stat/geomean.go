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
