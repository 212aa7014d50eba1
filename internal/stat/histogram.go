package stat

import (
	"fmt"
	"math"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Range and precision of a Histogram: from one unit to a tenth of a percent of any value, up to an hour of nanoseconds.
const (
	histogramMax    = int64(3_600_000_000_000)
	histogramDigits = 3
)

// Histogram counts values of any number in little memory, so that samples of several runs or machines can be put
// together without keeping them. Values are whole numbers from 1 to 3.6e12, nanoseconds say, and are told to within
// 0.1 %. It belongs to one goroutine at a time.
type Histogram struct {
	counts *hdr.Histogram
	out    int64 // values beyond the range, which are in no quantile
}

// NewHistogram is an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{counts: hdr.New(1, histogramMax, histogramDigits)}
}

// Add counts a value. One that is not finite, negative or beyond the range is counted as out of range.
func (h *Histogram) Add(v float64) {
	if math.IsNaN(v) || v < 0 || v > float64(histogramMax) || h.counts.RecordValue(int64(math.Round(v))) != nil {
		h.out++
	}
}

// N is the number of values in range.
func (h *Histogram) N() int64 { return h.counts.TotalCount() }

// OutOfRange is the number of values that are in no quantile.
func (h *Histogram) OutOfRange() int64 { return h.out }

// Merge adds what other holds, as if its values had been added here. other stays as it was.
func (h *Histogram) Merge(other *Histogram) {
	h.out += other.out + h.counts.Merge(other.counts)
}

// Quantile is the q-quantile, 0 <= q <= 1; ok is false when the sample is below the quantile's Floor.
func (h *Histogram) Quantile(q float64) (v float64, ok bool) {
	if h.N() == 0 || q > 0 && q < 1 && h.N() < int64(Floor(max(q, 1-q))) {
		return 0, false
	}
	return float64(h.counts.ValueAtQuantile(100 * q)), true
}

// Census is the q-quantile, 0 <= q <= 1, of values that are all there are and no sample of more: it has no floor. It is 0
// of none.
func (h *Histogram) Census(q float64) float64 { return float64(h.counts.ValueAtQuantile(100 * q)) }

// MarshalBinary writes the histogram in the V2 form of HdrHistogram, which tools in other languages read. It does not
// hold the number of values out of range.
func (h *Histogram) MarshalBinary() ([]byte, error) {
	b, err := h.counts.EncodeV2()
	if err != nil {
		return nil, fmt.Errorf("write histogram: %w", err)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary or another HdrHistogram wrote.
func (h *Histogram) UnmarshalBinary(b []byte) error {
	counts, err := hdr.Decode(b)
	if err != nil {
		return fmt.Errorf("read histogram: %w", err)
	}
	own := NewHistogram()
	own.out = own.counts.Merge(counts)
	*h = *own
	return nil
}
