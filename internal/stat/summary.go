package stat

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Reasons for a missing statistic.
const (
	ReasonNoSamples   exchange.Reason = "no_samples"           // the sample is empty
	ReasonSampleFloor exchange.Reason = "below_sample_floor"   // too few samples for this percentile
	ReasonNoInterval  exchange.Reason = "too_few_for_interval" // too few samples for the confidence asked for
)

// Confidence of the interval of the median in a Summary.
const Confidence = 0.95

// Summary is what a sample of one metric comes to. Absent statistics are nil and have their reason in Absent.
type Summary struct {
	N        int                        `json:"n"`
	Min      *float64                   `json:"min"`
	Max      *float64                   `json:"max"`
	Mean     *float64                   `json:"mean"`
	Median   *float64                   `json:"median"`          // of any sample, whatever its size
	Interval *Interval                  `json:"median_interval"` // of the median, at least 95 %
	P50      *float64                   `json:"p50"`             // percentiles are nil below their sample floor
	P90      *float64                   `json:"p90"`
	P95      *float64                   `json:"p95"`
	P99      *float64                   `json:"p99"`
	Absent   map[string]exchange.Reason `json:"absent,omitempty"` // JSON name of an absent statistic -> why
	Warnings []string                   `json:"warnings,omitempty"`
}

// Summarize reads a sample in any order and leaves it as it was.
func Summarize(sample []float64) Summary {
	sorted := finite(sample)
	s := Summary{N: len(sorted), Absent: map[string]exchange.Reason{}}
	if left := len(sample) - len(sorted); left > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d values that are not finite were left out", left))
	}
	if len(sorted) == 0 {
		for _, name := range []string{"min", "max", "mean", "median", "median_interval", "p50", "p90", "p95", "p99"} {
			s.Absent[name] = ReasonNoSamples
		}
		return s
	}
	s.Min, s.Max = &sorted[0], &sorted[len(sorted)-1]
	s.Mean, s.Median = ptr(mean(sorted)), ptr(Quantile(sorted, 0.5))
	if iv, ok := MedianInterval(sorted, Confidence); ok {
		s.Interval = &iv
	} else {
		s.Absent["median_interval"] = ReasonNoInterval
	}
	s.P50 = s.percentile("p50", sorted, floorP50, 0.50)
	s.P90 = s.percentile("p90", sorted, floorP90, 0.90)
	s.P95 = s.percentile("p95", sorted, floorP95, 0.95)
	s.P99 = s.percentile("p99", sorted, floorP99, 0.99)
	return s
}

// Sample floors of the percentiles in a Summary; Floor derives them.
const (
	floorP50 = 11
	floorP90 = 64
	floorP95 = 130
	floorP99 = 662
)

// percentile is the q-quantile, or nil with a reason and a warning when the sample is below its floor.
func (s *Summary) percentile(name string, sorted []float64, floor int, q float64) *float64 {
	if len(sorted) < floor {
		s.Absent[name] = ReasonSampleFloor
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s needs %d samples, there are %d", name, floor, len(sorted)))
		return nil
	}
	return ptr(Quantile(sorted, q))
}

// finite is a sorted copy of the sample without NaN and infinities.
func finite(sample []float64) []float64 {
	out := make([]float64, 0, len(sample))
	for _, v := range sample {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// mean adds the shares instead of dividing the sum, so that large values do not overflow.
func mean(vs []float64) float64 {
	m := 0.0
	for _, v := range vs {
		m += v / float64(len(vs))
	}
	return m
}

func ptr(v float64) *float64 { return &v }
