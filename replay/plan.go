package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// PlanScheme is the prefix of every plan hash: the version of the rules that make it.
const PlanScheme = "p1:"

// Loop is what decides when a request is sent.
type Loop string

// The loops. A closed one waits for answers and can measure no queue; an open one does not wait, as users do not.
const (
	LoopClosed   Loop = "closed"   // so many requests at a time
	LoopRate     Loop = "rate"     // at instants of a rate, whatever the answers do
	LoopRecorded Loop = "recorded" // at the instants of the workload
	LoopWaves    Loop = "waves"    // so many at once, and the next ones when all have ended
)

// Defaults of the options below.
const (
	DefaultMaxInFlight = 4096
	DefaultMaxLag      = measure.DefaultMaxLagMS * time.Millisecond
	DefaultRetries     = 5
)

// PlanOptions say what is made of a workload. Instants, rates and order are those of all targets together.
type PlanOptions struct {
	Loop        Loop
	Concurrency int           // closed: requests at a time; waves: requests of a wave; open: the most at once, 0 = DefaultMaxInFlight
	Rate        float64       // of LoopRate, conversations a second
	Arrivals    string        // of LoopRate; "" is ArrivalsConstant
	Seed        uint64        // of arrivals, and of the order of targets
	Speed       float64       // of LoopRecorded: 1 as recorded, 0 all at once
	MaxGap      time.Duration // of LoopRecorded: longest pause between two sends; 0 = as long as it was
	MaxLag      time.Duration // of an open loop: a lag p99 above it makes the run invalid; 0 = DefaultMaxLag

	Repeats     int           // of the whole workload; 0 = 1
	KeepSeed    bool          // repeats of a request that samples do not get seeds of their own; see reseed
	Warmup      int           // requests before the measuring begins, to each target
	Nonce       bool          // put a text of its own before the prompt of each conversation of each repeat
	MaxRequests int           // to each target; 0 = all
	Duration    time.Duration // nothing is sent later than this after the start; 0 = no bound
	Retries     int           // later attempts where the engine answers 503 and says when; 0 = DefaultRetries, < 0 = none

	Changes       Changes
	SessionHeader string // header that carries one value a conversation; "" = that of the target, if it has one
	LiveHistory   bool   // later turns repeat what the engine answered now, not what it answered when they were recorded

	Targets        []string // their names; several get each request in a random order
	TargetSessions []string // header of each target that carries one value a conversation, "" for none; nil = none has one
	Salt           string   // of nonces and session values, another one for each run
}

// Plan is the exact list of what is to be sent.
type Plan struct {
	Hash     string // over requests, changes, order and instants; not over nonces
	Workload string // hash of the workload
	Items    int    // conversations to each target, repeats counted
	Requests int    // to each target, repeats counted, as far as the conversations go on to their ends

	o         PlanOptions
	jobs      []job
	respelled []int // by target, see Respelled
}

// job is one conversation to one target: its turns are sent one after the other.
type job struct {
	turns  []*Item
	at     []time.Duration // instants of the turns, < 0 for as soon as it can be; nil in a closed loop
	target int
	repeat int
	wave   int // number from 1; 0 for none
}

// open reports whether instants are planned.
func (o *PlanOptions) open() bool { return o.Loop == LoopRate || o.Loop == LoopRecorded }

// Solo reports whether the plan has one request running at a time, all targets together.
func (p *Plan) Solo() bool { return !p.o.open() && p.o.Concurrency == 1 }

func badPlan(format string, args ...any) error {
	return fmt.Errorf("plan workload: %w: %w", exchange.ErrUsage, fmt.Errorf(format, args...))
}

// check refuses options that make no sense, and sets defaults.
func (o *PlanOptions) check(w *Workload) error {
	o.Repeats = max(o.Repeats, 1)
	switch {
	case len(w.Items) == 0:
		return badPlan("there is nothing to send")
	case len(o.Targets) == 0:
		return badPlan("there is no target")
	case min(o.Concurrency, o.Warmup, o.MaxRequests) < 0 || min(o.Duration, o.MaxGap, o.MaxLag) < 0 || o.Repeats > math.MaxInt32:
		return badPlan("a number is below 0 or too large")
	case o.TargetSessions != nil && len(o.TargetSessions) != len(o.Targets):
		return badPlan("%d session headers are not one for each of %d targets", len(o.TargetSessions), len(o.Targets))
	case o.Arrivals != "" && o.Arrivals != ArrivalsConstant && o.Arrivals != ArrivalsPoisson:
		return badPlan("arrivals are %s or %s, not %q", ArrivalsConstant, ArrivalsPoisson, o.Arrivals)
	}
	if err := o.checkLoop(w); err != nil {
		return err
	}
	if o.open() && o.Concurrency == 0 {
		o.Concurrency = DefaultMaxInFlight
	}
	if o.MaxLag == 0 {
		o.MaxLag = DefaultMaxLag
	}
	if o.Retries == 0 {
		o.Retries = DefaultRetries
	}
	return nil
}

