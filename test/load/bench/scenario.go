package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/test/load/rig"
)

// scenario is one kind of load and what is timed in it.
type scenario struct {
	name     string
	what     string // the time that is taken
	clients  int
	requests int // of each client, one after the other
	stream   bool
	sim      string // options of the engine
	large    bool   // so many clients that it is not played in every round
	queue    bool   // the machine has no rest in it: its rate is what counts, and its times are those of a queue
	per      string // what processor time and rate are of: event or request
	samples  func(got, sim.Record) []float64
}

// scenarioList are the scenarios. The paces of most keep two processors below saturation, so that what is timed is the
// path of a byte and not the length of a queue; load and max are the exception, for the cost of a request and of an
// event. Two processors that carry clients and engine as well are close to saturation in ten and in paced. All requests
// of one scenario are fewer than the engine keeps records of.
func scenarioList(streams int) []scenario {
	return []scenario{
		{name: "ttft", what: "request sent to first token", clients: 1, requests: 300, stream: true,
			sim: "answer=1", per: "request", samples: firstToken},
		{name: "events", what: "event written to event read, 8 streams at 100/s", clients: 8, requests: 1, stream: true,
			sim: "answer=100; decode=100; jitter=0.5", per: "event", samples: eventDelays},
		{name: "json", what: "small request sent to answer read", clients: 1, requests: 400,
			sim: "answer=64", per: "request", samples: wholeAnswer},
		{name: "load", what: "the same, 32 clients without pause", clients: 32, requests: 60,
			sim: "answer=64", queue: true, per: "request", samples: wholeAnswer},
		{name: "max", what: "event written to event read, 32 streams without pause", clients: 32, requests: 1, stream: true,
			sim: "answer=1000", queue: true, per: "event", samples: eventDelays},
		{name: "many", what: fmt.Sprintf("event written to event read, %d streams at 3/s", streams), clients: streams, requests: 1, stream: true,
			sim: "ttft=1s; answer=12; decode=3; jitter=1", large: true, per: "event", samples: eventDelays},
		{name: "ten", what: fmt.Sprintf("event written to event read, %d streams at 10/s", streams), clients: streams, requests: 1, stream: true,
			sim: "ttft=1s; answer=12; decode=10; jitter=1", large: true, per: "event", samples: eventDelays},
		{name: "paced", what: "event written to event read, 512 streams of 64 at 50/s", clients: 512, requests: 1, stream: true,
			sim: "ttft=1s; answer=64; decode=50; jitter=1", large: true, per: "event", samples: eventDelays},
	}
}

// got is one answer as its client saw it.
type got struct {
	id    string
	sent  int64
	done  int64 // the last read
	size  int
	reads []rig.Read
	err   error
}

func (g got) arrival(n int) (int64, bool) {
	a := rig.Answer{Reads: g.reads}
	return a.Arrival(n)
}

const us = 1e3 // nanoseconds

// firstToken is the time to the first token.
func firstToken(g got, r sim.Record) []float64 {
	i := slices.IndexFunc(r.Writes, func(w sim.Write) bool { return w.Token })
	if i < 0 {
		return nil
	}
	at, ok := g.arrival(r.Writes[i].Body)
	if !ok {
		return nil
	}
	return []float64{float64(at-g.sent) / us}
}

// eventDelays are the times that events with content took from the engine to the client.
func eventDelays(g got, r sim.Record) []float64 {
	var out []float64
	for _, w := range r.Writes {
		if !w.Token {
			continue
		}
		if at, ok := g.arrival(w.Body); ok {
			out = append(out, float64(at-w.Wall)/us)
		}
	}
	return out
}

// wholeAnswer is the time to the end of the answer.
func wholeAnswer(g got, _ sim.Record) []float64 { return []float64{float64(g.done-g.sent) / us} }

// batch is a scenario played once on one target.
type batch struct {
	samples  []float64 // us, ascending
	requests int
	failed   int // answers that were refused, cut, or not as long as the engine's
	units    int // events or requests, as the scenario says
	cpu      time.Duration
	wall     time.Duration
}

