package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// Options say what is carried out, and where.
type Options struct {
	Plan    *matrix.Plan
	Results string // directory of the records
	Place   Place
	Harness string
	// Build is the name under which the requests of a scenario of the config are built.
	Build func(scenario string) string
	// Event is told what happens, from one goroutine; nil: nobody is.
	Event func(Event)
}

// Event is something that happened.
type Event struct {
	Kind   EventKind
	Group  *matrix.Group
	Cell   *matrix.Cell   // of cell events
	Repeat int            // of EventTurn, from 0
	Record *matrix.Record // of EventCell
	Facts  *Facts         // of EventUp
	Err    error          // of EventDown: why the server could not be had, or ended; nil when it was closed as planned
	Ended  int            // cells that have a record, of Total
	Total  int
}

// EventKind is what happened.
type EventKind string

// Kinds of events.
const (
	EventOpen EventKind = "open" // a server is about to be started
	EventUp   EventKind = "up"   // it answers
	EventTurn EventKind = "turn" // a cell is about to be asked
	EventCell EventKind = "cell" // a cell has its record
	EventDown EventKind = "down" // a server has ended
)

// Runner carries out a plan once. Its methods are for one goroutine.
type Runner struct {
	o     Options
	cells map[*matrix.Cell]*progress
	lacks map[lackKey]*lack
	total int
	ended int
	sum   Summary
}

