package replay

import (
	"slices"
	"testing"
	"time"
)

// However slow a pace is, no request comes before the one that is planned ahead of it.
func TestInstantsNeverTurnBack(t *testing.T) {
	items := []Item{{At: 0}, {At: time.Millisecond}, {At: time.Hour}, {At: 100 * 24 * time.Hour}}
	for _, slow := range []float64{1e-300, 1e-12, 1e-6, 1, 1e12} {
		recorded, period := recordedInstants(items, slow, 0)
		for name, at := range map[string][]time.Duration{
			"constant": constantInstants(4, slow), "poisson": poissonInstants(4, slow, 1), "recorded": recorded,
		} {
			if !slices.IsSorted(at) || at[0] < 0 || at[3] > latest {
				t.Errorf("%s at %g: %v", name, slow, at)
			}
		}
		if period < recorded[3] {
			t.Errorf("a round of %v at %g takes %v", recorded, slow, period)
		}
	}
}
