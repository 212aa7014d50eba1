package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// goldensUsed are the recordings that the cases of this suite were held against, by what made them.
func (r *gateRun) goldensUsed() []GateGoldens {
	out := []GateGoldens{}
	seen := map[*exchange.Golden]bool{}
	for _, c := range r.cases {
		for _, g := range c.Case.Goldens {
			if seen[g] {
				continue
			}
			seen[g] = true
			i := slices.IndexFunc(out, func(u GateGoldens) bool {
				return u.Engine == g.Engine.Engine && u.Version == g.Engine.Version && u.Weights == g.Weights && u.Launch == g.Launch
			})
			if i < 0 {
				own := GateSubject{Identity: g.Engine, Weights: g.Weights}.same(subjectOf(&r.o.Candidate))
				out = append(out, GateGoldens{Identity: g.Engine, Weights: g.Weights, Launch: g.Launch, Oldest: g.Made, Newest: g.Made, Own: own})
				i = len(out) - 1
			}
			u := &out[i]
			u.Recordings++
			if g.Made.Before(u.Oldest) {
				u.Oldest = g.Made
			}
			if g.Made.After(u.Newest) {
				u.Newest = g.Made
			}
		}
	}
	slices.SortFunc(out, func(a, b GateGoldens) int {
		return cmp.Or(cmp.Compare(a.Engine, b.Engine), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Weights, b.Weights), cmp.Compare(a.Launch, b.Launch))
	})
	return out
}

// notes are what is to be told of who was held against whom: an engine that is held against itself proves little.
func (r *gateRun) notes() []string {
	out := []string{}
	if r.o.Reference != nil {
		is, of := subjectOf(&r.o.Candidate), subjectOf(r.o.Reference)
		switch {
		case is.URL != "" && is.URL == of.URL && is.Model == of.Model:
			out = append(out, "target and reference are one server, "+is.URL+": what it is held against is its own")
		case is.Launch != "" && is.Launch == of.Launch && is.Build != "" && is.Build == of.Build:
			out = append(out, "target and reference are one build under the same flags: what it is held against is its own")
		}
	}
	for _, u := range r.report.Goldens {
		if u.Own && r.o.Reference == nil {
			out = append(out, fmt.Sprintf("%d of the recordings are of the very build that is judged", u.Recordings))
		}
	}
	return out
}
