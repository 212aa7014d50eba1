package gates

import (
	"slices"
	"strings"
	"sync"
)

// registry are the gates by family and id, put together once: judging asks for them again and again.
var registry = sync.OnceValue(func() []Gate {
	all := ruled(slices.Concat(answerGates(), toolGates(), goldenGates()))
	slices.SortStableFunc(all, func(a, b Gate) int {
		if c := strings.Compare(a.Family, b.Family); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
})

// All lists the gates by family and id.
func All() []Gate { return slices.Clone(registry()) }

// Lookup finds a gate by its id.
func Lookup(id string) (*Gate, bool) {
	all := registry()
	i := slices.IndexFunc(all, func(g Gate) bool { return g.ID == id })
	if i < 0 {
		return nil, false
	}
	g := all[i]
	return &g, true
}
