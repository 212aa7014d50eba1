package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pairsOf draws n things with one take a side: sizes differ by two decades, the candidate is ratio times the reference,
// and every take has noise of that relative size.
func pairsOf(r *rand.Rand, n int, ratio, noise float64) []Matched {
	out := make([]Matched, n)
	for i := range out {
		size := math.Pow(10, 1+2*r.Float64())
		out[i] = Matched{
			Reference: []float64{size * math.Exp(noise*r.NormFloat64())},
			Candidate: []float64{size * ratio * math.Exp(noise*r.NormFloat64())},
		}
	}
	return out
}

func TestCompareFindsAKnownRatio(t *testing.T) {
	c := Compare(pairsOf(rand.New(rand.NewPCG(1, 1)), 20, 0.8, 0.03))
	if !c.Tellable || math.Abs(c.Ratio-0.8) > 0.03 || c.P > 0.01 || c.Interval.Hi >= 1 || c.Interval.Lo > c.Ratio || c.Interval.Hi < c.Ratio {
		t.Errorf("20 pairs at 0.8: %+v", c)
	}
}

func TestCompareIsNotFooledByOneStalledTake(t *testing.T) {
	things := pairsOf(rand.New(rand.NewPCG(2, 1)), 20, 0.8, 0.02)
	things[3].Candidate[0] *= 1000
	if c := Compare(things); c.P > 0.05 || math.Abs(c.Ratio-0.8) > 0.03 || c.Interval.Hi >= 1 {
		t.Errorf("a stall hid the difference: %+v", c)
	}
	same := pairsOf(rand.New(rand.NewPCG(3, 1)), 20, 1, 0.02)
	same[3].Candidate[0] *= 1000
	if c := Compare(same); c.P < 0.05 || math.Abs(c.Ratio-1) > 0.03 {
		t.Errorf("a stall made a difference: %+v", c)
	}
}

// Of same sides about 5 % of the comparisons may have P <= 0.05, and about 95 % of the intervals must hold the ratio.
func TestCompareKeepsItsErrorRates(t *testing.T) {
	const trials = 150
	alarms, held := 0, 0
	for seed := range uint64(trials) {
		c := Compare(pairsOf(rand.New(rand.NewPCG(seed, 2)), 15, 1, 0.1))
		if c.P <= 0.05 {
			alarms++
		}
		if c.Interval.Lo <= 1 && 1 <= c.Interval.Hi {
			held++
		}
	}
	// Three standard deviations of the binomial are 5.3 points.
	if share := float64(alarms) / trials; share > 0.103 {
		t.Errorf("%.3f of the comparisons of same sides raised an alarm", share)
	}
	if share := float64(held) / trials; share < 0.90 {
		t.Errorf("%.3f of the intervals held the ratio", share)
	}
}

func TestCompareTellsWhenThereAreTooFewTakes(t *testing.T) {
	pair := Matched{Reference: []float64{100}, Candidate: []float64{50}}
	for n := range 8 {
		c := Compare(slices.Repeat([]Matched{pair}, n))
		if want := n >= 6; c.Tellable != want || c.N != n { // 2^6 relabelings, of which 2 are as extreme: 0.031
			t.Errorf("%d pairs: tellable %v", n, c.Tellable)
		}
		if n > 0 && math.Abs(c.Ratio-0.5) > 1e-12 {
			t.Errorf("%d pairs: ratio %v", n, c.Ratio)
		}
	}
	one := Compare([]Matched{{Reference: []float64{100, 101, 99, 100}, Candidate: []float64{80, 81, 79, 80}}})
	if !one.Tellable || one.N != 1 || one.Takes != [2]int{4, 4} || one.P > 0.05 || math.Abs(one.Ratio-0.8) > 0.01 {
		t.Errorf("one request, four takes a side: %+v", one)
	}
}

