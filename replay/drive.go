package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/proxy"
)

// Target is an engine that a plan is sent to. Each has a session, and so a run, of its own.
type Target struct {
	Session  *proxy.Session
	Upstream *proxy.Upstream
}

// Driver sends a plan once.
type Driver struct {
	plan    *Plan
	targets []Target
	tallies []*Tally

	inFlight, peak atomic.Int64

	mu      sync.Mutex
	start   time.Time // of the measuring; zero before
	stopped error     // why sending ended early
	broken  error     // a request that could not be made
	missed  []int     // by target: requests whose instant came before sending ended, and that were not tried
	links   []links   // by target

	lessons *lessons
}

// links says whether a target was found at all.
type links struct{ found, lost int }

// NewDriver is a driver of a plan whose targets are in the order of the plan's.
func NewDriver(p *Plan, targets []Target) *Driver {
	d := &Driver{plan: p, targets: targets, missed: make([]int, len(targets)), links: make([]links, len(targets)),
		lessons: newLessons(p.o.Changes.Lossy)}
	for i := range targets {
		d.tallies = append(d.tallies, newTally(p, i))
	}
	return d
}

// Tally is where the exchanges of a target are counted.
func (d *Driver) Tally(target int) *Tally { return d.tallies[target] }

func (d *Driver) started() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.start
}

// ready is a job whose first request is made.
type ready struct {
	job   *job
	first *draft
}

// madeAhead is how many requests are made ahead of their instants.
const madeAhead = 64

// Run sends the plan and returns when every request has ended. When ctx ends no more are sent and the running ones are
// cut; they end as EndShutdown. The error is nil when the plan was sent to its end, or to the end of its time; else it says
// why it was not. What became of the requests is in the records alone.
func (d *Driver) Run(ctx context.Context) error {
	if ctx.Err() != nil { // before anything was sent
		d.stop(ctx)
		return context.Cause(ctx)
	}
	run, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	send, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() {
		end(context.Cause(ctx)) // first: what is cut must find that no more is sent
		cut(proxy.ErrShutdown)
	})()
	s := &sending{d: d, run: run, end: end}
	return s.Run(send)
}

// sending is one Run of a driver.
type sending struct {
	d     *Driver
	ctx   context.Context // as long as requests are sent
	run   context.Context // as long as they may run
	end   context.CancelCauseFunc
	start time.Time
}

// Run warms up, sends the plan and waits for all that it began. Its error is that of the driver's.
func (s *sending) Run(send context.Context) error {
	if err := s.warmUp(send); err != nil {
		if send.Err() != nil {
			s.d.stop(send)
		}
		return err
	}
	s.start = clock.Now()
	s.d.mu.Lock()
	s.d.start = s.start
	s.d.mu.Unlock()
	if limit := s.d.plan.o.Duration; limit > 0 {
		var free context.CancelFunc
		send, free = context.WithDeadlineCause(send, s.start.Add(limit), errDuration)
		defer free()
	}
	s.ctx = send
	s.loop()
	if send.Err() == nil {
		return nil
	}
	if cause := context.Cause(send); !errors.Is(cause, errDuration) {
		return cause
	}
	return nil
}

// loop sends all jobs and waits for them.
func (s *sending) loop() {
	jobs := make(chan ready, madeAhead)
	var maker, all sync.WaitGroup
	maker.Go(func() { s.make(jobs) })
	switch s.d.plan.o.Loop {
	case LoopClosed:
		for range s.d.plan.o.Concurrency {
			all.Go(func() {
				for r := range jobs {
					s.talk(r)
				}
			})
		}
	case LoopWaves:
		s.waves(jobs)
	default:
		s.open(jobs, &all)
	}
	all.Wait()
	for range jobs { // what was made for nothing
	}
	maker.Wait()
	if s.ctx.Err() != nil {
		s.d.stop(s.ctx)
	}
}

