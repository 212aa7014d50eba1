package replay

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// warmUp sends requests before the first wave, so that what an engine does at its first request is in no case. What comes
// of them does not matter.
func (r *suiteRun) warmUp() error {
	for n := range r.o.Warmup {
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		d, err := r.warmDraft(n)
		if err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		r.warm(n, d)
	}
	return nil
}

// warm sends one of them. An engine that is still loading is waited for; what it teaches here costs no case a request, and is
// not sent again.
func (r *suiteRun) warm(n int, d *draft) {
	waits := 0
	for attempt := 0; ; attempt++ {
		call := d.call()
		call.Cell = r.o.Cell
		call.Item = &exchange.PlanItem{Item: "warmup", Turns: 1, Repeat: n, Attempt: attempt, Warmup: true}
		x := r.do(call)
		r.mu.Lock()
		r.warmed = append(r.warmed, x.ID)
		r.mu.Unlock()
		if r.lessons.learn(0, d, x) || !r.again(d, x, &waits) {
			return
		}
	}
}

// warmDraft is one word, or the first request of the first case under another nonce: of the same shape, and nothing of it in a cache.
func (r *suiteRun) warmDraft(n int) (*draft, error) {
	if !r.o.WarmLike {
		req := scenario.Warmup(r.o.Options)
		it := &Item{ID: "warmup", Method: req.Method, Target: req.Path, Body: req.Body, Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}}}
		return r.o.Changes.draftOf(it, 0, "", exchange.Header{})
	}
	c := r.waves[0][0]
	o := r.options(c.Member)
	o.Nonce = tokenOf(r.o.Salt, "warm-up "+strconv.Itoa(n))
	req, err := c.Request(o, nil)
	if err != nil {
		return nil, err
	}
	it := c.item(req)
	it.ID, it.Conversation = "warmup", ""
	if it.Body, err = r.o.Spelling.spell(req, r.o.Options.Stream && !c.Blocking); err != nil {
		return nil, err
	}
	return r.o.Changes.draftOf(it, 0, "", exchange.Header{})
}

// wallOf is the time from the first byte of the first request to the end of the last answer; false when there was none.
func wallOf(cases ...*SuiteCase) (time.Duration, bool) {
	var from, to time.Time
	for _, c := range cases {
		for _, x := range c.Exchanges {
			if ns, sent := x.Timeline.SendStart.NS(); sent {
				if at := x.Timeline.Wall.Add(time.Duration(ns)); from.IsZero() || at.Before(from) {
					from = at
				}
			}
			if ns, ended := x.Timeline.BodyEnd.NS(); ended {
				if at := x.Timeline.Wall.Add(time.Duration(ns)); at.After(to) {
					to = at
				}
			}
		}
	}
	if from.IsZero() || to.Before(from) {
		return 0, false
	}
	return to.Sub(from), true
}
