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

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/redact"
	"github.com/benchproxy/benchproxy/internal/web"
	"github.com/benchproxy/benchproxy/internal/wire"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
)

// captureSettings are what record, proxy and demo want of a capture, read from flags or made up.
type captureSettings struct {
	upstreams      []upstream
	listen         string
	listenExplicit bool
	admin          string // "off" for none
	adminExplicit  bool
	store          string // directory; "" only measures
	sync           bool
	queue          int64
	run            exchange.Run
	identify       bool   // read what answers behind the upstreams
	device         string // what the user asked the engine to run on
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
	watch     *watch
	ident     *identifier // nil: nobody is asked
	failed    chan error  // a listener that stopped by itself
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
	if c.s.identify {
		c.ident, err = newIdentifier(c.s)
	}
	return err
}

// openStore opens the store and the run; without a store a meter derives the same rows and keeps nothing.
func (c *capture) openStore() error {
	c.board = newBoard(c.env, c.s.form, func() []string { return c.watch.lines() })
	if c.s.store == "" {
		c.meter = newMeter(c.derive, c.board.Row)
		c.s.session.Sink = c.watched(c.meter)
		return nil
	}
	admin := ""
	if c.adminLn != nil {
		admin = c.adminLn.Addr().String()
	}
	var err error
	c.store, err = recorder.Open(c.s.store, recorder.Options{
		Sync: c.s.sync, Admin: admin, Harness: version(), Host: thisHost().Fingerprint(),
		Log: slog.New(slog.NewTextHandler(c.env.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	c.writer, err = c.store.NewWriter(c.s.run, recorder.WriterOptions{QueueBytes: c.s.queue, Derive: c.derive, OnStored: c.board.Row})
	if err != nil {
		return err
	}
	c.s.session.Sink = c.watched(c.writer)
	return nil
}

// watched lets the identifier see what ends.
func (c *capture) watched(s proxy.Sink) proxy.Sink {
	if c.ident == nil {
		return s
	}
	return watchedSink{next: s, seen: c.ident.seen}
}

// derive makes the row of an exchange.
func (c *capture) derive(x *exchange.Exchange) exchange.Summary {
	a := measure.Analyze(x)
	row := measure.Summarize(x, a)
	if c.ident != nil {
		row.Flags = append(row.Flags, c.ident.answered(x, a.Request.Model, a.Transcript.Model)...)
		slices.Sort(row.Flags)
	}
	return row
}

// describe keeps what was read of an engine with the run, and tells it.
func (c *capture) describe(d exchange.Deployment) {
	if c.writer != nil {
		c.writer.Describe(d)
	}
	if c.s.form != boardQuiet {
		c.board.Note("%s", deploymentText(c.ident.catalog, d))
	}
}

func (c *capture) openServers() error {
	o := c.s.session
	o.Run, o.Mode, o.Harness = c.s.run.ID, c.s.run.Mode, version()
	c.session = proxy.NewSession(o)
	c.watch = newWatch(c.session)
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
		c.ident.start(c.session, c.describe)
	}
	for i, srv := range c.servers {
		c.wg.Go(func() {
			if err := srv.Serve(c.listeners[i]); err != nil {
				c.failed <- err
			}
		})
	}
	if c.adminLn != nil {
		c.admin = web.NewServer(c.adminOptions())
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
	o := web.Options{Health: c.health}
	if c.store != nil {
		o.Store = c.store
		o.Stats = func() (any, error) { return c.store.Stats() }
		o.Check = func(ctx context.Context) (any, error) { return c.store.Check(ctx) }
	}
	return o
}

// healthDoc is the document of /healthz.
type healthDoc struct {
	Schema   int              `json:"schema"`
	Status   string           `json:"status"` // ok, or degraded: streams pass but are not all recorded
	Reason   string           `json:"reason,omitempty"`
	Version  string           `json:"version"`
	Run      *exchange.Run    `json:"run"`
	Proxy    proxy.Stats      `json:"proxy"`
	Recorder *recorder.Health `json:"recorder"`
}

func (c *capture) health() any {
	doc := healthDoc{Schema: 1, Status: "ok", Version: version(), Proxy: c.session.Stats()}
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
	ctx, cancel := context.WithTimeout(context.Background(), c.s.drain)
	defer cancel()
	stop := make(chan struct{})
	c.wg.Go(func() {
		select {
		case <-signals:
			cancel() // a second signal does not wait
		case <-stop:
		}
	})
	errs := make([]error, len(c.servers))
	var ends sync.WaitGroup
	for i, srv := range c.servers { // all at once: none may take new requests, or lose its time, while another drains
		ends.Go(func() { errs[i] = c.drained(srv.Shutdown(ctx)) })
	}
	ends.Wait()
	close(stop)
	if c.ident != nil {
		c.ident.Close() // before the run closes, which it describes
	}
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
	c.stopBoard() // last: the output may hold it up, and nothing else
	c.boardEnd.Wait()
	return run, errors.Join(errs...)
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
}

// newRun is the run a capture writes.
func newRun(mode, name string, ups []upstream) exchange.Run {
	now := clock.Now()
	r := exchange.Run{ID: exchange.NewID(now), Name: name, Mode: mode, State: exchange.RunOpen, Started: now.UTC().Round(0),
		Upstreams: map[string]string{}, Harness: version()}
	for _, u := range ups {
		r.Upstreams[u.name] = redact.URL(u.url)
	}
	return r
}

// settings reads the flags that all capturing commands share.
func (p *program) settings(c *cli.Context, mode string) (captureSettings, error) {
	s := captureSettings{
		listen: c.String("listen"), listenExplicit: c.IsSet("listen"), admin: c.String("admin"), adminExplicit: c.IsSet("admin"),
		drain: c.Duration("drain"),
	}
	var err error
	if s.upstreams, err = p.upstreams(c); err != nil {
		return s, err
	}
	credentials, err := p.added(c)
	if err != nil {
		return s, err
	}
	for i := range s.upstreams {
		s.upstreams[i].inherit(credentials, c.String("engine-label"))
	}
	if s.server.TLS, s.upstream.TLS, err = tlsConfigs(c); err != nil {
		return s, err
	}
	if s.server.Key, err = p.secret(c, "api-key-file", "BENCHPROXY_API_KEY"); err != nil {
		return s, err
	}
	if err := proxy.CheckBind(s.listen, s.server.Key, c.Bool("insecure")); err != nil {
		return s, err
	}
	if s.admin != adminOff && !loopback(s.admin) && !c.Bool("insecure") {
		return s, usagef("the admin listener %s would show recordings to other machines; keep it on loopback, or say --insecure", s.admin)
	}
	dialect, err := dialectFor(c.String("format"), s.upstreams)
	if err != nil {
		return s, err
	}
	if err := checkBounds(c); err != nil {
		return s, err
	}
	s.session = proxy.SessionOptions{Identity: identity(c.String("engine-label")), Dialect: dialect,
		MaxBody: int64(c.Int("max-body")) << 20, Budget: int64(c.Int("budget")) << 20}
	s.identify, s.device = !c.Bool("no-identify"), c.String("device")
	s.server.MaxRequest = c.Int("max-request") << 20
	if s.server.Rewrite, err = usageRewrite(c); err != nil {
		return s, err
	}
	s.upstream.KeepHost = c.Bool("keep-host")
	s.upstream.ConnectTimeout = c.Duration("connect-timeout")
	s.upstream.HeaderTimeout = c.Duration("header-timeout")
	s.upstream.IdleTimeout = c.Duration("idle-timeout")
	switch {
	case c.Bool("json"):
		s.form = boardJSON
	case c.Bool("quiet"):
		s.form = boardQuiet
	}
	s.run = newRun(mode, c.String("run"), s.upstreams)
	return s, nil
}

// dialectFor is what answers are read as: --format, else what the targets say, which must agree, for one run reads all its
// answers alike. "" is by path.
func dialectFor(format string, ups []upstream) (string, error) {
	if format != "" {
		if !slices.Contains(formats(), format) {
			return "", usagef("there is no dialect %q; there is %s", format, strings.Join(formats(), ", "))
		}
		return format, nil
	}
	for _, u := range ups {
		if u.dialect != ups[0].dialect {
			return "", usagef("the targets %s and %s have different dialects; record them in runs of their own, or say --format", ups[0].name, u.name)
		}
	}
	if len(ups) == 0 {
		return "", nil
	}
	return ups[0].dialect, nil
}

// formats are the dialects --format knows.
func formats() []string {
	var out []string
	for _, d := range wire.Dialects() {
		out = append(out, string(d))
	}
	return out
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
