package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ToyOptions make a toy model.
type ToyOptions struct {
	Seed   uint64  // of the model: toys of one seed are the same model, whatever their nudges
	Nudges []Nudge // where the numerics of this engine show
	Drafts bool    // it drafts, unless a request says draft:false
	Limit  int     // tokens that a prompt may have; 0 = any number
}

// MeetHeader makes a request wait for others: it is answered when so many that carry it have come, or after meetTime.
const MeetHeader = "X-Toy-Meet"

const meetTime = 30 * time.Second

// Nudge sets by how much the model prefers its first choice at one place to its second: in nats, the second where it is
// negative. The place is counted in tokens of prompt and answer together, from 0.
type Nudge struct {
	At   int
	Gaps map[Numerics]float64
}

// Numerics are the ways in which a place is computed. A nudge's gap is that of the first of them that holds and that it
// names, in the order below.
type Numerics string

// The numerics of a toy.
const (
	NumericsDrafted  Numerics = "drafted"  // by the draft path
	NumericsRace     Numerics = "race"     // in every second answer of the engine
	NumericsTogether Numerics = "together" // while other requests are under way
	NumericsWarm     Numerics = "warm"     // in an answer whose prompt came in part from the cache
	NumericsMicro    Numerics = "micro"    // at the end of at most 8 uncached prompt tokens
	NumericsBatch    Numerics = "batch"    // at the end of more of them
	NumericsDecode   Numerics = "decode"   // behind a generated token
	NumericsAny      Numerics = "any"
)

// toyBatch is the number of prompt tokens up to which a batch is a small one.
const toyBatch = 8

// Toy is an engine with a language model of a few words whose every log-probability follows from its seed: the same
// context always gives the same list. It speaks the parts of llama.cpp that comparisons need (/completion with ids and
// lists, /tokenize, /apply-template, /v1/chat/completions), and has one slot with a prompt cache. Its Handler makes a
// server of it; a Bare one, since the toy answers everything itself.
type Toy struct {
	o ToyOptions

	mu      sync.Mutex
	cache   []int
	running int
	answers int
	waiting int           // requests that wait for others
	met     chan struct{} // closed when they have come; nil while none waits
}

// NewToy is a toy with an empty cache.
func NewToy(o ToyOptions) *Toy { return &Toy{o: o} }

// toyProb is a token with its log-probability.
type toyProb struct {
	id      int
	logprob float64
}

// The lists of a toy: five of its words and their log-probabilities; what is left over goes to the other words.
var toyLogprobs = [...]float64{-0.3, -2.2, -3, -4, -5}

// toyNudged is the log-probability of the first choice at a nudged place.
const toyNudged = -0.6

// text is a token as the toy spells it: a blank and a word. Prompt words that it does not have are all one token.
func (t *Toy) text(id int) string {
	if id < 0 || id >= len(vocabulary) {
		return " ?"
	}
	return " " + vocabulary[id]
}

// tokens splits a text at its blanks.
func (t *Toy) tokens(text string) []int {
	ids := []int{}
	for _, w := range strings.Fields(text) {
		if i, found := slices.BinarySearch(vocabulary, w); found {
			ids = append(ids, i)
		} else {
			ids = append(ids, len(vocabulary))
		}
	}
	return ids
}

// list are the most likely tokens behind a context, best first, under some numerics.
func (t *Toy) list(context []int, in map[Numerics]bool) []toyProb {
	h := t.o.Seed
	for _, id := range context[max(0, len(context)-4):] {
		h = h*1099511628211 ^ uint64(id+1)
	}
	rng := rand.New(rand.NewPCG(h, uint64(len(context))))
	list := make([]toyProb, 0, len(toyLogprobs))
	for len(list) < len(toyLogprobs) {
		id := rng.IntN(len(vocabulary))
		if !slices.ContainsFunc(list, func(p toyProb) bool { return p.id == id }) {
			list = append(list, toyProb{id, toyLogprobs[len(list)]})
		}
	}
	for _, n := range t.o.Nudges {
		if n.At != len(context) {
			continue
		}
		if gap, ok := n.gap(in); ok {
			list[0].logprob, list[1].logprob = toyNudged, toyNudged-gap
			if gap < 0 {
				list[0].logprob, list[1].logprob = toyNudged+gap, toyNudged
			}
		}
	}
	sort.SliceStable(list, func(i, k int) bool { return list[i].logprob > list[k].logprob })
	return list
}

