package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/internal/web"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/recorder"
)

// TestMain lets all tests that wait on the clock of a stream run at the same time: they need no processor meanwhile. The
// cleaner of fasthttp's idle workers is no leak: it sleeps 10 s before it sees that its server is gone.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

const (
	// patience bounds waits that end by themselves when all is well.
	patience = 60 * time.Second
	// attempts is how often a stream may be played until the machine does not hold it up.
	attempts = 10
	// liveBound is how late a live time may be on a loaded machine.
	liveBound = 250 * time.Millisecond
	// granularity is how far two readings of the wall clock may seem out of order.
	granularity = 100 * time.Microsecond
)

// caseHeader names a request on its whole way: in the engine's account and in the record.
const caseHeader = "X-Case"

// rigOptions change what newRig puts together.
type rigOptions struct {
	engine   sim.Config
	url      string // of the engine; "" = a scripted one
	off      bool   // do not record
	session  proxy.SessionOptions
	server   proxy.ServerOptions
	upstream proxy.UpstreamOptions
	writer   recorder.WriterOptions
}

// rig is an engine and a recording proxy in front of it, wired as the record command does.
type rig struct {
	t       testing.TB
	engine  *sim.Server
	url     string // of the engine
	dir     string // of the store
	store   *recorder.Store
	writer  *recorder.Writer
	session *proxy.Session
	run     exchange.Run
	addr    string // of the proxy
	admin   string // address of the admin listener, "" when nothing is recorded

	stops []func() error // last one first
	tasks sync.WaitGroup
	rows  chan exchange.Summary

	mu     sync.Mutex
	byCase map[string][]record
	closed bool
}

// record is one exchange as the store gives it back.
type record struct {
	*exchange.Exchange
	row exchange.Summary
}

func newRig(t testing.TB, edit ...func(*rigOptions)) *rig {
	t.Helper()
	var o rigOptions
	for _, f := range edit {
		f(&o)
	}
	r := &rig{t: t, rows: make(chan exchange.Summary, 1<<14), byCase: map[string][]record{}}
	r.run = exchange.Run{ID: exchange.NewID(time.UnixMilli(1_800_000_000_000)), Name: "e2e", Mode: "record"}
	r.dir = t.TempDir() // before the cleanup below, so that it is removed after the store has closed
	t.Cleanup(r.close)
	if r.url = o.url; r.url == "" {
		r.engine, r.url = r.newEngine(o.engine)
	}
	if !o.off {
		r.record(o.writer)
		o.session.Sink = r.writer
	}
	o.session.Run, o.session.Mode, o.session.Harness = r.run.ID, r.run.Mode, "test"
	r.session = proxy.NewSession(o.session)
	r.addr = r.front(r.url, o.upstream, o.server)
	return r
}

// newEngine starts a scripted engine that ends with the rig.
func (r *rig) newEngine(cfg sim.Config) (*sim.Server, string) {
	ln := listen(r.t)
	s := sim.New(cfg)
	r.tasks.Go(func() {
		if err := s.Serve(ln); err != nil && !errors.Is(err, sim.ErrCrashed) {
			r.t.Errorf("serve engine: %v", err)
		}
	})
	r.stops = append(r.stops, s.Close)
	return s, "http://" + ln.Addr().String()
}

// record opens a store, a run and the admin listener.
func (r *rig) record(o recorder.WriterOptions) {
	r.t.Helper()
	var err error
	r.store, err = recorder.Open(r.dir, recorder.Options{Harness: "test", FreeSpace: func(string) (int64, error) { return 1 << 40, nil }})
	if err != nil {
		r.t.Fatal(err)
	}
	r.stops = append(r.stops, r.closeStore)
	o.Derive = func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) }
	o.OnStored = func(s exchange.Summary) { r.rows <- s }
	o.OnDropped = func(id exchange.ID, why recorder.DropReason) { r.t.Errorf("exchange %s was not stored: %s", id, why) }
	if r.writer, err = r.store.NewWriter(r.run, o); err != nil {
		r.t.Fatal(err)
	}
	r.stops = append(r.stops, r.closeRun)
	ln := listen(r.t)
	r.admin = ln.Addr().String()
	admin := web.NewServer(web.Options{
		Store: r.store, Health: func() any { return r.writer.Health() },
		Stats: func() (any, error) { return r.store.Stats() },
		Check: func(ctx context.Context) (any, error) { return r.store.Check(ctx) },
	})
	r.tasks.Go(func() {
		if err := admin.Serve(ln); err != nil {
			r.t.Error(err)
		}
	})
	r.stops = append(r.stops, admin.Close)
}

