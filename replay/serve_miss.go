package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// MissReason is why a request was not answered from the recording.
type MissReason string

const (
	MissNotRecorded MissReason = "not_recorded" // nobody asked this
	MissExhausted   MissReason = "exhausted"    // each recorded answer was given once, and no more is wanted
	MissNoAnswer    MissReason = "no_answer"    // it was asked, and the record has no answer that can be given
	MissCollision   MissReason = "collision"    // another request has the same key
	MissRemoved     MissReason = "removed"      // its record was removed from the store meanwhile
	MissBroken      MissReason = "broken"       // the record cannot be read
)

// text says it in words.
func (r MissReason) text() string {
	switch r {
	case MissExhausted:
		return "each recorded answer to this request was given once"
	case MissNoAnswer:
		return "this request was recorded without an answer that can be given"
	case MissRemoved:
		return "the record of this request was removed meanwhile"
	case MissCollision:
		return "another recorded request has the same key"
	}
	return "this request is not in the recording"
}

// Miss is a request that was not answered from the recording.
type Miss struct {
	Key      string     `json:"key"` // of the request
	Method   string     `json:"method"`
	Target   string     `json:"path"` // secrets masked
	Why      MissReason `json:"why"`
	Cause    string     `json:"cause,omitempty"`    // of MissBroken
	Nearest  *Nearest   `json:"nearest"`            // null when nothing is recorded for the method and path
	Recorded []string   `json:"recorded,omitempty"` // then the methods and paths that are, the first few

	Trace []exchange.Header `json:"-"` // headers of the request that name its place in a trace
}

// Nearest is the recorded request that is most like one that was missed.
type Nearest struct {
	Exchange exchange.ID  `json:"exchange"`
	Differs  []Difference `json:"differs"` // the first few, in the order of their paths
	More     int          `json:"more"`    // further ones
}

// Text is the miss in one line.
func (m *Miss) Text() string {
	text := fmt.Sprintf("%s %s %s: %s", m.Method, m.Target, m.Key, m.Why.text())
	switch n := m.Nearest; {
	case m.Cause != "":
		return fmt.Sprintf("%s %s %s: %s", m.Method, m.Target, m.Key, m.Cause)
	case n != nil && len(n.Differs) > 0:
		text += fmt.Sprintf("; nearest is %s, which differs at ", n.Exchange)
		for i, d := range n.Differs {
			if i == 3 {
				text += fmt.Sprintf(" and at %d more", len(n.Differs)-i+n.More)
				break
			}
			if i > 0 {
				text += ", "
			}
			text += d.String()
		}
	case n != nil:
		text += fmt.Sprintf("; nearest is %s, which does not differ", n.Exchange)
	case len(m.Recorded) > 0:
		text += "; recorded are " + strings.Join(m.Recorded, ", ")
	}
	return text
}

// miss explains and refuses a request: 404 and an error in the form of its dialect, which says what is nearest in words
// and, under replay_miss, as data.
func (s *StandIn) miss(req sim.Request, a *inquiry, why MissReason) *sim.Script {
	s.misses.Add(1)
	m := Miss{Key: a.key.Key, Method: a.request.Method, Target: a.request.Target, Why: why, Trace: traceOf(req.Headers)}
	s.explain.Lock()
	m.Nearest = s.index.nearest(a)
	s.explain.Unlock()
	if m.Nearest == nil {
		m.Recorded = s.index.recorded()
	}
	s.tell(m)
	script := sim.ErrorScript(req, 404, "replay_miss", m.Text())
	// Clients that retry on what they think is passing are told not to.
	script.Headers = append(script.Headers, exchange.Header{Name: "X-Should-Retry", Value: "false"})
	if data, err := json.Marshal(&m); err == nil {
		body := script.Steps[0].Data
		script.Steps[0].Data = slices.Concat(body[:len(body)-1], []byte(`,"replay_miss":`), data, []byte("}"))
	}
	return script
}

// The bounds of what is looked at and told of a miss.
const (
	nearbyNext = 32 // candidates behind the answer that was given last, in the order of the record
	nearbySize = 32 // and those whose request is nearest in size
	mostDiffs  = 12 // differences that are told
	mostWheres = 8  // methods and paths that are told
)

// nearest is the recorded request to the same method and path that differs from the asked one at the fewest places of
// its body; of several the one whose differing values are the shortest together, then the first. It is sought among 64: the
// 32 that follow the answer given last, and the 32 nearest in size. It is nil when nothing is recorded for the method and
// path.
func (ix *index) nearest(a *inquiry) *Nearest {
	var best *Nearest
	var bestRank [2]int
	for _, t := range ix.nearby(a) {
		x, _, err := t.src.Exchange(t.id)
		if err != nil {
			continue // it is told when it is asked for itself
		}
		d := differ{relax: ix.relax}
		d.requests(&x.Request, &a.request)
		rank := [2]int{d.n, d.weight}
		if best == nil || slices.Compare(rank[:], bestRank[:]) < 0 {
			best, bestRank = &Nearest{Exchange: t.id, Differs: d.told, More: d.n - len(d.told)}, rank
		}
	}
	return best
}

// nearby are the candidates for the nearest, in the order of the record.
func (ix *index) nearby(a *inquiry) []*take {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	all := ix.at[a.where]
	if len(all) <= nearbyNext+nearbySize {
		return slices.Clone(all)
	}
	picked := map[*take]bool{}
	next, _ := slices.BinarySearchFunc(all, ix.last, func(t *take, place int) int { return cmp.Compare(t.place, place) })
	for i := range nearbyNext {
		picked[all[(next+i)%len(all)]] = true
	}
	away := func(t *take) int64 { return max(t.size-a.request.Body.Size, a.request.Body.Size-t.size) }
	bySize := slices.Clone(all)
	slices.SortStableFunc(bySize, func(x, y *take) int { return cmp.Compare(away(x), away(y)) })
	for _, t := range bySize[:nearbySize] {
		picked[t] = true
	}
	var out []*take
	for t := range picked {
		out = append(out, t)
	}
	slices.SortFunc(out, func(x, y *take) int { return cmp.Compare(x.place, y.place) })
	return out
}

// recorded are the methods and paths that are recorded, the first few.
func (ix *index) recorded() []string {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	out := slices.Clone(ix.wheres[:min(len(ix.wheres), mostWheres)])
	for i := range out {
		out[i] = redact.Text(out[i])
	}
	return out
}