func (n *Nudge) gap(in map[Numerics]bool) (float64, bool) {
	for _, name := range []Numerics{NumericsDrafted, NumericsRace, NumericsTogether, NumericsWarm, NumericsMicro, NumericsBatch, NumericsDecode, NumericsAny} {
		if gap, ok := n.Gaps[name]; ok && in[name] {
			return gap, true
		}
	}
	return 0, false
}

// toyAsk is a request for tokens.
type toyAsk struct {
	prompt  []int
	predict int
	cache   bool
	greedy  bool
	seed    int64
	drafts  bool
}

// toyAnswer is what was generated.
type toyAnswer struct {
	ask    toyAsk
	ids    []int
	lists  [][]toyProb
	cached int
}

// generate answers, as the next request on the one slot.
func (t *Toy) generate(q toyAsk) toyAnswer {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers++
	a := toyAnswer{ask: q}
	if q.cache {
		for a.cached < min(len(q.prompt)-1, len(t.cache)) && q.prompt[a.cached] == t.cache[a.cached] {
			a.cached++
		}
	}
	in := map[Numerics]bool{NumericsAny: true, NumericsDrafted: q.drafts, NumericsRace: t.answers%2 == 0, NumericsTogether: t.running > 1, NumericsWarm: a.cached > 0}
	small := len(q.prompt)-a.cached <= toyBatch
	in[NumericsMicro], in[NumericsBatch] = small, !small
	context := slices.Clone(q.prompt)
	for i := range q.predict {
		list := t.list(context, in)
		a.lists = append(a.lists, list)
		next := list[0].id
		if !q.greedy {
			next = draw(list, q.seed, len(context))
		}
		a.ids, context = append(a.ids, next), append(context, next)
		if i == 0 {
			in[NumericsMicro], in[NumericsBatch], in[NumericsDecode] = false, false, true
		}
	}
	t.cache = context[:max(len(q.prompt), len(context)-1)]
	return a
}

// draw takes a token by the seed of a request: of the list, or of all words where the draw falls beside it.
func draw(list []toyProb, seed int64, place int) int {
	rng := rand.New(rand.NewPCG(uint64(seed), uint64(place)))
	at := rng.Float64()
	for _, p := range list {
		if at -= math.Exp(p.logprob); at < 0 {
			return p.id
		}
	}
	for {
		id := rng.IntN(len(vocabulary))
		if !slices.ContainsFunc(list, func(p toyProb) bool { return p.id == id }) {
			return id
		}
	}
}

// Handler answers everything that is asked of a server.
func (t *Toy) Handler() Handler {
	return func(r Request) *Script {
		t.mu.Lock()
		t.running++
		t.mu.Unlock()
		if v, ok := exchange.HeaderValue(r.Headers, MeetHeader); ok {
			t.meet(v)
		}
		status, body := t.answer(r)
		return &Script{Status: status, Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json; charset=utf-8"}}, Framing: FramingLength,
			Steps: []Step{{Data: body}}, Done: func(Record) {
				t.mu.Lock()
				t.running--
				t.mu.Unlock()
			}}
	}
}

// meet waits until as many requests wait as the header says.
func (t *Toy) meet(header string) {
	want, err := strconv.Atoi(header)
	if err != nil {
		return
	}
	t.mu.Lock()
	if t.met == nil {
		t.met = make(chan struct{})
	}
	met := t.met
	if t.waiting++; t.waiting >= want {
		close(met)
		t.met, t.waiting = nil, 0
	}
	t.mu.Unlock()
	late := time.NewTimer(meetTime)
	defer late.Stop()
	select {
	case <-met:
	case <-late.C:
	}
}