// scenarios plays all scenarios on all targets, round by round. The order of the targets is drawn for each round, so that
// none always comes after the same other and its late work.
func (b *bench) scenarios(ctx context.Context, r *report) error {
	list := scenarioList(b.cfg.streams)
	for round := range b.cfg.rounds {
		b.note("round %d of %d", round+1, b.cfg.rounds)
		for _, s := range list {
			if !b.cfg.has(s.name) || s.large && round%b.cfg.large != 0 {
				continue
			}
			played := map[string]batch{}
			for _, i := range rand.New(rand.NewPCG(uint64(round), 0)).Perm(len(b.targets)) {
				t := b.targets[i]
				x, err := b.play(ctx, s, t)
				if err != nil {
					return fmt.Errorf("play %s on %s: %w", s.name, t.name, err)
				}
				played[t.name] = x
			}
			r.add(s, played)
		}
	}
	return nil
}

// play plays a scenario once.
func (b *bench) play(ctx context.Context, s scenario, t *target) (batch, error) {
	p := &playing{scenario: s, target: t, first: b.serial}
	b.serial += s.clients * s.requests
	defer p.Close()
	if err := p.warm(); err != nil {
		return batch{}, err
	}
	if err := errors.Join(t.settle(ctx), b.engine.Forget(ctx)); err != nil {
		return batch{}, err
	}
	runtime.GC() // ours, so that it does not come in between
	before, err := t.cpu()
	if err != nil {
		return batch{}, err
	}
	began := time.Now()
	p.run()
	wall := time.Since(began)
	if err := t.settle(ctx); err != nil {
		return batch{}, err
	}
	after, err := t.cpu()
	if err != nil {
		return batch{}, err
	}
	truth, err := b.engine.Truth(ctx, false)
	if err != nil {
		return batch{}, err
	}
	x := p.gather(rig.ByID(truth))
	x.cpu, x.wall = after-before, wall
	return x, nil
}

// playing is a scenario while it is played: its clients and what they got.
type playing struct {
	scenario
	target  *target
	first   int // number of its first request
	clients []*rig.Client
	answers [][]got // of each client
}

// Close ends the clients' connections.
func (p *playing) Close() {
	for _, c := range p.clients {
		c.Close()
	}
}

// warm connects every client and has one in eight make a request, so that connections to the engine are there.
func (p *playing) warm() error {
	for range p.scenario.clients {
		p.clients = append(p.clients, rig.NewClient(p.target.addr))
	}
	p.answers = make([][]got, len(p.clients))
	for i, c := range p.clients {
		if err := c.Dial(); err != nil {
			return err
		}
		if i%8 != 0 || p.large {
			continue
		}
		if _, err := c.Do(rig.Ask{ID: "warm", Prompt: "warm up", Sim: "answer=1"}.Bytes()); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	return nil
}

// run has all clients make all their requests.
func (p *playing) run() {
	var wg sync.WaitGroup
	for i := range p.clients {
		asks := make([]rig.Ask, p.requests)
		for n := range asks {
			id := fmt.Sprint(p.first + i*p.requests + n)
			asks[n] = rig.Ask{ID: id, Prompt: "What does request " + id + " cost?", Stream: p.stream, Sim: p.sim}
		}
		wg.Go(func() { p.answers[i] = ask(p.clients[i], asks) })
	}
	wg.Wait()
}

// ask makes the requests of one client.
func ask(c *rig.Client, asks []rig.Ask) []got {
	out := make([]got, len(asks))
	for i, a := range asks {
		x, err := c.Do(a.Bytes())
		if err == nil && x.Status != 200 {
			err = fmt.Errorf("status %d", x.Status)
		}
		out[i] = got{id: a.ID, sent: x.Sent, size: len(x.Body), reads: slices.Clone(x.Reads), err: err}
		if n := len(x.Reads); n > 0 {
			out[i].done = x.Reads[n-1].At
		}
	}
	return out
}

// gather holds the answers to the engine's truth and takes the times of those that are whole.
func (p *playing) gather(truth map[string]sim.Record) batch {
	var x batch
	for _, answers := range p.answers {
		for _, g := range answers {
			r, ok := truth[g.id]
			x.requests++
			if g.err != nil || !ok || len(r.Writes) == 0 || g.size != r.Writes[len(r.Writes)-1].Body {
				x.failed++
				continue
			}
			x.samples = append(x.samples, p.samples(g, r)...)
			x.units++
			if p.per == "event" {
				x.units += tokenEvents(r) - 1
			}
		}
	}
	slices.Sort(x.samples)
	return x
}

func tokenEvents(r sim.Record) int {
	n := 0
	for _, w := range r.Writes {
		if w.Token {
			n++
		}
	}
	return n
}