// make makes the first request of each job, ahead of its instant.
func (s *sending) make(jobs chan<- ready) {
	defer close(jobs)
	for i := range s.d.plan.jobs {
		j := &s.d.plan.jobs[i]
		first, err := s.d.plan.draft(j, 0)
		if err != nil {
			s.d.fail(err)
			s.end(err)
			return
		}
		select {
		case jobs <- ready{j, first}:
		case <-s.ctx.Done():
			s.d.miss(s.d.plan.jobs[i:], s.start)
			return
		}
	}
}

// draft makes the request of a turn.
func (p *Plan) draft(j *job, turn int) (*draft, error) {
	q, err := p.o.Changes.draftOf(j.turns[turn], j.target, p.nonceOf(j.talkName()), p.session(j.target, j.talkName()))
	if err != nil {
		return nil, err
	}
	if err := p.reseed(q, j, turn); err != nil {
		return nil, fmt.Errorf("give request %s a seed: %w", j.turns[turn].ID, err)
	}
	return q, nil
}

// fail notes a request that could not be made. The first one counts.
func (d *Driver) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken == nil {
		d.broken = err
	}
}

// miss counts the jobs whose instant has passed and that will not be sent.
func (d *Driver) miss(jobs []job, start time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range jobs {
		if at := jobs[i].at; at != nil && start.Add(at[0]).Before(clock.Now()) {
			d.missed[jobs[i].target]++
		}
	}
}

// open begins each job at its instant. With as many running as may, the next one is late, which its lag tells.
func (s *sending) open(jobs <-chan ready, all *sync.WaitGroup) {
	places := make(chan struct{}, s.d.plan.o.Concurrency)
	for r := range jobs {
		if !s.until(s.start.Add(r.job.at[0])) {
			s.d.miss([]job{*r.job}, s.start)
			continue
		}
		select {
		case places <- struct{}{}:
		case <-s.ctx.Done():
		}
		if s.ctx.Err() != nil { // a place that came free at the end is none any more
			s.d.miss([]job{*r.job}, s.start)
			continue
		}
		all.Go(func() {
			s.talk(r)
			<-places
		})
	}
}

// until waits for an instant; see waitUntil.
func (s *sending) until(t time.Time) bool { return waitUntil(s.ctx, t) }

// waves begins the jobs of a wave together, and the next wave when all have ended.
func (s *sending) waves(jobs <-chan ready) {
	var wave []ready
	for r := range jobs {
		if len(wave) > 0 && wave[0].job.wave != r.job.wave {
			s.wave(wave)
			wave = wave[:0]
		}
		wave = append(wave, r)
	}
	s.wave(wave)
}

func (s *sending) wave(members []ready) {
	if s.ctx.Err() != nil {
		return
	}
	var all sync.WaitGroup
	gate := make(chan struct{})
	for _, r := range members {
		all.Go(func() {
			<-gate
			s.talk(r)
		})
	}
	close(gate)
	all.Wait()
}

// talk sends the turns of a job one after the other, as long as each is answered in full.
func (s *sending) talk(r ready) {
	var h history
	var c continued
	j, q := r.job, r.first
	for turn := range j.turns {
		if s.ctx.Err() != nil {
			return
		}
		intended := s.instant(j, turn)
		if turn > 0 {
			var err error
			if q, err = s.d.plan.draft(j, turn); err == nil {
				err = c.rewrite(q)
			}
			if err != nil {
				s.d.fail(err)
				s.end(err)
				return
			}
			if s.d.plan.o.LiveHistory && !h.rewrite(q) {
				return
			}
			if !s.until(intended) {
				return
			}
		}
		x := s.ask(j, turn, q, intended)
		if turn == len(j.turns)-1 {
			return
		}
		a := measure.Analyze(x)
		if a.Outcome != exchange.OutcomeComplete {
			return
		}
		c.answered(j.turns[turn], a.Transcript.ID)
		if s.d.plan.o.LiveHistory {
			h.answered(q, x, a.Transcript)
		}
	}
}