func TestCompareLeavesOutWhatHasNoRatio(t *testing.T) {
	c := Compare([]Matched{
		{Reference: []float64{1}}, {Candidate: []float64{1}}, {Reference: []float64{0}, Candidate: []float64{1}},
		{Reference: []float64{math.NaN(), 2}, Candidate: []float64{math.Inf(1), 4}},
	})
	if c.N != 1 || math.Abs(c.Ratio-2) > 1e-12 || math.Abs(c.Reference-2) > 1e-12 || math.Abs(c.Candidate-4) > 1e-12 {
		t.Errorf("got %+v", c)
	}
}

func TestCompareProperties(t *testing.T) {
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 3))
		things := pairsOf(r, 6+r.IntN(20), math.Exp(r.NormFloat64()/10), 0.1)
		things[0].Reference = append(things[0].Reference, things[0].Reference[0]*1.1)
		c := Compare(things)
		shuffled := slices.Clone(things)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if diff := cmp.Diff(c, Compare(shuffled)); diff != "" {
			t.Fatalf("seed %d: the order matters:\n%s", seed, diff)
		}
		swapped := make([]Matched, len(things))
		for i, m := range things {
			swapped[i] = Matched{Reference: m.Candidate, Candidate: m.Reference}
		}
		if s := Compare(swapped); math.Abs(s.Ratio*c.Ratio-1) > 1e-9 {
			t.Fatalf("seed %d: swapped sides give %v, not the inverse of %v", seed, s.Ratio, c.Ratio)
		}
		if c.Interval.Lo > c.Ratio || c.Interval.Hi < c.Ratio || c.P <= 0 || c.P > 1 {
			t.Fatalf("seed %d: %+v", seed, c)
		}
	}
}

func TestCompareOfManyTakesIsBounded(t *testing.T) {
	m := newMatching(slices.Repeat([]Matched{{Reference: []float64{1}, Candidate: []float64{2}}}, 100_000))
	if m.rounds != leastRounds {
		t.Errorf("%d rounds of 200,000 takes", m.rounds)
	}
}

// The interval of few requests with several takes is made of the takes, and must hold the ratio as often.
func TestCompareOfFewThingsHoldsTheRatio(t *testing.T) {
	const trials = 20
	for _, n := range []int{1, 3} {
		held := 0
		for seed := range uint64(trials) {
			r := rand.New(rand.NewPCG(seed, 4))
			things := make([]Matched, n)
			for i := range things {
				for range 5 {
					things[i].Reference = append(things[i].Reference, 50*math.Exp(0.1*r.NormFloat64()))
					things[i].Candidate = append(things[i].Candidate, 40*math.Exp(0.1*r.NormFloat64()))
				}
			}
			c := Compare(things)
			if !c.Tellable || c.Interval.Lo > c.Ratio || c.Interval.Hi < c.Ratio {
				t.Fatalf("%d things, seed %d: %+v", n, seed, c)
			}
			if c.Interval.Lo <= 0.8 && 0.8 <= c.Interval.Hi {
				held++
			}
		}
		if share := float64(held) / trials; share < 0.75 { // 95 % less four standard deviations
			t.Errorf("%d things: %.3f of the intervals held the ratio", n, share)
		}
	}
}

func TestBootstrapMeanCovers(t *testing.T) {
	if iv, ok := BootstrapMean(make([]float64, 10)); ok {
		t.Errorf("10 values gave %+v", iv)
	}
	const trials = 60
	held := 0
	for seed := range uint64(trials) {
		r := rand.New(rand.NewPCG(seed, 5))
		sample := make([]float64, 40)
		for i := range sample {
			sample[i] = r.Float64()
		}
		iv, ok := BootstrapMean(sample)
		if again, _ := BootstrapMean(sample); !ok || again != iv {
			t.Fatalf("seed %d: %+v, then %+v", seed, iv, again)
		}
		if iv.Lo <= 0.5 && 0.5 <= iv.Hi {
			held++
		}
	}
	if share := float64(held) / trials; share < 0.83 { // 95 % less four standard deviations
		t.Errorf("%.3f of the intervals held the mean", share)
	}
}
