package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/test/load/rig"
)

const (
	leavers = 64              // clients that leave, on each target
	missed  = 2 * time.Second // an engine that did not hear by then never will
)

// gone measures how long the engine works on after its client left in the middle of a stream.
func (b *bench) gone(ctx context.Context, r *report) error {
	b.note("clients that leave")
	for _, t := range b.targets {
		if err := b.engine.Forget(ctx); err != nil {
			return err
		}
		l := leaving{addr: t.addr, left: make([]int64, leavers), errs: make([]error, leavers)}
		l.run()
		var truth map[string]sim.Record
		deadline, cancel := context.WithTimeout(ctx, missed)
		_ = rig.Poll(deadline, func() (bool, error) { // those that did not end by then are counted
			all, err := b.engine.Truth(ctx, false)
			truth = rig.ByID(all)
			return err != nil || sim.Ended(leavers)(all), err
		})
		cancel()
		r.Gone = append(r.Gone, l.row(t.name, truth))
	}
	return nil
}

// leaving is a set of clients that leave.
type leaving struct {
	addr string
	left []int64 // Unix ns, each client's close
	errs []error
}

func (l *leaving) run() {
	var wg sync.WaitGroup
	for i := range l.left {
		wg.Go(func() { l.left[i], l.errs[i] = leave(l.addr, i) })
	}
	wg.Wait()
}

// leave starts a long stream, and goes some events later.
func leave(addr string, i int) (at int64, err error) {
	c := rig.NewClient(addr)
	defer c.Close()
	a := rig.Ask{ID: fmt.Sprint("leave-", i), Prompt: fmt.Sprint("client that leaves ", i), Stream: true, Sim: "decode=20; answer=2000; jitter=0.5"}
	if err := c.Send(a.Bytes()); err != nil {
		return 0, err
	}
	for range 4 + i%16 {
		if _, err := c.Read(); err != nil {
			return 0, err
		}
	}
	return time.Now().UnixNano(), nil // and the connection ends
}

// goneRow is how soon the engine heard.
type goneRow struct {
	Target string   `json:"target"`
	N      int      `json:"n"`
	P50    *float64 `json:"p50_ms"` // null when it never heard
	Max    *float64 `json:"max_ms"`
	Missed int      `json:"missed"` // it never heard, or the stream failed before
}

func (l *leaving) row(name string, truth map[string]sim.Record) goneRow {
	row := goneRow{Target: name, N: len(l.left)}
	var ms []float64
	for i, at := range l.left {
		r, ok := truth[fmt.Sprint("leave-", i)]
		if l.errs[i] != nil || !ok || r.Ended != sim.EndedGone || r.Gone == 0 {
			row.Missed++
			continue
		}
		ms = append(ms, float64(r.Wall+r.Gone-at)/1e6)
	}
	slices.Sort(ms)
	if len(ms) > 0 {
		row.P50, row.Max = quantile(ms, 0.5), quantile(ms, 1)
	}
	return row
}