// Summary is what the cells came to that have ended in this sitting.
type Summary struct {
	OK      int `json:"ok"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Kept    int `json:"kept"` // ok before
	Left    int `json:"left"` // not asked for
	Planned int `json:"planned"`
	// Unsupported need what the engine said that it lacks. They are no failures.
	Unsupported int `json:"unsupported"`
}

// progress is a cell that is being measured.
type progress struct {
	samples []*sample
	started time.Time
	ended   bool
}

// broken reports whether the last measuring had no answer at all. A refusal of what the model lacks is one.
func (p *progress) broken() bool {
	n := len(p.samples)
	return n > 0 && p.samples[n-1].ok == 0 && p.samples[n-1].lack == nil
}

// New prepares a runner.
func New(o Options) *Runner {
	r := &Runner{o: o, cells: map[*matrix.Cell]*progress{}, lacks: map[lackKey]*lack{}}
	n := o.Plan.Counts()
	r.total = n.Run + n.Skip
	r.sum = Summary{Kept: n.Keep, Left: n.Leave, Planned: n.Cells}
	if r.o.Event == nil {
		r.o.Event = func(Event) {}
	}
	return r
}

// Summary is what the cells came to so far.
func (r *Runner) Summary() Summary { return r.sum }

// Run carries out the plan. The error is why it did not come to its end, or that of a record which could not be written;
// cells that fail are no error. When ctx ends what runs is cut, and the servers are closed.
func (r *Runner) Run(ctx context.Context) error {
	if err := savePlan(r.o.Results, r.o.Plan); err != nil {
		return err
	}
	if err := r.skips(); err != nil {
		return err
	}
	for i := range r.o.Plan.Steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.step(ctx, &r.o.Plan.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// skips writes the records of the cells that the plan skips.
func (r *Runner) skips() error {
	for i := range r.o.Plan.Groups {
		g := &r.o.Plan.Groups[i]
		for j := range g.Cells {
			if c := &g.Cells[j]; c.Do == matrix.DoSkip {
				if err := r.put(g, c, matrix.NewRecord(r.o.Plan, g, c)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sitting is a server of a step.
type sitting struct {
	Sitting
	group  *matrix.Group
	suites []*replay.Suite // that were sent to it, in order
	warm   bool
}

// step opens the servers of a step, takes its turns, and closes them.
func (r *Runner) step(ctx context.Context, st *matrix.Step) (err error) {
	up := map[int]*sitting{}
	defer func() {
		for _, i := range st.Groups {
			if s := up[i]; s != nil {
				err = errors.Join(err, r.close(s, err))
			}
		}
	}()
	for _, i := range st.Groups {
		g := &r.o.Plan.Groups[i]
		if !r.wanted(st, i) {
			continue
		}
		s, openErr := r.open(ctx, g)
		if ctx.Err() != nil {
			if s != nil {
				up[i] = s
			}
			return context.Cause(ctx)
		}
		if openErr != nil {
			if err := r.lose(g, nil, openErr); err != nil {
				return err
			}
			continue
		}
		up[i] = s
	}
	for _, t := range st.Turns {
		if s := up[t.Group]; s != nil {
			if err := r.turn(ctx, s, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted reports whether a turn of the step is still to be taken: a server that failed in an earlier step is not started
// again for cells that have their records.
func (r *Runner) wanted(st *matrix.Step, group int) bool {
	for _, t := range st.Turns {
		if t.Group == group {
			if p := r.cells[&r.o.Plan.Groups[group].Cells[t.Cell]]; p == nil || !p.ended {
				return true
			}
		}
	}
	return false
}

func (r *Runner) open(ctx context.Context, g *matrix.Group) (*sitting, error) {
	r.o.Event(Event{Kind: EventOpen, Group: g, Ended: r.ended, Total: r.total})
	s, err := r.o.Place.Open(ctx, g)
	if err != nil {
		r.o.Event(Event{Kind: EventDown, Group: g, Err: err, Ended: r.ended, Total: r.total})
		return nil, err
	}
	out := &sitting{Sitting: s, group: g}
	r.o.Event(Event{Kind: EventUp, Group: g, Facts: s.Facts(), Ended: r.ended, Total: r.total})
	return out, nil
}

// close ends a server and its run. broken is why the step ended early.
func (r *Runner) close(s *sitting, broken error) error {
	gone := s.Gone(false)
	err := s.Close(func() exchange.Replay { return r.sent(s, broken) })
	r.o.Event(Event{Kind: EventDown, Group: s.group, Err: errors.Join(gone, err), Ended: r.ended, Total: r.total})
	if err != nil {
		return fmt.Errorf("close %s: %w", s.group.Name, err)
	}
	return nil
}

// sent is what was sent to a server, as its run keeps it.
func (r *Runner) sent(s *sitting, broken error) exchange.Replay {
	out := s.Tally().Report(s.suites, broken)
	out.Workload, out.Plan, out.Source = r.o.Plan.Hash, r.o.Plan.Hash, "benchmark"
	out.Settings = exchange.ReplaySettings{Targets: 1, Repeats: 1, Warmup: out.Items.Warmups}
	for i := range out.Waves {
		out.Settings.Concurrency = max(out.Settings.Concurrency, out.Waves[i].Streams)
	}
	return out
}

// lose gives the cells of a group that have none the record of a server that is not there. s is nil where it never was.
func (r *Runner) lose(g *matrix.Group, s *sitting, why error) error {
	var not *NotHere
	for j := range g.Cells {
		c := &g.Cells[j]
		if p := r.cells[c]; c.Do != matrix.DoRun || p != nil && p.ended {
			continue
		}
		rec := r.soFar(g, c)
		rec.Status, rec.Detail = matrix.StatusFail, why.Error()
		if errors.As(why, &not) {
			rec.SkipWith(not.Skip)
		}
		if s != nil {
			about(&rec, s.Facts())
		}
		if err := r.put(g, c, rec); err != nil {
			return err
		}
	}
	return nil
}

// soFar is the record of a cell that was not measured to its end: with the exchanges that it has, and what they came to.
func (r *Runner) soFar(g *matrix.Group, c *matrix.Cell) matrix.Record {
	if p := r.cells[c]; p != nil && len(p.samples) > 0 {
		rec := recordOf(r.o.Plan, g, c, p.samples)
		started := p.started
		rec.Started = &started
		return rec
	}
	return matrix.NewRecord(r.o.Plan, g, c)
}

// turn measures a cell once, and writes its record after the last time.
func (r *Runner) turn(ctx context.Context, s *sitting, t matrix.Turn) error {
	c := &s.group.Cells[t.Cell]
	p := r.cells[c]
	if p == nil {
		p = &progress{started: clock.Now()}
		r.cells[c] = p
	}
	if p.ended {
		return nil
	}
	a, err := s.ask(c, r.o.Build(c.Scenario))
	if err == nil && len(p.samples) == 0 {
		if l := r.withheld(s, a); l != nil {
			return r.without(s, c, l)
		}
	}
	r.o.Event(Event{Kind: EventTurn, Group: s.group, Cell: c, Repeat: t.Repeat, Ended: r.ended, Total: r.total})
	if err == nil {
		var one *sample
		if one, err = a.once(ctx, t.Repeat); one != nil {
			p.samples = append(p.samples, one)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if gone := s.Gone(err != nil || p.broken()); gone != nil {
		return r.lose(s.group, s, gone)
	}
	lack := lackIn(p.samples)
	if r.learn(s, lack); err == nil && len(p.samples) < c.Repeats && lack == nil {
		return nil
	}
	rec := recordOf(r.o.Plan, s.group, c, p.samples)
	var not *NotHere
	switch {
	case errors.As(err, &not):
		rec.SkipWith(not.Skip)
	case err != nil:
		rec.Status, rec.Detail = matrix.StatusFail, err.Error()
	}
	about(&rec, s.Facts())
	rec.Memory = s.Memory()
	started := p.started
	rec.Started = &started
	return r.put(s.group, c, rec)
}

// put writes a record, and counts it.
func (r *Runner) put(g *matrix.Group, c *matrix.Cell, rec matrix.Record) error {
	rec.Harness = r.o.Harness
	now := clock.Now()
	rec.Ended = &now
	if rec.Started == nil {
		rec.Started = &now
	}
	if err := matrix.WriteRecord(r.o.Results, &rec); err != nil {
		return roomFor(err)
	}
	if r.cells[c] == nil {
		r.cells[c] = &progress{}
	}
	r.cells[c].ended = true
	r.ended++
	switch rec.Status {
	case matrix.StatusOK:
		r.sum.OK++
	case matrix.StatusSkipped:
		r.sum.Skipped++
	case matrix.StatusUnsupported:
		r.sum.Unsupported++
	default:
		r.sum.Failed++
	}
	r.o.Event(Event{Kind: EventCell, Group: g, Cell: c, Record: &rec, Ended: r.ended, Total: r.total})
	return nil
}
