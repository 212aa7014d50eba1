package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// rounds are n values around middle, which differ by up to share of it.
func rounds(n int, middle, share float64) series {
	random := rand.New(rand.NewPCG(uint64(n), math.Float64bits(middle)))
	s := make(series, n)
	for i := range s {
		s[i] = middle * (1 + share*(2*random.Float64()-1))
	}
	return s
}

func times(s series, k float64) series {
	out := make(series, len(s))
	for i := range s {
		out[i] = k * s[i]
	}
	return out
}

// TestRatioOfItsOwnMultiple holds that what moves both in a round moves no ratio: pairs stay pairs.
func TestRatioOfItsOwnMultiple(t *testing.T) {
	other := rounds(12, 100, 0.9)
	r := ratioOf(times(other, 0.5), other)
	if *r.Value != 0.5 || r.Range == nil || r.Range.Lo != 0.5 || r.Range.Hi != 0.5 || r.Range.Confidence != 0.95 {
		t.Errorf("%g, %+v", *r.Value, r.Range)
	}
}

func TestRatioDoesNotDependOnTheOrderOfRounds(t *testing.T) {
	own, other := rounds(9, 150, 0.3), rounds(9, 100, 0.3)
	want := ratioOf(own, other)
	for _, to := range [][2]int{{0, 8}, {1, 3}, {2, 7}} {
		own[to[0]], own[to[1]] = own[to[1]], own[to[0]]
		other[to[0]], other[to[1]] = other[to[1]], other[to[0]]
	}
	got := ratioOf(own, other)
	if *got.Value != *want.Value || *got.Range != *want.Range {
		t.Errorf("%g %+v, in another order %g %+v", *want.Value, *want.Range, *got.Value, *got.Range)
	}
}

// TestRatioRangeCovers holds that the interval holds the true ratio about as often as it says.
func TestRatioRangeCovers(t *testing.T) {
	const trials, truth = 50, 1.5
	random := rand.New(rand.NewPCG(3, 4))
	held := 0
	for range trials {
		own, other := make(series, 12), make(series, 12)
		for i := range own {
			own[i], other[i] = 150+20*random.NormFloat64(), 100+20*random.NormFloat64()
		}
		if r := ratioOf(own, other).Range; r != nil && r.Lo <= truth && truth <= r.Hi {
			held++
		}
	}
	if held < trials*9/10 {
		t.Errorf("the interval holds the true ratio in %d of %d", held, trials)
	}
}

func TestRatioWithoutFigure(t *testing.T) {
	some := rounds(12, 100, 0.1)
	for name, r := range map[string]ratio{
		"nothing of ours":      ratioOf(nil, some),
		"nothing of the other": ratioOf(some, nil),
		"the other adds 0":     ratioOf(some, times(some, 0)),
		"the other adds less":  ratioOf(some, times(some, -1)),
	} {
		if r.Value != nil || r.Range != nil {
			t.Errorf("%s: %s", name, ratioCell(r.Value, r.Range))
		}
	}
}

func TestRatioWithoutRange(t *testing.T) {
	half := append(rounds(6, 100, 0.1), rounds(5, -100, 0.1)...) // its median is above 0 by one round
	for name, r := range map[string]ratio{
		"few rounds":         ratioOf(rounds(5, 100, 0.1), rounds(5, 100, 0.1)),
		"a round is missing": ratioOf(rounds(11, 100, 0.1), rounds(12, 100, 0.1)),
		"it has no end":      ratioOf(rounds(11, 100, 0.1), half),
	} {
		if r.Value == nil || r.Range != nil {
			t.Errorf("%s: %s", name, ratioCell(r.Value, r.Range))
		}
	}
}

func TestSpread(t *testing.T) {
	for _, x := range []struct {
		s    series
		want float64
		ok   bool
	}{
		{series{100, 80, 120, 90, 110}, 0.2, true},
		{series{100, 100, 100, 100, 1e6}, 0, true}, // one bad round moves no median and makes no noise
		{series{7}, 0, true},
		{nil, 0, false},
		{series{0, 0}, 0, false},
	} {
		if got, ok := x.s.spread(); math.Abs(got-x.want) > 1e-12 || ok != x.ok {
			t.Errorf("%v: %g %v, want %g %v", x.s, got, ok, x.want, x.ok)
		}
	}
}
