package selftest

import (
	"context"
	"iter"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
)

// sink takes the proxy's records.
type sink struct {
	mu sync.Mutex
	xs []*exchange.Exchange
}

func (s *sink) Offer(x *exchange.Exchange) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.xs = append(s.xs, x)
	return true
}

func (s *sink) records(context.Context) iter.Seq2[*exchange.Exchange, error] {
	return func(yield func(*exchange.Exchange, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, x := range s.xs {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// bench is an engine and a recording proxy in memory, on a fake clock.
type bench struct {
	sink  *sink
	delay time.Duration // of each read between the engine and the proxy
	busy  []bool        // calls of Busy
}

// config is a selftest of the bench; its plan is a small one.
func (b *bench) config(dial func(string) func(context.Context) (net.Conn, error)) Config {
	return Config{
		Engine: "http://engine", Proxy: "http://proxy", Harness: "test", Dial: dial, Records: b.sink.records,
		Busy: func(_ context.Context, on bool) error { b.busy = append(b.busy, on); return nil },
		Plan: Plan{
			Levels: []Level{{Streams: 1, Answers: 4, Tokens: 8, Rate: 100}, {Streams: 3, Answers: 2, Tokens: 4, Rate: 50}},
			Rounds: 6, Search: Search{Streams: 2, From: 100, To: 1600, Play: 200 * time.Millisecond, Refine: 2},
		},
	}
}

// inBubble runs f with an engine and a proxy in memory.
func inBubble(t *testing.T, b *bench, f func(t *testing.T, cfg Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b.sink = &sink{}
		engine, behind, front := sim.New(sim.Config{}), sim.NewPipeListener(), sim.NewPipeListener()
		dial := func(ctx context.Context) (net.Conn, error) {
			c, err := behind.Dial(ctx)
			return &slowConn{Conn: c, delay: b.delay}, err
		}
		up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: "engine", URL: "http://engine", Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		srv, err := proxy.NewServer(proxy.ServerOptions{Session: proxy.NewSession(proxy.SessionOptions{Sink: b.sink}), Upstream: up})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		go func() { ended <- engine.Serve(behind) }()
		go func() { ended <- srv.Serve(front) }()
		f(t, b.config(func(way string) func(context.Context) (net.Conn, error) {
			if way == direct {
				return behind.Dial
			}
			return front.Dial
		}))
		for _, end := range []func() error{srv.Close, up.Close, engine.Close, func() error { return <-ended }, func() error { return <-ended }} {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute) // the HTTP library's pool winds down
	})
}

// slowConn holds each read back.
type slowConn struct {
	net.Conn
	delay time.Duration
}

func (c *slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.delay > 0 {
		time.Sleep(c.delay)
	}
	return n, err
}

// TestExactOnAFakeClock runs a whole selftest where every time is exact: nothing is added, no stamp is off, and the noise
// floor is zero.
func TestExactOnAFakeClock(t *testing.T) {
	b := &bench{}
	inBubble(t, b, func(t *testing.T, cfg Config) {
		var said []string
		cfg.Progress = func(what string) { said = append(said, what) }
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Cells) != 4 || len(r.Noise) != 4 || !slices.Equal(b.busy, []bool{true, false}) || len(said) != 6 {
			t.Fatalf("%d cells, %d floors, busy %v, said %q", len(r.Cells), len(r.Noise), b.busy, said)
		}
		for _, c := range r.Cells {
			exactCell(t, c)
		}
		if r.Rate.EventsPerSecond == nil || *r.Rate.EventsPerSecond < 1500 || r.Rate.Limit != LimitSearch || len(r.Rate.Steps) != 5 {
			t.Errorf("rate %+v", r.Rate)
		}
		i := r.Instrument()
		for _, f := range i.Floors(exchange.LoadBusy) {
			if *f.US != 0 {
				t.Errorf("floor %v with %d streams", *f.US, f.Streams)
			}
		}
	})
}

// exactCell holds a cell of a selftest in which nothing takes any time.
func exactCell(t *testing.T, c Cell) {
	t.Helper()
	events := map[int]int{1: 6 * 4 * 8, 3: 6 * 3 * 2 * 4}[c.Streams]
	answers := map[int]int{1: 6 * 4, 3: 6 * 3 * 2}[c.Streams]
	if c.TTFT.Direct.N != answers || c.TTFT.Proxied.N != answers || c.Event.Direct.N != events || c.Event.Proxied.N != events {
		t.Errorf("%s %d: n %d %d %d %d", c.Load, c.Streams, c.TTFT.Direct.N, c.TTFT.Proxied.N, c.Event.Direct.N, c.Event.Proxied.N)
	}
	for name, v := range map[string]*float64{
		"ttft": c.TTFT.Added.Median, "event": c.Event.Added.Median, "stamp": c.Stamp.Max, "driver": c.Driver.Max,
		"returned": c.ReadReturn.Max, "merged": c.Merged, "noise": c.Noise,
	} {
		if v == nil || *v != 0 {
			t.Errorf("%s %d: %s is %v, want 0", c.Load, c.Streams, name, v)
		}
	}
	if *c.Lost != 1 { // in memory there is no kernel to stamp
		t.Errorf("lost stamps %v", *c.Lost)
	}
	if c.Stamp.P99 != nil || c.TTFT.AddedP99 != nil || c.Event.AddedP99 != nil {
		t.Error("a p99 below its floor")
	}
}

// TestSeesWhatIsAdded holds back every read between the engine and the proxy and finds exactly that, in the added time and
// in the stamps.
func TestSeesWhatIsAdded(t *testing.T) {
	b := &bench{delay: 3 * time.Millisecond}
	inBubble(t, b, func(t *testing.T, cfg Config) {
		cfg.Plan.Search = Search{}
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Cells {
			if *c.Event.Added.Median != 3000 || c.Event.Added.Interval == nil || *c.Event.Direct.Median != 0 {
				t.Errorf("%s %d: added %v", c.Load, c.Streams, *c.Event.Added.Median)
			}
			if *c.TTFT.Added.Median < 3000 || *c.TTFT.Added.Median > 6000 { // the head is a read too
				t.Errorf("%s %d: TTFT %v", c.Load, c.Streams, *c.TTFT.Added.Median)
			}
			if *c.Stamp.Min != 3000 || *c.Stamp.Max < 3000 || *c.Driver.Max != 0 {
				t.Errorf("%s %d: stamps %v to %v, driver %v", c.Load, c.Streams, *c.Stamp.Min, *c.Stamp.Max, *c.Driver.Max)
			}
			if c.Noise == nil || *c.Noise != *c.Stamp.Max || c.NoiseFrom != "largest stamp error" {
				t.Errorf("%s %d: noise %v from %s", c.Load, c.Streams, c.Noise, c.NoiseFrom)
			}
		}
		if r.Rate.EventsPerSecond != nil || r.Rate.Steps != nil {
			t.Errorf("a rate without a search: %+v", r.Rate)
		}
	})
}