// checkLoop refuses what does not go with the loop.
func (o *PlanOptions) checkLoop(w *Workload) error {
	switch o.Loop {
	case LoopClosed, LoopWaves:
		o.Concurrency = max(o.Concurrency, 1)
	case LoopRate:
		if !(o.Rate > 0) || math.IsInf(o.Rate, 0) {
			return badPlan("a rate is a number above 0, not %g", o.Rate)
		}
	case LoopRecorded:
		if !(o.Speed >= 0) || math.IsInf(o.Speed, 0) {
			return badPlan("a speed is a number from 0, not %g", o.Speed)
		}
		if !w.Timed() && o.Speed > 0 {
			return badPlan("the workload does not say when its requests were sent; choose a rate, or a number at a time")
		}
		if len(o.Targets) > 1 {
			return badPlan("recorded instants are for one target: several would be asked at the same moment; choose a rate")
		}
	default:
		return badPlan("there is no loop %q", o.Loop)
	}
	return nil
}

// NewPlan makes a plan. The workload must not change as long as the plan is in use.
func NewPlan(w *Workload, o PlanOptions) (*Plan, error) {
	if err := o.check(w); err != nil {
		return nil, err
	}
	p := &Plan{Workload: w.Hash(), o: o}
	p.arrange(conversationsOf(w))
	switch o.Loop {
	case LoopRate:
		p.atRate()
	case LoopRecorded:
		p.asRecorded(w)
	}
	if o.LiveHistory {
		if err := p.checkHistory(); err != nil {
			return nil, err
		}
	}
	p.Hash = p.hash()
	return p, nil
}

// conversationsOf gathers the turns of each conversation, in the order of the first ones.
func conversationsOf(w *Workload) [][]*Item {
	var out [][]*Item
	known := map[string]int{}
	for i := range w.Items {
		it := &w.Items[i]
		n, ok := known[it.Conversation]
		if !ok || it.Conversation == "" {
			n = len(out)
			out = append(out, nil)
			known[it.Conversation] = n
		}
		out[n] = append(out[n], it)
	}
	for _, turns := range out {
		slices.SortStableFunc(turns, func(a, b *Item) int { return a.Turn - b.Turn })
	}
	return out
}

// arrange makes the jobs: the workload again for each repeat; several targets get each conversation, or each wave, one
// after the other in an order of their own, so that neither a drift of the machine nor the order favors one.
func (p *Plan) arrange(talks [][]*Item) {
	r := rand.New(rand.NewPCG(p.o.Seed, orderStream))
	size := 1
	if p.o.Loop == LoopWaves {
		size = p.o.Concurrency
	}
	left, wave := p.o.MaxRequests, 0
	var all []job
	for repeat := range p.o.Repeats {
		for _, turns := range talks {
			if p.o.MaxRequests > 0 {
				turns = turns[:min(len(turns), left)]
				left -= len(turns)
			}
			if len(turns) > 0 {
				all = append(all, job{turns: turns, repeat: repeat})
				p.Requests += len(turns)
			}
		}
	}
	p.Items = len(all)
	for group := range slices.Chunk(all, size) {
		for _, target := range r.Perm(len(p.o.Targets)) {
			wave++
			for _, j := range group {
				j.target = target
				if p.o.Loop == LoopWaves {
					j.wave = wave
				}
				p.jobs = append(p.jobs, j)
			}
		}
	}
}

// atRate gives each conversation the instant of its first turn. A later turn follows the answer before it.
func (p *Plan) atRate() {
	at := constantInstants(len(p.jobs), p.o.Rate)
	if p.o.Arrivals == ArrivalsPoisson {
		at = poissonInstants(len(p.jobs), p.o.Rate, p.o.Seed)
	}
	for i := range p.jobs {
		j := &p.jobs[i]
		j.at = slices.Repeat([]time.Duration{AtUnknown}, len(j.turns))
		j.at[0] = at[i]
	}
}

// asRecorded gives every turn its instant, and puts the jobs in the order of their first ones.
func (p *Plan) asRecorded(w *Workload) {
	at, period := recordedInstants(w.Items, p.o.Speed, p.o.MaxGap)
	of := make(map[*Item]time.Duration, len(at))
	for i := range w.Items {
		of[&w.Items[i]] = at[i]
	}
	for i := range p.jobs {
		j := &p.jobs[i]
		j.at = make([]time.Duration, len(j.turns))
		for k, it := range j.turns {
			j.at[k] = of[it] + time.Duration(j.repeat)*period
		}
	}
	slices.SortStableFunc(p.jobs, func(a, b job) int { return int(a.at[0] - b.at[0]) })
}

