package gates

import (
	"slices"
	"strings"
)

// All lists the gates by family and id.
func All() []Gate {
	all := slices.Concat(answerGates(), toolGates(), goldenGates())
	slices.SortStableFunc(all, func(a, b Gate) int {
		if c := strings.Compare(a.Family, b.Family); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// Lookup finds a gate by its id.
func Lookup(id string) (*Gate, bool) {
	for _, g := range All() {
		if g.ID == id {
			return &g, true
		}
	}
	return nil, false
}
