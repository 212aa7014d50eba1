package stat

import (
	"math"
	"slices"
	"testing"
)

func TestGeoMean(t *testing.T) {
	if m, n, iv := GeoMean([]float64{1.2, 0.9, 0, -1, math.NaN(), math.Inf(1)}); n != 2 || math.Abs(m-1.03923) > 1e-5 || iv != nil {
		t.Errorf("%v of %d, %v", m, n, iv)
	}
	if m, n, _ := GeoMean(nil); m != 0 || n != 0 {
		t.Errorf("%v of %d", m, n)
	}
	many := make([]float64, 40)
	for i := range many {
		many[i] = 1.1 + float64(i%5)/100
	}
	if m, n, iv := GeoMean(many); n != 40 || iv == nil || iv.Lo > m || iv.Hi < m || iv.Lo < 1.1 || iv.Hi > 1.14 {
		t.Errorf("%v of %d, %v", m, n, iv)
	}
}

// TestGeoMeanInterval holds which takes have an interval, that it holds the mean, that it does not depend on the order, and
// that swapping the sides turns it over.
func TestGeoMeanInterval(t *testing.T) {
	noisy := func(center float64) []float64 {
		return []float64{center * 0.98, center * 1.01, center, center * 1.03, center * 0.99}
	}
	things := []Matched{{noisy(100), noisy(110)}, {noisy(50), noisy(60)}, {noisy(10), noisy(11)}}
	iv, ok := GeoMeanInterval(things)
	want := math.Cbrt(1.1 * 1.2 * 1.1)
	if !ok || iv.Lo >= want || iv.Hi <= want || iv.Lo < want/1.04 || iv.Hi > want*1.04 {
		t.Errorf("%v of %v", iv, want)
	}
	back := slices.Clone(things)
	slices.Reverse(back)
	if again, _ := GeoMeanInterval(back); again != iv {
		t.Errorf("in another order %v", again)
	}
	for i := range back {
		back[i].Reference, back[i].Candidate = back[i].Candidate, back[i].Reference
	}
	if turned, _ := GeoMeanInterval(back); math.Abs(turned.Lo*iv.Hi-1) > 0.01 || math.Abs(turned.Hi*iv.Lo-1) > 0.01 {
		t.Errorf("turned over %v", turned)
	}
	for name, few := range map[string][]Matched{
		"none": nil, "one take each": {{[]float64{1}, []float64{2}}}, "three each": {{[]float64{1, 2, 3}, []float64{2, 3, 4}}},
		"a thing without takes": append(slices.Clone(things), Matched{Reference: noisy(1)}),
	} {
		if iv, ok := GeoMeanInterval(few); ok {
			t.Errorf("%s: %v", name, iv)
		}
	}
}

// TestGeoMeanIntervalHolds holds that intervals of noise alone hold 1 about as often as they state.
func TestGeoMeanIntervalHolds(t *testing.T) {
	r := random(9)
	const tries = 120
	missed := 0
	for range tries {
		var things []Matched
		for range 3 {
			var m Matched
			for range 4 {
				m.Reference = append(m.Reference, math.Exp(r.NormFloat64()/10))
				m.Candidate = append(m.Candidate, math.Exp(r.NormFloat64()/10))
			}
			things = append(things, m)
		}
		if iv, ok := GeoMeanInterval(things); !ok || iv.Lo > 1 || iv.Hi < 1 {
			missed++
		}
	}
	if missed > tries/8 {
		t.Errorf("%d of %d intervals leave out the truth", missed, tries)
	}
}
