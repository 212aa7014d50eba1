package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Progress is how far a driver is, all targets together.
type Progress struct {
	Requests int           // planned, as far as conversations go on to their ends
	Ended    int           // of them answered or failed; one that is tried again counts once
	Failed   int           // of the ended ones
	InFlight int           // requests that run now
	Tokens   float64       // of answers that ended
	Elapsed  time.Duration // since the measuring began; 0 before
	Left     time.Duration // estimate of what remains; < 0 when nothing can be said yet
	Warmup   bool          // the measuring has not begun
}

// Progress may be asked for at any time.
func (d *Driver) Progress() Progress {
	p := Progress{Requests: d.plan.Requests * len(d.targets), InFlight: int(d.inFlight.Load()), Left: -1}
	for _, t := range d.tallies {
		t.mu.Lock()
		p.Ended, p.Failed, p.Tokens = p.Ended+t.ended, p.Failed+t.failed, p.Tokens+t.tokens
		t.mu.Unlock()
	}
	start := d.started()
	if start.IsZero() {
		p.Warmup = true
		return p
	}
	p.Elapsed = clock.Since(start)
	if p.Ended > 0 {
		p.Left = time.Duration(float64(p.Elapsed) / float64(p.Ended) * float64(max(p.Requests-p.Ended, 0)))
	}
	if limit := d.plan.o.Duration; limit > 0 {
		p.Left = max(0, min(p.Left, limit-p.Elapsed))
	}
	return p
}

// Planned is what a run says of the plan before anything is sent.
func (p *Plan) Planned() exchange.Replay {
	r := exchange.Replay{Workload: p.Workload, Plan: p.Hash, Driver: string(p.o.Loop), Seed: p.o.Seed, Settings: p.settings()}
	r.Items.Planned, r.Items.Unsent = p.Items, p.Items
	return r
}

// settings are how the plan is to be sent, without what does not go with its loop.
func (p *Plan) settings() exchange.ReplaySettings {
	o := &p.o
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	s := exchange.ReplaySettings{Targets: len(o.Targets), Concurrency: o.Concurrency, Repeats: o.Repeats, Warmup: o.Warmup, Nonce: o.Nonce,
		KeepSeed: o.KeepSeed, LiveHistory: o.LiveHistory, MaxRequests: o.MaxRequests, DurationMS: ms(o.Duration), Retries: max(o.Retries, 0)}
	switch o.Loop {
	case LoopRate:
		s.Rate, s.Arrivals = o.Rate, cmp.Or(o.Arrivals, ArrivalsConstant)
	case LoopRecorded:
		s.Speed, s.MaxGapMS = &o.Speed, ms(o.MaxGap)
	}
	return s
}

// Report is what became of the plan at a target. It is whole when Run has returned and the target's tally has been given
// every exchange.
func (d *Driver) Report(target int) exchange.Replay {
	r := d.plan.Planned()
	t := d.tallies[target]
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Items = t.itemCounts()
	r.Waves, r.EventGaps = t.waveRates(), t.gaps.Tail()
	d.mu.Lock()
	stopped, missed, broken := d.stopped, d.missed[target], d.broken
	d.mu.Unlock()
	if d.plan.o.open() {
		s, invalid := t.schedule.Result(missed, float64(d.plan.o.MaxLag)/float64(time.Millisecond))
		s.MaxInFlight, s.PeakInFlight = d.plan.o.Concurrency, int(d.peak.Load())
		r.Schedule, r.Invalid = &s, invalid
	}
	left := r.Items.Unsent + r.Items.Broken
	switch {
	case broken != nil:
		r.Incomplete = broken.Error()
	case stopped != nil && !errors.Is(stopped, errDuration) && left > 0:
		r.Incomplete = fmt.Sprintf("%d of %d items did not end: %v", left, r.Items.Planned, stopped)
	case stopped == nil && left > 0:
		r.Incomplete = fmt.Sprintf("%d of %d items are not in the record", left, r.Items.Planned)
	}
	return r
}

// Why a driver stops sending before its plan is at its end.
var (
	errDuration    = errors.New("the time was over")
	errNobodyThere = fmt.Errorf("%w: no request of the first %d found it", exchange.ErrUnreachable, firstLinks)
)

// firstLinks is how many requests may find no engine, with none that found one, before a driver gives up.
const firstLinks = 3

// stop notes why sending ends. The first reason counts.
func (d *Driver) stop(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped == nil {
		d.stopped = context.Cause(ctx)
	}
}
