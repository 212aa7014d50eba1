package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
)

// replayCatalog reads what is known of engines, those of the config included.
func (p *program) replayCatalog(c *cli.Context, s *replaySettings) (err error) {
	s.bridge.catalog, err = p.catalog(c)
	return err
}

// openStore opens the store that takes the misses.
func (v *serving) openStore() (err error) {
	if v.store == nil {
		v.store, err = recorder.Open(v.s.store, recorder.Options{Sync: v.s.sync, Harness: version(), Host: thisHost().Fingerprint()})
	}
	return err
}

// openFront puts a proxy in front of the target, in memory, and gives the way to it. Only here does anything exist by which
// a request can leave.
func (v *serving) openFront() (func(context.Context) (net.Conn, error), error) {
	u := v.s.targets[0]
	o := v.s.upstream
	o.Name, o.URL, o.Credentials = u.name, u.url, u.credentials
	var err error
	if v.upstream, err = proxy.NewUpstream(o); err != nil {
		return nil, fmt.Errorf("--target: %w", err)
	}
	so := v.s.session
	so.Mode, so.Harness, so.Identity = "proxy", version(), identity(u.label)
	if v.s.onMiss == missRecord {
		if err := v.openRecord(&so); err != nil {
			return nil, err
		}
	} else {
		v.traceOnly(&so)
	}
	so.Tracer = v.tracer()
	v.session = proxy.NewSession(so)
	if v.front, err = proxy.NewServer(proxy.ServerOptions{Session: v.session, Upstream: v.upstream}); err != nil {
		return nil, err
	}
	v.inside = sim.NewPipeListener()
	return v.inside.Dial, nil
}

// openRecord opens what keeps the misses: the same as of a capture, so that both runs tell the same.
func (v *serving) openRecord(so *proxy.SessionOptions) (err error) {
	if err := v.openStore(); err != nil {
		return err
	}
	if v.s.identify {
		v.ident = newIdentifier(captureSettings{upstreams: v.s.targets, device: v.s.device, upstream: v.s.upstream}, v.s.bridge.catalog)
	}
	run := newRun("record", v.s.name, v.s.targets)
	run.MadeBy = redact.Args(v.env.Args)
	run.Labels, run.Identity, run.Serve = v.s.labels, so.Identity, v.rules()
	if v.writer, err = v.store.NewWriter(run, recorder.WriterOptions{Derive: v.derive, OnStored: v.learn,
		OnDropped: func(id exchange.ID, _ recorder.DropReason) { v.telling.tracing.Dropped(id) }}); err != nil {
		return err
	}
	so.Run, so.Mode, so.Sink = run.ID, run.Mode, v.telling.sink(v.writer)
	if v.ident != nil {
		v.counting = newCounting(watchedSink{next: so.Sink, seen: v.ident.seen})
		so.Sink = v.counting
	}
	return nil
}

// begin lets misses through and reads the engine behind them. A target that is this server itself would get each miss
// again, and again.
func (v *serving) begin() error {
	if v.front == nil {
		return nil
	}
	if u := v.s.targets[0]; leadsTo(u.url, v.server.addr) {
		return usagef("--target %s is the address of this server itself; name the engine's, or another --listen", redact.URL(u.url))
	}
	if v.ident != nil {
		v.counting.start(v.session)
		v.ident.start(v.session, v.describe)
	}
	v.wg.Go(func() {
		if err := v.front.Serve(v.inside); err != nil {
			v.failed <- err
		}
	})
	return nil
}

// derive makes the row of a miss.
func (v *serving) derive(x *exchange.Exchange) exchange.Summary {
	a := measure.Analyze(x)
	v.telling.measured(x, a)
	row := measure.Summarize(x, a)
	if v.ident == nil {
		return row
	}
	word := v.ident.answered(x, a.Request.Model, a.Transcript.Model)
	if word.First {
		v.writer.NameModel(exchange.ModelNamed{Upstream: x.Upstream, Asked: a.Request.Model, Named: a.Transcript.Model})
	}
	return row.WithFlags(word.Flags)
}

// describe keeps what was read of the engine with the run of misses, and tells it.
func (v *serving) describe(d exchange.Deployment) {
	if d.Why != exchange.ReadAtAnswer {
		v.counting.found(v.ident.counters(d), d.Upstream)
	}
	v.writer.Describe(d)
	if !v.s.quiet {
		note(v.env.Stderr, "%s", deploymentText(v.s.bridge.catalog, d))
	}
}

// rules are the matching rules as they stand with a run.
func (v *serving) rules() *exchange.Serve {
	r := &exchange.Serve{Source: v.named, Speed: v.s.what.Speed, Strict: v.s.what.Strict, Relax: []string{}}
	for _, rule := range v.s.what.Relax {
		r.Relax = append(r.Relax, rule.String())
	}
	return r
}

// learn makes a miss that was recorded an answer.
func (v *serving) learn(row exchange.Summary) {
	v.telling.tracing.Stored(&row)
	if err := v.standIn.Add(v.store, &row); err != nil {
		note(v.env.Stderr, "recorded miss %s: %v", row.ID, err)
	}
}

// Close ends the server, then what takes the misses, then the store.
func (v *serving) Close() error {
	var errs []error
	if v.server != nil {
		errs = append(errs, v.server.Close())
	}
	if v.front != nil {
		errs = append(errs, v.front.Close(), v.inside.Close())
	}
	v.wg.Wait()
	if v.ident != nil && v.ident.session != nil {
		v.ident.Close()
		v.counting.Close()
	}
	if v.upstream != nil {
		errs = append(errs, v.upstream.Close())
	}
	if v.meter != nil {
		v.meter.Close()
	}
	served := exchange.Run{Name: v.named, State: exchange.RunComplete}
	if v.writer != nil {
		run, err := v.writer.Close(context.Background())
		served, errs = run, append(errs, err)
	}
	v.endTrace(served)
	v.closeReading()
	if v.store != nil {
		errs = append(errs, v.store.Close())
	}
	return errors.Join(errs...)
}
