package selftest

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
)

// The ways to the engine.
const (
	direct  = "direct"
	proxied = "proxied"
)

// ways are both, in the order of the report.
var ways = []string{direct, proxied}

// driver sends the requests of all plays, over one pool of connections for each way.
type driver struct {
	session *proxy.Session
	ways    map[string]*proxy.Upstream
	journal *journal
	serial  int // of requests
}

// newDriver makes a driver. dial stands in for the network in tests, by the name of the way.
func newDriver(engine, through string, dial func(way string) func(context.Context) (net.Conn, error)) (*driver, error) {
	d := &driver{session: proxy.NewSession(proxy.SessionOptions{Mode: "selftest"}), ways: map[string]*proxy.Upstream{}}
	dialOf := func(way string) func(context.Context) (net.Conn, error) {
		if dial == nil {
			return nil
		}
		return dial(way)
	}
	for way, url := range map[string]string{direct: engine, proxied: through} {
		if err := checkURL("the "+way+" way", url); err != nil {
			return nil, err
		}
		u, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: way, URL: url, IdleAge: time.Minute, Dial: dialOf(way)})
		if err != nil {
			return nil, err
		}
		d.ways[way] = u
	}
	d.journal = newJournal(engine, dialOf(direct))
	return d, nil
}

// Close frees the connections.
func (d *driver) Close() {
	for _, u := range d.ways {
		_ = u.Close() // nothing runs on them
	}
}

// answer is one exchange of a play as the driver and the engine saw it.
type answer struct {
	id    string
	seen  *exchange.Exchange
	truth sim.Record
}

// play has every stream of a level make its requests one way, and gives the answers. An answer that is not whole ends the
// selftest: nothing may fail on loopback.
func (d *driver) play(ctx context.Context, way string, l Level) ([]answer, error) {
	out := make([]answer, l.Streams*l.Answers)
	first := d.serial
	d.serial += len(out)
	var wg sync.WaitGroup
	for s := range l.Streams {
		wg.Go(func() {
			if !pause(ctx, l.stagger(s)) {
				return
			}
			for a := range l.Answers {
				n := s*l.Answers + a
				id := strconv.Itoa(first + n)
				out[n] = answer{id: id, seen: d.ask(ctx, way, id, l.options())}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	truth, err := d.journal.Take(ctx)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].truth = truth[out[i].id]
		if err := out[i].whole(); err != nil {
			return nil, fmt.Errorf("play %d streams %s: %w", l.Streams, way, err)
		}
	}
	return out, nil
}

// warm has every stream make one request at the same time, so that its connections are there.
func (d *driver) warm(ctx context.Context, way string, streams int) error {
	var wg sync.WaitGroup
	first := d.serial
	d.serial += streams
	for s := range streams {
		wg.Go(func() { d.ask(ctx, way, strconv.Itoa(first+s), "answer=1; ttft=50ms") })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, err := d.journal.Take(ctx)
	return err
}

// ask makes one request. What it gives to io.Discard has the moment of each read's return beside the kernel's stamp.
func (d *driver) ask(ctx context.Context, way, id, options string) *exchange.Exchange {
	return d.session.Do(ctx, d.ways[way], proxy.Call{
		Method: "POST", Target: "/v1/chat/completions",
		Headers: []exchange.Header{
			{Name: "Content-Type", Value: "application/json"}, {Name: idHeader, Value: id}, {Name: "X-Sim", Value: options},
		},
		Body: []byte(`{"model":"sim","stream":true,"messages":[{"role":"user","content":"How late are you in request ` + id + `?"}]}`),
	}, io.Discard)
}

// whole holds that the answer came as the engine wrote it.
func (a *answer) whole() error {
	x := a.seen
	writes := a.truth.Writes
	switch {
	case x.End != exchange.EndEOF:
		text := ""
		if x.Cause != nil {
			text = x.Cause.Text
		}
		return fmt.Errorf("an answer ended as %s: %s", x.End, text)
	case x.Response.Status != 200:
		return fmt.Errorf("an answer has the status %d", x.Response.Status)
	case len(writes) == 0: // every write is in its journal before it leaves
		return fmt.Errorf("the engine has no account of request %s", a.id)
	case writes[len(writes)-1].Body != int(x.Response.Body.Size):
		return fmt.Errorf("%d bytes came of the %d that the engine wrote", x.Response.Body.Size, writes[len(writes)-1].Body)
	}
	return nil
}

// pause waits for d; false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
