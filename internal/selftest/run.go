package selftest

import (
	"context"
	"fmt"
	"iter"
	"net"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// Config is what a selftest needs of the outside.
type Config struct {
	Engine  string // URL of a scripted engine of its own process
	Proxy   string // URL of a recording proxy of its own process, in front of that engine
	Plan    Plan
	Harness string        // version of benchproxy
	Host    exchange.Host // with the load before anything was started

	// Busy keeps every core busy from true to false, with processes of their own.
	Busy func(ctx context.Context, on bool) error
	// Settle returns when the proxy has nothing left to do for the exchanges so far. Nil does not wait.
	Settle func(ctx context.Context) error
	// Records are the proxy's records of all exchanges. It is asked once, when no more are sent.
	Records func(ctx context.Context) iter.Seq2[*exchange.Exchange, error]
	// Progress is told what is being done, a few words at a time. Nil is not told.
	Progress func(what string)
	// Dial stands in for the network, by the name of the way (direct or proxied). Nil is the network.
	Dial func(way string) func(context.Context) (net.Conn, error)
}

// runner is a selftest that runs.
type runner struct {
	cfg    Config
	driver *driver
	cells  []*cell
	kept   map[string]kept // proxied requests, by their number
}

// kept is what must be known of a proxied request when its record is read.
type kept struct {
	cell   *cell // nil in the search for a rate
	writes []sim.Write
}

// cell gathers the samples of one level under one load.
type cell struct {
	level  Level
	load   string
	rounds []map[string]samples // of the ways
	driver stamps               // of the driver itself, in direct plays
	proxy  stamps               // of the proxy's records
	added  []float64            // us from a read's stamp to the end of its write to the client, by the records
}

// samples of one play, in us.
type samples struct{ ttft, event []float64 }

// Run makes a selftest. It returns the cause of ctx when that ends first.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	d, err := newDriver(cfg.Engine, cfg.Proxy, cfg.Dial)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	r := &runner{cfg: cfg, driver: d, kept: map[string]kept{}}
	began := clock.Start()
	if err := r.load(ctx, exchange.LoadIdle); err != nil {
		return nil, err
	}
	r.progress("looking for the highest event rate")
	steps, err := r.search(ctx)
	if err != nil {
		return nil, fmt.Errorf("search event rate: %w", err)
	}
	if err := r.busy(ctx); err != nil {
		return nil, err
	}
	r.progress("reading the proxy's records")
	if err := r.records(ctx, steps); err != nil {
		return nil, err
	}
	return r.report(began, steps)
}

func (r *runner) progress(what string) {
	if r.cfg.Progress != nil {
		r.cfg.Progress(what)
	}
}

func (r *runner) settle(ctx context.Context) error {
	if r.cfg.Settle == nil {
		return nil
	}
	if err := r.cfg.Settle(ctx); err != nil {
		return fmt.Errorf("wait for proxy: %w", err)
	}
	return nil
}

// busy plays all levels while every core is kept busy.
func (r *runner) busy(ctx context.Context) error {
	if err := r.cfg.Busy(ctx, true); err != nil {
		return fmt.Errorf("load cores: %w", err)
	}
	err := r.load(ctx, exchange.LoadBusy)
	if stop := r.cfg.Busy(context.WithoutCancel(ctx), false); err == nil && stop != nil {
		err = fmt.Errorf("unload cores: %w", stop)
	}
	return err
}

// load plays all levels under one load.
func (r *runner) load(ctx context.Context, load string) error {
	for _, l := range r.cfg.Plan.Levels {
		r.progress(fmt.Sprintf("%d streams, %s", l.Streams, load))
		c := &cell{level: l, load: load}
		r.cells = append(r.cells, c)
		for _, way := range ways {
			if err := r.driver.warm(ctx, way, l.Streams); err != nil {
				return fmt.Errorf("warm up: %w", err)
			}
		}
		for round := range r.cfg.Plan.Rounds {
			if err := r.round(ctx, c, round); err != nil {
				return err
			}
		}
	}
	return nil
}

// round plays a level once each way, with each way first in every other round.
func (r *runner) round(ctx context.Context, c *cell, round int) error {
	played := map[string]samples{}
	for i := range ways {
		way := ways[(i+round)%len(ways)]
		if err := r.settle(ctx); err != nil {
			return err
		}
		got, err := r.driver.play(ctx, way, c.level)
		if err != nil {
			return err
		}
		played[way] = r.take(c, way, got)
	}
	c.rounds = append(c.rounds, played)
	return nil
}

// take gathers the samples of a play.
func (r *runner) take(c *cell, way string, got []answer) (s samples) {
	for i := range got {
		a := &got[i]
		if us, ok := firstToken(a); ok {
			s.ttft = append(s.ttft, us)
		}
		s.event = append(s.event, eventTimes(a)...)
		if way == direct {
			c.driver.add(a.seen, a.truth.Writes)
			continue
		}
		r.kept[a.id] = kept{cell: c, writes: a.truth.Writes}
	}
	return s
}

// records reads the proxy's records and holds them against the engine's writes.
func (r *runner) records(ctx context.Context, steps []RateStep) error {
	stall := map[string]float64{}
	for x, err := range r.cfg.Records(ctx) {
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		id, _ := exchange.HeaderValue(x.Request.Headers, idHeader)
		k, ok := r.kept[id]
		if !ok { // a warm-up
			continue
		}
		delete(r.kept, id)
		if k.cell == nil {
			stall[id] = longestWrite(x)
			continue
		}
		k.cell.proxy.add(x, k.writes)
		for _, read := range x.Timeline.Reads {
			if read.Write > 0 {
				k.cell.added = append(k.cell.added, float64(read.Write)/nsPerUS)
			}
		}
	}
	if n := len(r.kept); n > 0 {
		return fmt.Errorf("read records: %w: the proxy kept none of %d requests", exchange.ErrIncomplete, n)
	}
	for i := range steps {
		for _, id := range steps[i].ids {
			ms := stall[id]
			if steps[i].StallMS == nil || ms > *steps[i].StallMS {
				steps[i].StallMS = &ms
			}
		}
	}
	return nil
}

// longestWrite is the longest time from a read's stamp to the end of its write to the client, in ms.
func longestWrite(x *exchange.Exchange) float64 {
	longest := int64(0)
	for _, r := range x.Timeline.Reads {
		longest = max(longest, r.Write)
	}
	return float64(longest) / 1e6
}
