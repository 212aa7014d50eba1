package main

import (
	"context"
	"fmt"
	"time"

	"github.com/benchproxy/benchproxy/test/load/rig"
)

// rest is how long idle streams are left alone before memory is read.
const rest = 2 * time.Second

// memoryRow is the memory that an idle stream takes.
type memoryRow struct {
	Target    string  `json:"target"`
	Streams   int     `json:"streams"`
	PerStream float64 `json:"bytes_per_stream"` // resident
	Failed    int     `json:"failed"`
}

// memory measures on fresh processes: one that has worked holds memory that streams would take again unseen.
func (b *bench) memory(ctx context.Context, r *report) error {
	b.note("memory of idle streams")
	for _, name := range b.cfg.targets[1:] {
		t, err := b.open(ctx, name)
		if err != nil {
			return err
		}
		row, err := b.idle(t)
		t.Close()
		if err != nil {
			return fmt.Errorf("measure idle streams of %s: %w", name, err)
		}
		r.Memory = append(r.Memory, row)
	}
	return nil
}

// idle opens streams that have said their first event and then nothing.
func (b *bench) idle(t *target) (memoryRow, error) {
	row := memoryRow{Target: t.name, Streams: b.cfg.streams}
	p := &playing{scenario: scenario{clients: b.cfg.streams, large: true}, target: t}
	defer p.Close()
	warm := rig.NewClient(t.addr)
	defer warm.Close()
	if _, err := warm.Do(rig.Ask{ID: "warm", Prompt: "warm up", Stream: true, Sim: "answer=1"}.Bytes()); err != nil {
		return row, err
	}
	time.Sleep(rest)
	before, err := t.resident()
	if err != nil {
		return row, err
	}
	if err := p.warm(); err != nil {
		return row, err
	}
	for i, c := range p.clients {
		a := rig.Ask{ID: fmt.Sprint("idle-", i), Prompt: "a client that waits", Stream: true, Sim: "early_role=1; ttft=1h; answer=1"}
		if err := c.Send(a.Bytes()); err != nil {
			return row, err
		}
	}
	for _, c := range p.clients {
		for len(c.Answer().Body) == 0 {
			if _, err := c.Read(); err != nil {
				row.Failed++
				break
			}
		}
	}
	time.Sleep(rest)
	after, err := t.resident()
	row.PerStream = float64(after-before) / float64(b.cfg.streams)
	return row, err
}
