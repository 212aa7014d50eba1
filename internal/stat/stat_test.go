package stat

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestFloorsAreTheKnownOnes(t *testing.T) {
	for _, c := range []struct {
		q     float64
		want  int
		inUse int
	}{{0.50, 11, floorP50}, {0.90, 64, floorP90}, {0.95, 130, floorP95}, {0.99, 662, floorP99}} {
		if got := Floor(c.q); got != c.want || c.inUse != c.want {
			t.Errorf("floor of the %v quantile: derived %d, in use %d, want %d", c.q, got, c.inUse, c.want)
		}
	}
}

func TestMedianOfEvenCountIsMeanOfMiddleTwo(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{7}, 7}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}, {[]float64{8, 2, 4, 100}, 6}} {
		if got := Summarize(c.in); *got.Median != c.want {
			t.Errorf("median of %v is %v, want %v", c.in, *got.Median, c.want)
		}
	}
}

func TestPercentilesAreNullBelowTheirFloor(t *testing.T) {
	pick := map[string]func(Summary) *float64{
		"p50": func(s Summary) *float64 { return s.P50 }, "p90": func(s Summary) *float64 { return s.P90 },
		"p95": func(s Summary) *float64 { return s.P95 }, "p99": func(s Summary) *float64 { return s.P99 },
	}
	floors := map[string]int{"p50": 11, "p90": 64, "p95": 130, "p99": 662}
	for name, floor := range floors {
		below, at := Summarize(make([]float64, floor-1)), Summarize(make([]float64, floor))
		if pick[name](below) != nil || below.Absent[name] != ReasonSampleFloor {
			t.Errorf("%s of %d samples is there, or its absence has no reason: %v", name, floor-1, below.Absent)
		}
		if !strings.Contains(strings.Join(below.Warnings, "\n"), name+" needs") {
			t.Errorf("%s of %d samples is missing without a warning: %q", name, floor-1, below.Warnings)
		}
		if pick[name](at) == nil || at.Absent[name] != "" {
			t.Errorf("%s of %d samples is absent: %v", name, floor, at.Absent)
		}
		if below.Median == nil {
			t.Errorf("the median of %d samples is absent", floor-1)
		}
	}
}

func TestEmptySampleIsAllNullWithReasons(t *testing.T) {
	s := Summarize(nil)
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"min", "max", "mean", "median", "median_interval", "p50", "p90", "p95", "p99"} {
		if v, there := fields[name]; !there || v != nil {
			t.Errorf("%s is %v (there: %v), want null", name, v, there)
		}
		if s.Absent[name] != ReasonNoSamples {
			t.Errorf("%s has the reason %q", name, s.Absent[name])
		}
	}
}

func TestValuesThatAreNotFiniteAreLeftOut(t *testing.T) {
	s := Summarize([]float64{1, math.NaN(), 3, math.Inf(1), math.Inf(-1)})
	if s.N != 2 || *s.Median != 2 || *s.Max != 3 {
		t.Errorf("got n %d, median %v, max %v", s.N, *s.Median, *s.Max)
	}
	if len(s.Warnings) == 0 || !strings.HasPrefix(s.Warnings[0], "3 values") {
		t.Errorf("no warning about 3 values: %q", s.Warnings)
	}
}

