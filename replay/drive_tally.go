package replay

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Tally counts what becomes of the plan at one target. Add is given every exchange of the target's run with its analysis,
// in any order and from any goroutine: whoever derives the rows has the analysis anyway.
type Tally struct {
	mu       sync.Mutex
	planned  int
	items    map[itemName]*itemState
	whole    map[itemName]int // turns of conversations that are whole with fewer than planned
	sizes    map[string]int   // requests of each wave as planned
	waves    map[string]*waveState
	rates    []exchange.WaveRate
	schedule measure.Schedule
	gaps     measure.GapTail
	counts   exchange.ItemCounts
	tokens   float64
	ended    int // requests that are not warm-ups nor answered by a later attempt
	failed   int // of them not complete
}

type itemName struct {
	item   string // of the first turn, or the conversation
	repeat int
}

// itemState is what became of a conversation so far.
type itemState struct {
	turns    int
	complete map[int]bool // turns
	broken   bool         // a turn was cut by us
}

// waveState is a wave whose members are coming in.
type waveState struct {
	members []measure.WaveMember
	known   map[itemName]bool
}

func newTally(p *Plan, target int) *Tally {
	t := &Tally{planned: p.Items, items: map[itemName]*itemState{}, sizes: map[string]int{}, waves: map[string]*waveState{}}
	for i := range p.jobs {
		if j := &p.jobs[i]; j.target == target && j.wave > 0 {
			for turn := range j.turns {
				t.sizes[j.waveName(turn)]++
			}
		}
	}
	return t
}

// Add takes one exchange.
func (t *Tally) Add(x *exchange.Exchange, a *measure.Analysis) {
	if x.Item == nil {
		return
	}
	var member measure.WaveMember
	switch {
	case x.Wave == "":
	case x.Item.Attempt > 0:
		member = measure.FailedMember() // an earlier attempt failed, and this one did not run with the others
	default:
		member = measure.WaveMemberOf(x, a)
	}
	gaps := measure.EventGaps(x, a)
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.Item.Warmup {
		t.counts.Warmups++
		return
	}
	t.counts.Requests++
	if x.Item.Attempt > 0 {
		t.counts.Retries++
	}
	if f := a.Figures[measure.CompletionTokens]; f.Present() {
		t.tokens += f.Value
	}
	t.turn(x, a.Outcome)
	t.schedule.Add(x, a)
	t.gaps.Add(gaps)
	if x.Wave != "" {
		t.member(x, member)
	}
}

// over takes it that a conversation is whole with so many turns, none for one that is withheld: it has none in these waves,
// in which it was planned.
func (t *Tally) over(name itemName, turns int, waves []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.whole == nil {
		t.whole = map[itemName]int{}
	}
	t.whole[name] = turns
	for _, w := range waves {
		t.sizes[w]--
	}
}

// turn notes what became of a turn. A later attempt stands for the earlier ones, whichever is told first.
func (t *Tally) turn(x *exchange.Exchange, outcome exchange.Outcome) {
	name := nameOf(x.Item)
	s := t.items[name]
	if s == nil {
		s = &itemState{turns: x.Item.Turns, complete: map[int]bool{}}
		t.items[name] = s
	}
	if x.Item.Attempt == 0 {
		t.ended++
		t.failed++
	}
	switch {
	case outcome == exchange.OutcomeComplete:
		s.complete[x.Item.Turn] = true
		t.failed--
	case outcome == exchange.OutcomeShutdown:
		s.broken = true
	}
}

// member puts an exchange into its wave, which is summed up with its last one. Of several attempts the first that is told
// counts: either is one that failed.
func (t *Tally) member(x *exchange.Exchange, m measure.WaveMember) {
	w := t.waves[x.Wave]
	if w == nil {
		w = &waveState{known: map[itemName]bool{}}
		t.waves[x.Wave] = w
	}
	name := nameOf(x.Item)
	if w.known[name] {
		return
	}
	w.known[name] = true
	w.members = append(w.members, m)
	if len(w.members) == t.sizes[x.Wave] {
		t.rates = append(t.rates, measure.Wave(x.Wave, w.members))
		w.members = nil
	}
}

// nameOf names the item that an exchange carries out, all its turns and attempts alike.
func nameOf(p *exchange.PlanItem) itemName {
	return itemName{item: cmp.Or(p.Conversation, p.Item), repeat: p.Repeat}
}

// itemCounts sorts the items by what became of them; mu is held.
func (t *Tally) itemCounts() exchange.ItemCounts {
	c := t.counts
	c.Planned = t.planned
	for name, s := range t.items {
		turns := s.turns
		if n, early := t.whole[name]; early {
			turns = n
		}
		switch n := len(s.complete); {
		case n >= turns:
			c.Complete++
		case s.broken:
			c.Broken++
		case n == 0:
			c.Failed++
		default:
			c.Partial++
		}
	}
	for _, turns := range t.whole {
		if turns == 0 {
			c.Withheld++
		}
	}
	c.Unsent = c.Planned - len(t.items) - c.Withheld
	return c
}

// waveRates are the waves in the order of their numbers; mu is held. One that did not get all its members had one that
// was never sent, and has no rates.
func (t *Tally) waveRates() []exchange.WaveRate {
	out := slices.Clone(t.rates)
	for _, name := range slices.Sorted(maps.Keys(t.waves)) {
		members := t.waves[name].members
		if members == nil {
			continue // summed up
		}
		for len(members) < t.sizes[name] {
			members = append(members, measure.FailedMember())
		}
		out = append(out, measure.Wave(name, members))
	}
	slices.SortFunc(out, func(a, b exchange.WaveRate) int { return slices.Compare(waveNumbers(a.Wave), waveNumbers(b.Wave)) })
	return out
}

// waveNumbers are the wave and the turn of a wave's name.
func waveNumbers(name string) []int {
	wave, turn, _ := strings.Cut(strings.TrimPrefix(name, "w"), "/")
	w, _ := strconv.Atoi(wave) // names are ours
	n, _ := strconv.Atoi(turn)
	return []int{w, n}
}
