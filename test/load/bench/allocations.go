package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/benchproxy/benchproxy/test/load/rig"
)

// The work that allocations are counted over. Streams come in two lengths: their difference is the cost of events alone.
const (
	countRequests = 400
	countStreams  = 12
	shortStream   = 10
	longStream    = 310
	countPace     = "decode=2000" // each event in a read of its own
)

// allocationRow is what one target allocates, without what the client allocates for the same.
type allocationRow struct {
	Target          string  `json:"target"`
	PerRequest      float64 `json:"per_request"` // of a small JSON request
	BytesPerRequest float64 `json:"bytes_per_request"`
	PerEvent        float64 `json:"per_event"`
	BytesPerEvent   float64 `json:"bytes_per_event"`
}

// allocations counts in this process, by runtime.MemStats: a process of its own would not tell.
func (b *bench) allocations(ctx context.Context, r *report) error {
	b.note("allocations")
	var client allocationRow
	for _, name := range b.cfg.targets {
		if !slices.Contains(insideNames, name) {
			continue
		}
		in, err := openInside(name, b.engine.URL, filepath.Join(b.dir, "inside"))
		if err != nil {
			return err
		}
		row, err := in.count(ctx)
		if err := errors.Join(err, in.Close()); err != nil {
			return fmt.Errorf("count allocations of %s: %w", name, err)
		}
		if row.Target = name; name == direct {
			client = row
			continue
		}
		row.PerRequest -= client.PerRequest
		row.BytesPerRequest -= client.BytesPerRequest
		row.PerEvent -= client.PerEvent
		row.BytesPerEvent -= client.BytesPerEvent
		r.Allocations = append(r.Allocations, row)
	}
	return nil
}

func (in *inside) count(ctx context.Context) (allocationRow, error) {
	var row allocationRow
	c := rig.NewClient(in.addr)
	defer c.Close()
	batch := func(n int, stream bool, sim string) (objects, bytes float64, err error) {
		return in.allocated(ctx, c, rig.Ask{ID: "count", Prompt: "What does this allocate?", Stream: stream, Sim: sim}, n)
	}
	if _, _, err := batch(countRequests, false, "answer=64"); err != nil { // pools fill
		return row, err
	}
	n, size, err := batch(countRequests, false, "answer=64")
	if err != nil {
		return row, err
	}
	row.PerRequest, row.BytesPerRequest = n/countRequests, size/countRequests
	longPace, shortPace := fmt.Sprintf("%s; answer=%d", countPace, longStream), fmt.Sprintf("%s; answer=%d", countPace, shortStream)
	if _, _, err := batch(1, true, longPace); err != nil {
		return row, err
	}
	long, longSize, err := batch(countStreams, true, longPace)
	if err != nil {
		return row, err
	}
	short, shortSize, err := batch(countStreams, true, shortPace)
	if err != nil {
		return row, err
	}
	const events = countStreams * (longStream - shortStream)
	row.PerEvent, row.BytesPerEvent = (long-short)/events, (longSize-shortSize)/events
	return row, nil
}

// allocated makes a request n times and gives what this process allocated until all of it was recorded.
func (in *inside) allocated(ctx context.Context, c *rig.Client, a rig.Ask, n int) (objects, bytes float64, err error) {
	request := a.Bytes()
	goal := in.stored.Load() + int64(n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if _, err := c.Do(request); err != nil {
			return 0, 0, err
		}
	}
	if in.writer != nil {
		if err := rig.Poll(ctx, func() (bool, error) { return in.stored.Load() >= goal, nil }); err != nil {
			return 0, 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs), float64(after.TotalAlloc - before.TotalAlloc), nil
}