// front puts a proxy before the engine at url and gives its address.
func (r *rig) front(url string, uo proxy.UpstreamOptions, so proxy.ServerOptions) string {
	r.t.Helper()
	if uo.Name == "" {
		uo.Name = "engine"
	}
	uo.URL = url
	up, err := proxy.NewUpstream(uo)
	if err != nil {
		r.t.Fatal(err)
	}
	r.stops = append(r.stops, up.Close)
	so.Session, so.Upstream = r.session, up
	server, err := proxy.NewServer(so)
	if err != nil {
		r.t.Fatal(err)
	}
	ln := listen(r.t)
	r.tasks.Go(func() {
		if err := server.Serve(ln); err != nil {
			r.t.Errorf("serve proxy: %v", err)
		}
	})
	r.stops = append(r.stops, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return server.Shutdown(ctx)
	})
	return ln.Addr().String()
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// close ends everything, the newest part first, and holds what is true after every test.
func (r *rig) close() {
	if r.closed {
		return
	}
	r.closed = true
	for _, stop := range slices.Backward(r.stops) {
		if err := stop(); err != nil {
			r.t.Errorf("close: %v", err)
		}
	}
	r.tasks.Wait()
	if r.session == nil {
		return
	}
	if st := r.session.Stats(); st.Running != 0 || st.Held != 0 || st.Dropped != 0 {
		r.t.Errorf("after the end: %+v", st)
	}
}

// closeRun ends the run, which must be complete.
func (r *rig) closeRun() error {
	run, err := r.writer.Close(context.Background())
	if err == nil && run.State != exchange.RunComplete {
		err = fmt.Errorf("run is %s: %+v", run.State, run.Counts)
	}
	return err
}

// closeStore checks the store and closes it.
func (r *rig) closeStore() error {
	report, err := r.store.Check(context.Background())
	if err == nil && (!report.OK() || report.OpenRuns != 0 || report.StaleBlobs != 0) {
		err = fmt.Errorf("store check: %+v", report)
	}
	return errors.Join(err, r.store.Close())
}

// nextRow waits for the next record that is stored, while waiting for the named one.
func (r *rig) nextRow(t testing.TB, name string) exchange.Summary {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case row := <-r.rows:
		return row
	case <-timer.C:
		t.Fatalf("no record came while waiting for %q", name)
		return exchange.Summary{}
	}
}

// stored waits for the n-th record, from 0, of the request that carries the case header.
func (r *rig) stored(t testing.TB, name string, n int) record {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.byCase[name]) <= n {
		x, row, err := r.store.Exchange(r.nextRow(t, name).ID)
		if err != nil {
			t.Fatalf("read record: %v", err)
		}
		of, _ := exchange.HeaderValue(x.Request.Headers, caseHeader)
		r.byCase[of] = append(r.byCase[of], record{x, row})
	}
	return r.byCase[name][n]
}

// truth waits until the engine is done with the request that carries the case header, and gives its account.
func (r *rig) truth(t testing.TB, name string) sim.Record {
	t.Helper()
	return truthOf(t, r.engine, name, func(rec sim.Record) bool { return rec.Ended != "" })
}

// truthOf waits for a condition of the newest request with the case header.
func truthOf(t testing.TB, engine *sim.Server, name string, met func(sim.Record) bool) sim.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var found sim.Record
	_, err := engine.Await(ctx, func(truth sim.Truth) bool {
		for _, rec := range slices.Backward(truth.Requests) {
			if caseOf(rec.Request) == name {
				found = rec
				return met(rec)
			}
		}
		return false
	})
	if err != nil {
		t.Fatalf("the engine's account of %q: %v, last seen %+v", name, err, found)
	}
	return found
}

func caseOf(r sim.Request) string {
	v, _ := exchange.HeaderValue(r.Headers, caseHeader)
	return v
}