// hash covers what is sent, in which order and when. The requests are those of the workload with the changes that are
// made of all: both together say what each is.
func (p *Plan) hash() string {
	h := sha256.New()
	o := &p.o
	fmt.Fprintf(h, "%s\n%s %d %g %s %d %g %d\n", p.Workload, o.Loop, o.Concurrency, o.Rate, o.Arrivals, o.Seed, o.Speed, o.MaxGap)
	fmt.Fprintf(h, "%d %t %d %q %t %d\n", o.Warmup, o.Nonce, o.Duration, o.SessionHeader, o.LiveHistory, len(o.Targets))
	if slices.ContainsFunc(o.TargetSessions, func(name string) bool { return name != "" }) {
		fmt.Fprintf(h, "%q\n", o.TargetSessions)
	}
	if o.Repeats > 1 {
		fmt.Fprintf(h, "seeds %t\n", !o.KeepSeed)
	}
	fmt.Fprintf(h, "%q %q %q\n", o.Changes.Model, o.Changes.Headers, o.Changes.Edits)
	if len(o.Changes.Bridges) > 0 && o.Changes.Lossy {
		fmt.Fprintln(h, "lossy")
	}
	for i, b := range o.Changes.Bridges {
		if p.translates(i) { // another spelling asks for the same, and is no other plan
			fmt.Fprintf(h, "bridge %q %q %t\n", b.Dialect, b.Keeps, o.Changes.Lossy)
		}
	}
	for i := range p.jobs {
		j := &p.jobs[i]
		fmt.Fprintf(h, "%d %d %d %v\n", j.target, j.repeat, j.wave, j.at)
		for _, it := range j.turns {
			fmt.Fprintf(h, "%s %x\n", it.Key, it.sum)
		}
	}
	return PlanScheme + hex.EncodeToString(h.Sum(nil)[:16])
}

// checkHistory refuses conversations whose answers cannot be put into the next turn.
func (p *Plan) checkHistory() error {
	for i := range p.jobs {
		j := &p.jobs[i]
		for _, it := range j.turns {
			if len(j.turns) > 1 && !p.o.Changes.goesOn(it, j.target) {
				return badPlan("request %s is a turn of a conversation at %s; live history is for chats", it.ID, it.Target)
			}
		}
	}
	return nil
}

// Check makes every request once, without sending it, where the options change requests: what cannot be changed, or not
// be said to a target, is found before the first one is sent.
func (p *Plan) Check() error {
	c := &p.o.Changes
	if c.Model == "" && len(c.Edits)+len(c.Bridges) == 0 && !p.o.Nonce {
		return nil
	}
	return p.checkLosses()
}

// nonceOf is the nonce of what is named, "" when there is none: of one length for all, so that prompts stay comparable.
func (p *Plan) nonceOf(what string) string {
	if !p.o.Nonce {
		return ""
	}
	return p.token(what)
}

// token is 16 hex digits of its own for each name and run.
func (p *Plan) token(what string) string {
	return tokenOf(p.o.Salt, what)
}

func tokenOf(salt, what string) string {
	sum := sha256.Sum256([]byte(salt + "\x00" + what))
	return hex.EncodeToString(sum[:8])
}

// talkName names a conversation of one repeat. It is the same for all targets: they are asked the same.
func (j *job) talkName() string { return fmt.Sprintf("%s %d", j.turns[0].ID, j.repeat) }

// item is what the exchange of a turn says of its place in the plan.
func (j *job) item(turn, attempt int) *exchange.PlanItem {
	it := j.turns[turn]
	p := &exchange.PlanItem{Item: it.ID, Turn: turn, Turns: len(j.turns), Repeat: j.repeat, Attempt: attempt}
	if len(j.turns) > 1 {
		p.Conversation = it.Conversation
	}
	return p
}

// session is the header that carries the conversation of a job; without a name there is none.
func (p *Plan) session(target int, talk string) exchange.Header {
	name := p.o.SessionHeader
	if name == "" && p.o.TargetSessions != nil {
		name = p.o.TargetSessions[target]
	}
	if name == "" {
		return exchange.Header{}
	}
	return exchange.Header{Name: name, Value: p.token("session " + strconv.Itoa(target) + " " + talk)}
}

// waveName names the requests that are sent together.
func (j *job) waveName(turn int) string {
	switch {
	case j.wave == 0:
		return ""
	case len(j.turns) > 1:
		return fmt.Sprintf("w%d/%d", j.wave, turn+1)
	}
	return fmt.Sprintf("w%d", j.wave)
}
