package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/web"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
)

// captureSettings are what record, proxy and demo want of a capture, read from flags or made up.
type captureSettings struct {
	upstreams      []upstream
	listen         string
	listenExplicit bool
	admin          string // "off" for none
	adminKey       string // that its readers must send, "" for none
	adminExplicit  bool
	traceURL       string // where a trace can be looked at, "" for nowhere
	store          string // directory; "" only measures
	sync           bool
	keep           recorder.Retention // limits of the store while it is recorded into
	queue          int64
	run            exchange.Run
	identify       bool   // read what answers behind the upstreams
	device         string // what the user asked the engine to run on
	weights        []modelFile
	catalog        *engines.Catalog // nil: the profiles of this program
	launch         *launch.Spec     // engine to start behind the only upstream; nil: it runs
	daemon         *daemonSettings  // engine that runs as a daemon, in the place of launch; nil: none
	launched       *launched        // that engine, once it is ready
	form           boardForm
	drain          time.Duration
	session        proxy.SessionOptions
	server         proxy.ServerOptions   // without session and upstream
	upstream       proxy.UpstreamOptions // without name and URL
}

// capture is a running proxy with all that stands around it.
type capture struct {
	s         captureSettings
	env       env
	listeners []net.Listener
	adminLn   net.Listener
	admin     *web.Server
	store     *recorder.Store
	writer    *recorder.Writer
	meter     *meter
	session   *proxy.Session
	ups       []*proxy.Upstream
	servers   []*proxy.Server
	board     *board
	live      *web.Live
	catalog   *engines.Catalog
	ident     *identifier // nil: nobody is asked
	counting  *counting   // nil: as ident
	keeper    *keeper     // nil: nothing is kept
	weigher   *weigher    // nil: no model file was named
	telling   telling
	failed    chan error // a listener that stopped by itself
	stopBoard context.CancelFunc
	boardEnd  sync.WaitGroup
	wg        sync.WaitGroup
}

// startCapture opens listeners and store and begins to serve. On an error nothing is left open.
func startCapture(e env, s captureSettings) (*capture, error) {
	holdPipes()
	c := &capture{s: s, env: e, failed: make(chan error, len(s.upstreams)+1)}
	for _, step := range []func() error{c.openUpstreams, c.listen, c.refuseLoops, c.openIdentifier, c.openStore, c.openServers} {
		if err := step(); err != nil {
			c.abandon()
			return nil, err
		}
	}
	c.serve()
	return c, nil
}

// holdPipes lets a write fail whose reader has gone, as in "record | head". By default it would end the process, and with
// it every stream. Clients that we start get the default again.
func holdPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func (c *capture) openUpstreams() error {
	for _, u := range c.s.upstreams {
		o := c.s.upstream
		o.Name, o.URL, o.Credentials = u.name, u.url, u.credentials
		up, err := proxy.NewUpstream(o)
		if err != nil {
			return fmt.Errorf("--upstream: %w", err)
		}
		c.ups = append(c.ups, up)
	}
	return nil
}

func (c *capture) listen() error {
	addr, explicit := c.s.listen, c.s.listenExplicit
	for range c.s.upstreams {
		ln, err := listen(addr, explicit)
		if err != nil {
			return err
		}
		c.listeners = append(c.listeners, ln)
		addr, explicit = nextPort(ln), false
		if strings.HasSuffix(c.s.listen, ":0") {
			addr = c.s.listen
		}
	}
	if c.s.admin == adminOff {
		return nil
	}
	ln, err := listen(c.s.admin, c.s.adminExplicit)
	c.adminLn = ln
	return err
}

// refuseLoops refuses an upstream that is one of our own listeners: each request would become the next one.
func (c *capture) refuseLoops() error {
	for _, u := range c.s.upstreams {
		for _, ln := range append(slices.Clone(c.listeners), c.adminLn) {
			if ln != nil && leadsTo(u.url, ln.Addr()) {
				return usagef("--upstream %s is the address of this proxy itself; name the engine's, or another --listen", redact.URL(u.url))
			}
		}
	}
	return nil
}

func (c *capture) openIdentifier() (err error) {
	c.catalog = c.s.catalog
	if c.catalog == nil {
		if c.catalog, err = engines.Builtin(); err != nil {
			return err
		}
	}
	if c.s.identify {
		c.ident = newIdentifier(c.s, c.catalog)
	}
	return nil
}

