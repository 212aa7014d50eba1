package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/proxy"
)

// lastReading is how long the end of a capture waits for an engine that was never read.
const lastReading = 2 * time.Second

// identifier reads what answers behind the upstreams of a capture: once at the start, and again when an engine was away
// and came back. It asks only while no exchange runs, and takes a probe back as soon as one begins.
type identifier struct {
	catalog *engines.Catalog
	session *proxy.Session
	targets []*identified
	told    func(exchange.Deployment) // may be called from any goroutine
	models  engines.ModelWatch
	wake    chan struct{} // a target waits to be read
	last    chan struct{} // closed when the capture ends
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// identified is one upstream of an identifier.
type identified struct {
	name    string
	url     string
	do      engines.Doer
	options engines.Options
	away    atomic.Bool // the last that was seen of it was a connection that failed
	pending atomic.Bool
	why     atomic.Pointer[string] // start, then restart
}

// newIdentifier prepares the upstreams that are to be identified; it does nothing until start.
func newIdentifier(s captureSettings, catalog *engines.Catalog) *identifier {
	i := &identifier{catalog: catalog, wake: make(chan struct{}, 1), last: make(chan struct{})}
	for _, u := range s.upstreams {
		o := engines.Options{Label: u.label, Model: u.model, Requested: s.device, Turn: i.turn, Traffic: i.traffic}
		if credentials := u.credentials; credentials != nil {
			o.Headers = credentials()
		}
		url, client := probeAddress(u.url, s.upstream)
		t := &identified{name: u.name, url: url, do: engines.Client(client), options: o}
		why := exchange.ReadAtStart
		t.why.Store(&why)
		t.pending.Store(true)
		i.targets = append(i.targets, t)
	}
	return i
}

// start begins to read. told gets each reading.
func (i *identifier) start(session *proxy.Session, told func(exchange.Deployment)) {
	i.session, i.told = session, told
	ctx, cancel := context.WithCancel(context.Background())
	i.cancel = cancel
	i.wg.Go(func() { i.Run(ctx) })
}

// Run reads the targets that wait, until ctx ends.
func (i *identifier) Run(ctx context.Context) {
	for {
		for _, t := range i.targets {
			if t.pending.CompareAndSwap(true, false) {
				i.read(ctx, t)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-i.last:
			return
		case <-i.wake:
		}
	}
}

// read identifies one target. An engine that cannot be reached counts as away: it is read when it has answered a client.
func (i *identifier) read(ctx context.Context, t *identified) {
	d, err := i.catalog.Identify(ctx, t.do, t.url, t.options)
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, exchange.ErrUnreachable):
		t.away.Store(true)
		return
	case err != nil && d.Engine == engines.Unknown:
		return
	}
	d.Upstream, d.Why = t.name, *t.why.Load()
	again := exchange.ReadAtRestart
	t.why.Store(&again)
	if i.catalog.NamesModels(d) {
		i.models.Expect(d)
	}
	i.session.SetIdentity(t.name, d.Identity)
	i.told(d)
}

// turn waits until no exchange runs. The context it gives ends the moment one begins.
func (i *identifier) turn(ctx context.Context) (context.Context, context.CancelFunc, error) {
	idle, changed := i.session.Idle()
	for !idle {
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-changed:
			idle, changed = i.session.Idle()
		}
	}
	probe, cancel := context.WithCancelCause(ctx)
	i.wg.Go(func() {
		select {
		case <-probe.Done():
		case <-changed:
			cancel(engines.ErrWithdrawn)
		}
	})
	return probe, func() { cancel(context.Canceled) }, ctx.Err()
}

// traffic reports whether requests came through already.
func (i *identifier) traffic() bool { return i.session.Stats().Accepted > 0 }

// seen takes an exchange that has ended. An engine that answers after it was away is read again.
func (i *identifier) seen(x *exchange.Exchange) {
	for _, t := range i.targets {
		if t.name != x.Upstream {
			continue
		}
		switch x.End {
		case exchange.EndConnectFailed, exchange.EndReset, exchange.EndShort:
			t.away.Store(true)
		case exchange.EndEOF:
			if t.away.CompareAndSwap(true, false) {
				t.pending.Store(true)
				mark(i.wake)
			}
		}
	}
}

// mark puts a mark in a channel that holds one.
func mark(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// answered compares the model that an answer names with the one named before, tells a change, and gives what it says.
func (i *identifier) answered(x *exchange.Exchange, asked, model string) engines.ModelWord {
	word := i.models.Observe(engines.AnsweredBy(x, asked, model))
	if word.Before != "" {
		i.told(exchange.Deployment{Upstream: x.Upstream, ReadAt: clock.Now().UTC().Round(0), Why: exchange.ReadAtAnswer, Identity: x.Identity,
			Model: &model, Evidence: fmt.Sprintf("exchange %s names %q; before, the model was %q", x.ID, model, word.Before)})
	}
	return word
}

// counters is where the engine of a reading counts its drafts; nil when it is not known to.
func (i *identifier) counters(d exchange.Deployment) *counterSource {
	for _, t := range i.targets {
		if t.name == d.Upstream {
			return newCounterSource(i.catalog, t, d)
		}
	}
	return nil
}

// Close ends the reading. A first reading that waits for its turn has a moment: nothing runs any more.
func (i *identifier) Close() {
	close(i.last)
	done := make(chan struct{})
	go func() {
		i.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(lastReading):
	}
	i.cancel()
	<-done
}

// watchedSink hands exchanges on and tells of each.
type watchedSink struct {
	next proxy.Sink
	seen func(*exchange.Exchange)
}

// Offer is the next sink's.
func (s watchedSink) Offer(x *exchange.Exchange) bool {
	s.seen(x)
	return s.next.Offer(x)
}

// deploymentText is a deployment in one line, for people. What is not known is left out.
func deploymentText(c *engines.Catalog, d exchange.Deployment) string {
	if d.Why == exchange.ReadAtAnswer {
		return fmt.Sprintf("%s: the served model changed: %s", d.Upstream, redact.Text(d.Evidence))
	}
	if d.Why == exchange.ReadOfFile && d.WeightsDigest != nil {
		return fmt.Sprintf("%s: weights %s, %s", d.Upstream, printable(d.Weights.Name), *d.WeightsDigest)
	}
	parts := []string{engineText(c, d.Identity)}
	if d.Inner != nil {
		parts[0] += " in front of " + engineText(c, *d.Inner)
	}
	for _, p := range []struct {
		name  string
		value *string
	}{{"model", d.Model}, {"", d.Quantization}, {"on", d.ObservedDevice}} {
		if p.value != nil {
			parts = append(parts, strings.TrimSpace(p.name+" "+*p.value))
		}
	}
	if d.Window != nil {
		parts = append(parts, fmt.Sprintf("window %d", *d.Window))
	}
	if d.Slots != nil {
		parts = append(parts, fmt.Sprintf("%d slots", *d.Slots))
	}
	if d.CPUFallback {
		parts = append(parts, "a GPU was asked for")
	}
	text := d.Upstream + ": " + printable(strings.Join(parts, ", "))
	if d.Why == exchange.ReadAtRestart {
		text += " (read again: it had been away)"
	}
	return text
}

// engineText is an engine's name and version, for people.
func engineText(c *engines.Catalog, id exchange.Identity) string {
	name := id.Engine
	if p, ok := c.Lookup(name); ok {
		name = p.Name
	}
	if name == engines.Unknown {
		return "an engine that could not be recognized"
	}
	return strings.TrimSpace(name + " " + id.Version)
}