// instant is when the plan wants a turn to be sent, zero for no plan. A turn whose answer before came later than that is
// meant for the moment in which it can be sent: waiting for the engine is no lag of ours.
func (s *sending) instant(j *job, turn int) time.Time {
	if j.at == nil {
		return time.Time{}
	}
	now := clock.Now()
	if t := s.start.Add(j.at[turn]); turn == 0 || j.at[turn] >= 0 && t.After(now) {
		return t
	}
	return now
}

// ask sends a turn, and again where the engine says that it cannot answer yet and when it can, or how else it wants
// something said.
func (s *sending) ask(j *job, turn int, q *draft, intended time.Time) *exchange.Exchange {
	waits := 0
	for attempt := 0; ; attempt++ {
		if err := s.d.lessons.apply(j.target, q); err != nil {
			s.d.fail(err)
		}
		c := q.call()
		c.Origin, c.Item, c.Wave, c.Intended = j.turns[turn].Origin, j.item(turn, attempt), j.waveName(turn), intended
		x := s.do(j.target, c)
		intended = time.Time{} // a second attempt keeps no schedule
		if s.d.lessons.learn(j.target, q, x) && s.ctx.Err() == nil {
			continue
		}
		wait, again := retryAfter(x)
		if !again || waits >= s.d.plan.o.Retries || !s.until(clock.Now().Add(wait)) {
			return x
		}
		waits++
	}
}

func (q *draft) call() proxy.Call {
	return proxy.Call{Method: q.method, Target: q.target, Headers: q.headers, Body: q.body, Notes: q.notes}
}

// do is one exchange.
func (s *sending) do(target int, c proxy.Call) *exchange.Exchange {
	d := s.d
	n := d.inFlight.Add(1)
	for p := d.peak.Load(); n > p && !d.peak.CompareAndSwap(p, n); p = d.peak.Load() {
	}
	t := d.targets[target]
	x := t.Session.Do(s.run, t.Upstream, c, nil)
	d.inFlight.Add(-1)
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &d.links[target]
	if x.End == exchange.EndConnectFailed {
		l.lost++
	} else {
		l.found++
	}
	if l.found == 0 && l.lost >= min(firstLinks, len(d.plan.jobs)) {
		s.end(errNobodyThere)
	}
	return x
}

// warmup is one request of a warm-up.
type warmup struct {
	n, target int
	q         *draft
}

// warm sends a request of a warm-up, and again where the engine wants something said otherwise: what it teaches here
// costs the measuring nothing.
func (s *sending) warm(w warmup, item string) {
	for attempt := 0; ; attempt++ {
		if err := s.d.lessons.apply(w.target, w.q); err != nil {
			s.d.fail(err)
		}
		c := w.q.call()
		c.Item = &exchange.PlanItem{Item: item, Turns: 1, Repeat: w.n, Attempt: attempt, Warmup: true}
		if x := s.do(w.target, c); !s.d.lessons.learn(w.target, w.q, x) {
			return
		}
	}
}

// warmUp sends requests in the form of the first one that is timed, each with a nonce of its own: it warms the engine and
// not its cache of prompts. They go at the pace of a closed loop.
func (s *sending) warmUp(ctx context.Context) error {
	p := s.d.plan
	s.ctx = ctx
	if p.o.Warmup == 0 {
		return nil
	}
	jobs := make(chan warmup, p.o.Warmup*len(s.d.targets))
	width := 1
	if !p.o.open() {
		width = min(p.o.Concurrency, p.o.Warmup)
	}
	it := p.jobs[0].turns[0]
	for n := range p.o.Warmup {
		for target := range s.d.targets {
			q, err := p.o.Changes.draftOf(it, target, p.token("warmup "+strconv.Itoa(n)), exchange.Header{})
			if err != nil {
				return fmt.Errorf("warm up: %w: %w", exchange.ErrUsage, err)
			}
			jobs <- warmup{n, target, q}
		}
	}
	close(jobs)
	var all sync.WaitGroup
	for range width {
		all.Go(func() {
			for w := range jobs {
				if ctx.Err() == nil {
					s.warm(w, it.ID)
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		s.d.stop(ctx)
		return context.Cause(ctx)
	}
	return nil
}
