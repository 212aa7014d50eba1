package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// How exchanges were found to belong together.
const (
	ByOrigin = "origin" // they carry out the same item of a plan, or repeat the same recorded exchange
	ByKey    = "key"    // neither side has a plan: the same request, the n-th time
)

// pair is one thing that both sides did: a request of the workload, each side once or several times.
type pair struct {
	reference, candidate []*Entry // takes; at least one each
}

// both are the first takes that ended complete, or the first ones.
func (p *pair) both() (reference, candidate *Entry) {
	return firstComplete(p.reference), firstComplete(p.candidate)
}

func firstComplete(takes []*Entry) *Entry {
	if i := slices.IndexFunc(takes, (*Entry).complete); i >= 0 {
		return takes[i]
	}
	return takes[0]
}

// newlyFailed reports whether the reference was answered in full every time and the candidate was not.
func (p *pair) newlyFailed() bool {
	failed := func(e *Entry) bool { return !e.complete() }
	return !slices.ContainsFunc(p.reference, failed) && slices.ContainsFunc(p.candidate, failed)
}

// pairing is what belongs together in two runs.
type pairing struct {
	by       string
	pairs    []pair
	unpaired [2][]*Entry // measured exchanges of the reference and of the candidate that the other side lacks
	retries  [2]int      // exchanges that a later attempt replaced
	stopped  [2][]Partial
	// failedWaves are the waves of each side with a member that did not end complete, or that was never sent.
	failedWaves [2]map[string]bool
}

// newlyFailed counts the pairs that only the candidate failed.
func (p *pairing) newlyFailed() (n int) {
	for i := range p.pairs {
		if p.pairs[i].newlyFailed() {
			n++
		}
	}
	return n
}

// Partial is a conversation that stopped before its last turn.
type Partial struct {
	Side         string `json:"side"`
	Conversation string `json:"conversation"`
	Repeat       int    `json:"repeat"`
	Turns        int    `json:"turns"`   // complete ones
	Planned      int    `json:"planned"` // of the plan, or what the other side had
}

// sides are the names of the two runs in reports.
var sides = [2]string{"reference", "candidate"}

func match(reference, candidate *Side) *pairing {
	p := &pairing{by: ByKey}
	runs := [2]*Side{reference, candidate}
	var takes [2][]*Entry
	for i, s := range runs {
		takes[i], p.retries[i] = lastAttempts(s.Entries)
		p.stopped[i] = partials(sides[i], takes[i])
		p.failedWaves[i] = failedWaves(s, takes[i])
		for _, e := range takes[i] {
			if e.Row.Origin != nil || e.Row.Item != nil {
				p.by = ByOrigin
			}
		}
	}
	names := func(side int, e *Entry) []string { return originNames(runs[side], e, sharedWorkload(runs)) }
	if p.by == ByKey {
		seen := [2]map[string]int{{}, {}}
		names = func(side int, e *Entry) []string {
			n := seen[side][e.Row.Key]
			seen[side][e.Row.Key]++
			return []string{e.Row.Key + "#" + strconv.Itoa(n)}
		}
	}
	p.join(takes, names)
	return p
}

// sharedWorkload is the hash of the workload that both runs sent, "" when they sent different ones or none.
func sharedWorkload(runs [2]*Side) string {
	a, b := runs[0].Run.Replay, runs[1].Run.Replay
	if a == nil || b == nil || a.Workload != b.Workload {
		return ""
	}
	return a.Workload
}

// originNames are the names under which an exchange is known in a plan: its own id and the one it repeats, so that a run
// meets its recording, and two replays of one recording meet each other; and its place in a workload that both sent.
func originNames(s *Side, e *Entry, workload string) []string {
	names := []string{"id " + string(e.Row.ID)}
	if o := e.Row.Origin; o != nil && o.Exchange != "" {
		names = append(names, "id "+string(o.Exchange))
	}
	if it := e.Row.Item; it != nil && workload != "" && s.Run.Replay != nil {
		names = append(names, fmt.Sprintf("item %s turn %d", it.Item, it.Turn))
	}
	return names
}

