package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/test/load/rig"
)

// idHeader is where rig.ByID finds the id of a request.
const idHeader = "X-Request-Id"

// config says what is played.
type config struct {
	binary  string // benchproxy
	streams int    // at the same time
	events  int    // of each
	rate    int    // events a second of each
	rounds  int    // of each kind of stamps
	busy    bool   // keep every core busy meanwhile
}

// player plays the streams.
type player struct {
	cfg     config
	engine  *rig.Engine
	session *proxy.Session
	serial  int // of requests
}

// measure plays all rounds and gives the kernel's stamps and those of the reads.
func measure(ctx context.Context, cfg config) ([]*side, error) {
	engine, err := rig.StartEngine(ctx, cfg.binary)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	if cfg.busy {
		for range runtime.NumCPU() {
			burner, err := rig.Start("/bin/sh", "-c", "while :; do :; done")
			if err != nil {
				return nil, err
			}
			defer burner.Close()
		}
	}
	p := &player{cfg: cfg, engine: engine, session: proxy.NewSession(proxy.SessionOptions{Mode: "bench"})}
	sides := []*side{
		{Name: "kernel", Clocks: map[exchange.StampClock]int{}},
		{Name: "read", Clocks: map[exchange.StampClock]int{}},
	}
	for range cfg.rounds {
		for _, s := range sides {
			if err := p.round(ctx, s); err != nil {
				return nil, fmt.Errorf("play %d streams with %s stamps: %w", cfg.streams, s.Name, err)
			}
		}
	}
	for _, s := range sides {
		s.derive()
	}
	return sides, nil
}

// round plays every stream once.
func (p *player) round(ctx context.Context, s *side) error {
	up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: "engine", URL: p.engine.URL, ReadStamps: s.Name == "read"})
	if err != nil {
		return err
	}
	defer func() { _ = up.Close() }() // nothing runs on it
	answers := make([]*exchange.Exchange, p.cfg.streams)
	first := p.serial
	p.serial += len(answers)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = p.session.Do(ctx, up, p.call(first+i, i), io.Discard) })
	}
	wg.Wait()
	truth, err := p.engine.Truth(ctx, false)
	if err != nil {
		return err
	}
	if err := p.engine.Forget(ctx); err != nil {
		return err
	}
	byID := rig.ByID(truth)
	for i, x := range answers {
		rec, ok := byID[id(first+i)]
		n := len(rec.Writes)
		if !ok || x.End != exchange.EndEOF || n == 0 || int64(rec.Writes[n-1].Body) != x.Response.Body.Size {
			return fmt.Errorf("stream %d ended as %s with %d bytes, cause %+v", first+i, x.End, x.Response.Body.Size, x.Cause)
		}
		s.add(x, rec)
	}
	return nil
}

func id(n int) string { return fmt.Sprintf("stamp-%d", n) }

// call is the request of a stream. The streams begin spread over one gap between two events, so that the engine has no
// more to do at one moment than at another.
func (p *player) call(n, stream int) proxy.Call {
	gap := time.Second / time.Duration(p.cfg.rate)
	ask := rig.Ask{ID: id(n), Prompt: "How late are you?", Stream: true, Sim: fmt.Sprintf("ttft=%s; decode=%d; answer=%d",
		300*time.Millisecond+gap*time.Duration(stream)/time.Duration(p.cfg.streams), p.cfg.rate, p.cfg.events)}
	return proxy.Call{
		Method: "POST", Target: "/v1/chat/completions",
		Headers: []exchange.Header{
			{Name: "Content-Type", Value: "application/json"}, {Name: idHeader, Value: ask.ID}, {Name: "X-Sim", Value: ask.Sim},
		},
		Body: []byte(ask.Body()),
	}
}