func TestMedianIntervalKnownRanks(t *testing.T) {
	// Ranks and confidences of the sign test's tables.
	for _, c := range []struct {
		n, lo, hi  int // ranks from 1
		confidence float64
	}{{6, 1, 6, 0.96875}, {10, 2, 9, 0.978516}, {20, 6, 15, 0.958611}, {100, 40, 61, 0.964800}} {
		sample := make([]float64, c.n)
		for i := range sample {
			sample[i] = float64(i + 1)
		}
		iv, ok := MedianInterval(sample, 0.95)
		if !ok || iv.Lo != float64(c.lo) || iv.Hi != float64(c.hi) || math.Abs(iv.Confidence-c.confidence) > 1e-6 {
			t.Errorf("n %d: got %+v (%v), want ranks %d..%d at %v", c.n, iv, ok, c.lo, c.hi, c.confidence)
		}
	}
	if iv, ok := MedianInterval([]float64{1, 2, 3, 4, 5}, 0.95); ok {
		t.Errorf("5 samples gave a 95 %% interval: %+v", iv)
	}
	if s := Summarize([]float64{1, 2, 3, 4, 5}); s.Interval != nil || s.Absent["median_interval"] != ReasonNoInterval {
		t.Errorf("5 samples: interval %v, reason %q", s.Interval, s.Absent["median_interval"])
	}
}

func TestMedianIntervalOfALargeSampleIsFinite(t *testing.T) {
	sample := make([]float64, 50_000)
	for i := range sample {
		sample[i] = float64(i)
	}
	iv, ok := MedianInterval(sample, 0.95)
	// Half the width is 1.96 * sqrt(n)/2 = 219 ranks.
	if !ok || math.Abs((iv.Hi-iv.Lo)/2-219) > 3 || iv.Confidence < 0.95 || iv.Confidence > 0.96 {
		t.Errorf("got %+v (%v)", iv, ok)
	}
}

// sampleOf draws n values of a skewed distribution; the seed makes a failure repeatable.
func sampleOf(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = r.ExpFloat64() * 100
		if r.IntN(4) == 0 {
			out[i] = math.Floor(out[i]) // ties
		}
	}
	return out
}

func TestSummaryProperties(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := sampleOf(r, 1+r.IntN(900))
		kept := slices.Clone(in)
		s := Summarize(in)
		if !slices.Equal(in, kept) {
			t.Fatalf("seed %d: the sample was changed", seed)
		}
		shuffled := slices.Clone(in)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(s, Summarize(shuffled)); diff != "" {
			t.Fatalf("seed %d: the order of the sample matters:\n%s", seed, diff)
		}
		order := []*float64{s.Min, s.Median, s.P90, s.P95, s.P99, s.Max}
		last := math.Inf(-1)
		for i, v := range order {
			if v == nil {
				continue
			}
			if *v < last {
				t.Fatalf("seed %d: statistic %d of %v is out of order", seed, i, order)
			}
			last = *v
		}
		if iv := s.Interval; iv != nil && (iv.Lo > *s.Median || iv.Hi < *s.Median || iv.Confidence < Confidence || iv.Confidence > 1) {
			t.Fatalf("seed %d: interval %+v around %v", seed, *iv, *s.Median)
		}
		if *s.Mean < *s.Min-1e-9 || *s.Mean > *s.Max+1e-9 {
			t.Fatalf("seed %d: mean %v outside %v..%v", seed, *s.Mean, *s.Min, *s.Max)
		}
	}
}

func TestMedianIntervalCovers(t *testing.T) {
	// The true median of the exponential distribution is ln 2. 2,000 trials at 95 %: five standard deviations below is 92.5 %.
	r := rand.New(rand.NewPCG(7, 7))
	const trials = 2000
	hit := 0
	for range trials {
		in := make([]float64, 15)
		for i := range in {
			in[i] = r.ExpFloat64()
		}
		slices.Sort(in)
		iv, _ := MedianInterval(in, 0.95)
		if iv.Lo <= math.Ln2 && math.Ln2 <= iv.Hi {
			hit++
		}
	}
	if share := float64(hit) / trials; share < 0.925 {
		t.Errorf("the interval held the median in %.3f of the trials", share)
	}
}

func TestReasonsAreSnakeCase(t *testing.T) {
	for _, r := range []exchange.Reason{ReasonNoSamples, ReasonSampleFloor, ReasonNoInterval} {
		if strings.ToLower(string(r)) != string(r) || strings.ContainsAny(string(r), " -") {
			t.Errorf("reason %q is not snake case", r)
		}
	}
}