// lastAttempts are the measured exchanges, of several attempts at one item the last; retries is how many were left out.
func lastAttempts(entries []Entry) (takes []*Entry, retries int) {
	type place struct {
		item         string
		turn, repeat int
	}
	last := map[place]int{}
	for i := range entries {
		e := &entries[i]
		if !e.measured() {
			continue
		}
		if it := e.Row.Item; it != nil {
			at, seen := last[place{it.Item, it.Turn, it.Repeat}]
			if seen {
				retries++
				if it.Attempt >= takes[at].Row.Item.Attempt {
					takes[at] = e
				}
				continue
			}
			last[place{it.Item, it.Turn, it.Repeat}] = len(takes)
		}
		takes = append(takes, e)
	}
	return takes, retries
}

// join groups takes that share a name, directly or over another take.
func (p *pairing) join(takes [2][]*Entry, names func(side int, e *Entry) []string) {
	g := grouping{parent: map[string]string{}}
	var first [2][]string // first name of each take
	for side, es := range takes {
		for _, e := range es {
			ns := names(side, e)
			for _, n := range ns[1:] {
				g.union(ns[0], n)
			}
			first[side] = append(first[side], ns[0])
		}
	}
	at := map[string]int{}
	var all []pair
	for side, es := range takes {
		for i, e := range es {
			root := g.find(first[side][i])
			n, ok := at[root]
			if !ok {
				n = len(all)
				at[root] = n
				all = append(all, pair{})
			}
			if side == 0 {
				all[n].reference = append(all[n].reference, e)
			} else {
				all[n].candidate = append(all[n].candidate, e)
			}
		}
	}
	for _, one := range all {
		switch {
		case len(one.candidate) == 0:
			p.unpaired[0] = append(p.unpaired[0], one.reference...)
		case len(one.reference) == 0:
			p.unpaired[1] = append(p.unpaired[1], one.candidate...)
		default:
			p.pairs = append(p.pairs, one)
		}
	}
}

// grouping joins names that mean the same thing.
type grouping struct{ parent map[string]string }

func (g *grouping) find(n string) string {
	for {
		up, ok := g.parent[n]
		if !ok {
			return n
		}
		if over, ok := g.parent[up]; ok {
			g.parent[n] = over
		}
		n = up
	}
}

func (g *grouping) union(a, b string) {
	if a, b = g.find(a), g.find(b); a != b {
		g.parent[b] = a
	}
}

// talk is one conversation of one repeat.
type talk struct {
	conversation string
	repeat       int
}

func talkOf(e *Entry) (talk, bool) {
	if e.Row.Item == nil || e.Row.Item.Conversation == "" {
		return talk{}, false
	}
	return talk{e.Row.Item.Conversation, e.Row.Item.Repeat}, true
}

// partials are the conversations of a side with fewer complete turns than planned, in order.
func partials(side string, takes []*Entry) []Partial {
	done, planned := map[talk]int{}, map[talk]int{}
	for _, e := range takes {
		if k, ok := talkOf(e); ok {
			planned[k] = max(planned[k], e.Row.Item.Turns)
			if e.complete() {
				done[k]++
			}
		}
	}
	var out []Partial
	for k, n := range planned {
		if done[k] < n {
			out = append(out, Partial{Side: side, Conversation: k.conversation, Repeat: k.repeat, Turns: done[k], Planned: n})
		}
	}
	slices.SortFunc(out, func(a, b Partial) int { return cmp.Or(cmp.Compare(a.Conversation, b.Conversation), a.Repeat-b.Repeat) })
	return out
}

// broken reports whether a take is a turn of a conversation that stopped early: also the turns that did end are no sample.
func (p *pairing) broken(side int, e *Entry) bool {
	k, ok := talkOf(e)
	return ok && slices.ContainsFunc(p.stopped[side], func(s Partial) bool { return s.Conversation == k.conversation && s.Repeat == k.repeat })
}

// failedWaves are the waves of a side that lost a member.
func failedWaves(s *Side, takes []*Entry) map[string]bool {
	out := map[string]bool{}
	if s.Run.Replay != nil {
		for _, w := range s.Run.Replay.Waves {
			out[w.Wave] = out[w.Wave] || w.Failed > 0
		}
	}
	for _, e := range takes {
		if e.Row.Wave != "" && !e.complete() {
			out[e.Row.Wave] = true
		}
	}
	return out
}

// ids are the exchanges of a list, the first of them.
func ids(es []*Entry) []exchange.ID {
	out := make([]exchange.ID, 0, min(len(es), listed))
	for _, e := range es[:min(len(es), listed)] {
		out = append(out, e.Row.ID)
	}
	return out
}

// listed bounds every list of single exchanges in a report; counts are always whole.
const listed = 200
