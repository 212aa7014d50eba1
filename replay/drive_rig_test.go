package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chatBody asks for a streamed chat answer of n tokens.
func chatBody(prompt string, n int) string {
	return fmt.Sprintf(`{"model":"sim","stream":true,"stream_options":{"include_usage":true},"max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, n, prompt)
}

// asked is an item that posts body to the chat endpoint at an instant; < 0 for none.
func asked(id string, at time.Duration, body string) Item {
	it := Item{ID: id, At: at, Method: "POST", Target: "/v1/chat/completions", Body: []byte(body),
		Headers: []exchange.Header{{Name: "Content-Type", Value: "application/json"}},
		Origin:  &exchange.Origin{Exchange: exchange.ID("recorded-" + id), Key: "h1:" + id}}
	it.identify(it.Body)
	return it
}

// many are n requests that are the same but for a number in the prompt, every apart.
func many(n int, every time.Duration, tokens int) *Workload {
	w := &Workload{Name: "test"}
	for i := range n {
		w.Items = append(w.Items, asked(fmt.Sprint("r", i), time.Duration(i)*every, chatBody(fmt.Sprint("question ", i), tokens)))
	}
	return w
}

// records takes sealed exchanges and tallies them, as a recorder's worker would.
type records struct {
	mu    sync.Mutex
	xs    []*exchange.Exchange
	tally *Tally
}

func (r *records) Offer(x *exchange.Exchange) bool {
	r.mu.Lock()
	r.xs = append(r.xs, x)
	r.mu.Unlock()
	r.tally.Add(x, measure.Analyze(x))
	return true
}

// measured are the exchanges that are no warm-ups, by the instant of their sends.
func (r *records) measured() []*exchange.Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.DeleteFunc(slices.Clone(r.xs), func(x *exchange.Exchange) bool { return x.Item.Warmup })
	slices.SortStableFunc(out, func(a, b *exchange.Exchange) int { return sentAt(a).Compare(sentAt(b)) })
	return out
}

func sentAt(x *exchange.Exchange) time.Time {
	ns, _ := x.Timeline.SendStart.NS()
	return x.Timeline.Wall.Add(time.Duration(ns))
}

// played is what a plan came to in a bubble.
type played struct {
	plan    *Plan
	driver  *Driver
	records []*records // by target
	err     error
}

func (p *played) report(t *testing.T) exchange.Replay {
	t.Helper()
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.driver.Report(0)
}

// rig is a set of engines in memory on a fake clock, one for each target.
type rig struct {
	engine sim.Config
	until  time.Duration // when the run is told to stop; 0 is never
	why    error         // what it is told
	dead   bool          // nobody answers
}

// play sends a workload to engines of its own. check runs in the bubble.
func (r rig) play(t *testing.T, w *Workload, o PlanOptions, check func(t *testing.T, p *played)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if o.Targets == nil {
			o.Targets = []string{"engine"}
		}
		plan, err := NewPlan(w, o)
		if err != nil {
			t.Fatal(err)
		}
		p := &played{plan: plan}
		var targets []Target
		var ends []func() error
		for _, name := range o.Targets {
			engine, ln := sim.New(r.engine), sim.NewPipeListener()
			ended := make(chan error, 1)
			go func() { ended <- engine.Serve(ln) }()
			if r.dead {
				_ = ln.Close()
			}
			up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: name, URL: "http://engine", Dial: ln.Dial})
			if err != nil {
				t.Fatal(err)
			}
			sink := &records{}
			p.records = append(p.records, sink)
			targets = append(targets, Target{proxy.NewSession(proxy.SessionOptions{Mode: "replay", Sink: sink}), up})
			ends = append(ends, up.Close, engine.Close, func() error {
				if err := <-ended; err != nil && !r.dead {
					return err
				}
				return nil
			})
		}
		p.driver = NewDriver(plan, targets)
		for i, s := range p.records {
			s.tally = p.driver.Tally(i)
		}
		ctx := t.Context()
		if r.until > 0 {
			var free context.CancelFunc
			ctx, free = context.WithTimeoutCause(ctx, r.until, r.why)
			defer free()
		}
		p.err = p.driver.Run(ctx)
		check(t, p)
		for _, end := range ends {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
}

// offsets are the instants of the sends from the first one.
func offsets(xs []*exchange.Exchange) []time.Duration {
	var out []time.Duration
	for _, x := range xs {
		out = append(out, sentAt(x).Sub(sentAt(xs[0])))
	}
	return out
}

func promptOf(x *exchange.Exchange) string {
	_, rest, _ := strings.Cut(string(x.Request.Body.Bytes()), `"content":"`)
	prompt, _, _ := strings.Cut(rest, `"`)
	return prompt
}