// openStore opens the store and the run; without a store a meter derives the same rows and keeps nothing.
func (c *capture) openStore() error {
	c.board = newBoard(c.env, c.s.form, func() []string { return runningLines(c.live) })
	if err := c.openTelling(); err != nil {
		return err
	}
	if c.s.store == "" {
		c.meter = newMeter(c.derive, func(row exchange.Summary) {
			c.telling.tracing.Unrecorded(row.ID)
			c.board.Row(row)
		})
		c.s.session.Sink = c.watched(c.telling.sink(c.meter))
		return nil
	}
	admin := ""
	if c.adminLn != nil {
		admin = c.adminLn.Addr().String()
	}
	var err error
	c.store, err = recorder.Open(c.s.store, recorder.Options{
		Sync: c.s.sync, Admin: admin, Harness: version(), Host: thisHost().Fingerprint(),
		Log: slog.New(slog.NewTextHandler(c.board, nil)),
	})
	if err != nil {
		return err
	}
	c.writer, err = c.store.NewWriter(c.s.run, recorder.WriterOptions{QueueBytes: c.s.queue, Derive: c.derive,
		OnStored: func(row exchange.Summary) {
			c.telling.tracing.Stored(&row)
			c.stored(row)
		},
		OnDropped: func(id exchange.ID, _ recorder.DropReason) { c.telling.tracing.Dropped(id) },
	})
	if err != nil {
		return err
	}
	c.s.session.Sink = c.watched(c.telling.sink(c.writer))
	if len(c.s.weights) > 0 {
		c.weigher = newWeigher(c.s.weights, c.s.session.Identity)
		c.weigher.known, c.weigher.told, c.weigher.warn = c.store, c.keep, c.board.Note
	}
	return nil
}

// watched lets the identifier see what ends, and keeps the engine's counters with what ran alone.
func (c *capture) watched(s proxy.Sink) proxy.Sink {
	if c.ident == nil {
		return s
	}
	c.counting = newCounting(watchedSink{next: s, seen: c.ident.seen})
	return c.counting
}

// derive makes the row of an exchange.
func (c *capture) derive(x *exchange.Exchange) exchange.Summary {
	a := measure.Analyze(x)
	c.telling.measured(x, a)
	row := measure.Summarize(x, a)
	if c.ident != nil {
		word := c.ident.answered(x, a.Request.Model, a.Transcript.Model)
		if word.First && c.writer != nil {
			c.writer.NameModel(exchange.ModelNamed{Upstream: x.Upstream, Asked: a.Request.Model, Named: a.Transcript.Model})
		}
		row = row.WithFlags(word.Flags)
	}
	c.live.End(x, a.Transcript, row)
	return row
}

// stored shows an exchange that is in the store.
func (c *capture) stored(row exchange.Summary) {
	c.board.Row(row)
	if c.admin != nil {
		c.admin.Stored(row)
	}
}

// describe keeps what was read of an engine with the run, with what its model file states, and tells it.
func (c *capture) describe(d exchange.Deployment) {
	if c.s.launched != nil {
		d = c.s.launched.observe(d)
	}
	if c.weigher != nil {
		d = c.weigher.attach(d)
	}
	if c.counting != nil && d.Why != exchange.ReadAtAnswer {
		c.counting.found(c.ident.counters(d), d.Upstream)
	}
	c.keep(d)
}

func (c *capture) keep(d exchange.Deployment) {
	c.live.Describe(d)
	if c.writer != nil {
		c.writer.Describe(d)
	}
	if c.s.form != boardQuiet {
		c.board.Note("%s", deploymentText(c.catalog, d))
	}
}

func (c *capture) openServers() error {
	o := c.s.session
	o.Run, o.Mode, o.Harness, o.Tracer = c.s.run.ID, c.s.run.Mode, version(), c.telling.tracer()
	c.session = proxy.NewSession(o)
	c.live = web.NewLive(c.session.Live)
	for _, u := range c.s.upstreams {
		c.live.Upstreams(u.name)
	}
	if c.adminLn != nil {
		c.admin = web.NewServer(c.adminOptions()) // it must be there before the first exchange is stored
	}
	for _, up := range c.ups {
		so := c.s.server
		so.Session, so.Upstream = c.session, up
		srv, err := proxy.NewServer(so)
		if err != nil {
			return err
		}
		c.servers = append(c.servers, srv)
	}
	return nil
}

