package stat

import (
	"math"
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
