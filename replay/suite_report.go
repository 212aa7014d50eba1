package replay

import (
	"fmt"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Report is what became of the suite, which alone counts with its tally. It is whole when Run has returned and the tally
// has been given every exchange. ran is why the suite did not come to its end, nil when it did.
func (s *Suite) Report(ran error) exchange.Replay {
	r := s.Planned()
	s.tally.report(&r, []*Suite{s}, ran)
	return r
}

// Report is what became of the suites that counted with the tally, in the order in which they were sent. What else the
// run says of its plan is left open.
func (t *Tally) Report(suites []*Suite, ran error) exchange.Replay {
	r := exchange.Replay{Driver: string(LoopWaves)}
	for _, s := range suites {
		r.Cases = append(r.Cases, s.Planned().Cases...)
	}
	t.report(&r, suites, ran)
	return r
}

// report fills in what was counted.
func (t *Tally) report(r *exchange.Replay, suites []*Suite, ran error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Items, r.Waves = t.itemCounts(), t.waveRates()
	order := map[string]int{}
	for _, s := range suites {
		for _, w := range s.waves {
			for turn := range w[0].Member.Turns {
				order[s.waveOf(w[0].Member, turn)] = len(order)
			}
		}
	}
	slices.SortFunc(r.Waves, func(a, b exchange.WaveRate) int { return order[a.Wave] - order[b.Wave] })
	if left := r.Items.Unsent + r.Items.Broken; ran != nil || left > 0 {
		r.Incomplete = fmt.Sprintf("%d of %d cases did not end", left, r.Items.Planned)
		if ran != nil {
			r.Incomplete += ": " + ran.Error()
		}
	}
}