// serve starts the goroutines; Close ends them.
func (c *capture) serve() {
	if c.ident != nil {
		c.counting.start(c.session)
		c.ident.start(c.session, c.describe)
	}
	if c.weigher != nil {
		c.weigher.start(c.ident != nil)
	}
	if c.store != nil {
		c.keeper = startKeeper(c.store, c.s.keep, c.board.Note)
	}
	for i, srv := range c.servers {
		c.wg.Go(func() {
			if err := srv.Serve(c.listeners[i]); err != nil {
				c.failed <- err
			}
		})
	}
	if c.adminLn != nil {
		c.wg.Go(func() {
			if err := c.admin.Serve(c.adminLn); err != nil {
				c.failed <- err
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stopBoard = cancel
	c.boardEnd.Go(func() { c.board.Run(ctx) })
}

func (c *capture) adminOptions() web.Options {
	o := web.Options{Health: c.health, Key: c.s.adminKey, Live: c.live, TraceURL: c.s.traceURL}
	o.Metrics = c.metricsHandler()
	if c.store != nil {
		o.Store = c.store
		o.Stats = func() (any, error) { return c.store.Stats() }
		o.Check = func(ctx context.Context) (any, error) { return c.store.Check(ctx) }
	}
	return o
}

func (c *capture) health() any {
	doc := web.Health{Schema: 1, Status: "ok", Version: version(), Proxy: c.session.Stats()}
	if c.writer != nil {
		h := c.writer.Health()
		run := c.writer.Run()
		doc.Run, doc.Recorder = &run, &h
		if h.Degraded != "" {
			doc.Status, doc.Reason = "degraded", h.Degraded
		}
	}
	return doc
}

// base is the URL clients of the first listener use.
func (c *capture) base(i int) string {
	scheme := "http://"
	if c.s.server.TLS != nil {
		scheme = "https://"
	}
	return scheme + c.listeners[i].Addr().String()
}

// Close drains the running exchanges, at most for the drain time or until a signal comes, then closes the run and the
// store. The run it returns is as it was closed; without a store it is nil.
func (c *capture) Close(signals <-chan os.Signal) (*exchange.Run, error) {
	hurry, hurryUp := context.WithCancel(context.Background())
	defer hurryUp()
	ctx, cancel := context.WithTimeout(hurry, c.s.drain)
	defer cancel()
	stop := make(chan struct{})
	c.wg.Go(func() {
		select {
		case <-signals:
			hurryUp() // a second signal does not wait
		case <-stop:
		}
	})
	errs := make([]error, len(c.servers))
	var ends sync.WaitGroup
	for i, srv := range c.servers { // all at once: none may take new requests, or lose its time, while another drains
		ends.Go(func() { errs[i] = c.drained(srv.Shutdown(ctx)) })
	}
	ends.Wait()
	c.closeReaders(hurry)
	close(stop)
	for _, up := range c.ups {
		errs = append(errs, up.Close())
	}
	var run *exchange.Run
	if c.meter != nil {
		c.meter.Close()
	}
	if c.writer != nil {
		r, err := c.writer.Close(context.Background())
		run, errs = &r, append(errs, err)
	}
	if c.admin != nil {
		errs = append(errs, c.admin.Close())
	}
	c.wg.Wait()
	if c.store != nil {
		errs = append(errs, c.store.Close())
	}
	c.telling.Close()
	c.stopBoard() // last: the output may hold it up, and nothing else
	c.boardEnd.Wait()
	return run, errors.Join(errs...)
}

// closeReaders ends what describes the run, before that closes.
func (c *capture) closeReaders(hurry context.Context) {
	if c.ident != nil {
		c.ident.Close()
		c.counting.Close()
	}
	if c.weigher != nil {
		c.weigher.Close(hurry)
	}
	if c.keeper != nil {
		c.keeper.Close()
	}
}

// drained drops the error of a drain time that passed: the exchanges that were cut are in the record, and the capture
// ends as it should.
func (c *capture) drained(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && c.session.Stats().Running == 0 {
		note(c.env.Stderr, "the drain time of %s had passed: what still ran was cut (--drain)", c.s.drain)
		return nil
	}
	return err
}

// abandon closes what startCapture opened before it failed.
func (c *capture) abandon() {
	for _, ln := range c.listeners {
		ln.Close()
	}
	if c.adminLn != nil {
		c.adminLn.Close()
	}
	for _, up := range c.ups {
		_ = up.Close() // it has no connection yet
	}
	if c.meter != nil {
		c.meter.Close()
	}
	if c.writer != nil {
		_, _ = c.writer.Close(context.Background()) // the error that brought us here is the one to tell
	}
	if c.store != nil {
		_ = c.store.Close() // as above
	}
	c.telling.Close()
	if c.board != nil {
		c.board.print() // what was to be told
	}
}

// announce tells where to point a client.
func (c *capture) announce() {
	for i, u := range c.s.upstreams {
		note(c.env.Stderr, "%s  ->  %s  (%s)", c.base(i), redact.URL(u.url), u.name)
	}
	if c.adminLn != nil {
		note(c.env.Stderr, "admin http://%s", c.adminLn.Addr())
	}
	if c.store != nil {
		name := string(c.s.run.ID)
		if c.s.run.Name != "" {
			name = c.s.run.Name + " " + name
		}
		note(c.env.Stderr, "store %s, run %s", c.s.store, name)
	}
	fmt.Fprintln(c.env.Stderr)
}
