package bench

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/proxy"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// place has a scripted engine in memory for each group.
type place struct {
	options map[string]sim.Options // by engine; the zero value where there is none
	config  map[string]sim.Config  // by engine; its options are those above
	refuse  map[string]error       // by group: why it cannot be opened
	slots   map[string]int
	manner  *Manner        // of the tool_use suite
	dies    map[string]int // engine -> exchanges after which it is gone

	opened []string
	closed []string
	runs   map[string]exchange.Replay
	seen   []*exchange.Exchange
}

func (p *place) Open(_ context.Context, g *matrix.Group) (Sitting, error) {
	p.opened = append(p.opened, g.Name)
	if err := p.refuse[g.Name]; err != nil {
		return nil, err
	}
	s := &memory{place: p, group: g, ended: make(chan error, 1), tally: replay.NewSuiteTally()}
	cfg := p.config[g.Engine]
	cfg.Options = p.options[g.Engine]
	s.engine, s.ln = sim.New(cfg), sim.NewPipeListener()
	go func() { s.ended <- s.engine.Serve(s.ln) }()
	up, err := proxy.NewUpstream(proxy.UpstreamOptions{Name: g.Engine, URL: "http://engine", Dial: s.ln.Dial})
	if err != nil {
		return nil, err
	}
	s.up = up
	s.facts = Facts{Run: exchange.ID("run-" + g.Name), Model: "sim", Salt: g.Name, ObservedDevice: "cpu", ToolUse: p.manner}
	if n, ok := p.slots[g.Engine]; ok {
		s.facts.Slots = &n
	}
	s.session = proxy.NewSession(proxy.SessionOptions{Run: s.facts.Run, Mode: "bench", Sink: s})
	return s, nil
}

// memory is a sitting without a store.
type memory struct {
	place   *place
	group   *matrix.Group
	facts   Facts
	engine  *sim.Server
	ln      *sim.PipeListener
	up      *proxy.Upstream
	session *proxy.Session
	ended   chan error

	mu    sync.Mutex
	tally *replay.Tally
	sent  int
}

func (s *memory) Offer(x *exchange.Exchange) bool {
	a := measure.Analyze(x)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tally.Add(x, a)
	s.sent++
	s.place.seen = append(s.place.seen, x)
	if n, ok := s.place.dies[s.group.Engine]; ok && s.sent == n {
		_ = s.ln.Close()
		go func() { _ = s.engine.Close() }() // it waits for this answer to end
	}
	return true
}

func (s *memory) Facts() *Facts          { return &s.facts }
func (s *memory) Target() replay.Target  { return replay.Target{Session: s.session, Upstream: s.up} }
func (s *memory) Memory() *matrix.Memory { return nil }
func (s *memory) Tally() *replay.Tally   { return s.tally }

func (s *memory) Gone(bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.place.dies[s.group.Engine]; ok && s.sent >= n {
		return errors.New("the engine ended with code 3")
	}
	return nil
}

func (s *memory) Close(came func() exchange.Replay) error {
	s.place.closed = append(s.place.closed, s.group.Name)
	s.place.runs[s.group.Name] = came()
	err := errors.Join(s.up.Close(), s.engine.Close())
	if ended := <-s.ended; s.place.dies[s.group.Engine] == 0 {
		err = errors.Join(err, ended)
	}
	return err
}

// played is what a plan came to.
type played struct {
	place   *place
	dir     string
	records map[string]matrix.Record
	events  []Event
	sum     Summary
	err     error
}

func (p *place) play(t *testing.T, plan *matrix.Plan, end func(Event) bool, check func(t *testing.T, p *played)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		p.runs = map[string]exchange.Replay{}
		out := &played{place: p, dir: dir}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		r := New(Options{Plan: plan, Results: dir, Place: p, Harness: "test", Build: func(id string) string { return id },
			Event: func(e Event) {
				out.events = append(out.events, e)
				if end != nil && end(e) {
					cancel(errors.New("ended by signal: interrupt"))
				}
			}})
		out.err = r.Run(ctx)
		out.sum, out.records = r.Summary(), readAll(t, dir)
		check(t, out)
	})
}

func readAll(t *testing.T, dir string) map[string]matrix.Record {
	t.Helper()
	out := map[string]matrix.Record{}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var r matrix.Record
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[r.Cell] = r
	}
	return out
}

// planOf is a plan of engines, each with cells at every concurrency, in one step for each engine and repeat.
func planOf(engines []string, scenarios []string, repeats int, concurrency ...int) *matrix.Plan {
	p := &matrix.Plan{Schema: 1, Hash: "m1:test"}
	for _, e := range engines {
		g := matrix.Group{Axes: matrix.Axes{Engine: e, Backend: "cpu", Model: "m", TP: 1}}
		g.Name = g.GroupName()
		for _, sc := range scenarios {
			for _, n := range concurrency {
				c := matrix.Cell{Axes: g.Axes, Scenario: sc, Concurrency: n, MaxTokens: 64, Stream: true, Repeats: repeats, Warmup: 1, Do: matrix.DoRun}
				c.Name, c.Definition = c.CellName(sc, n, ""), "c1:"+sc
				g.Cells = append(g.Cells, c)
			}
		}
		p.Groups = append(p.Groups, g)
		st := matrix.Step{Groups: []int{len(p.Groups) - 1}}
		for c := range g.Cells {
			for r := range repeats {
				st.Turns = append(st.Turns, matrix.Turn{Group: len(p.Groups) - 1, Cell: c, Repeat: r})
			}
		}
		p.Steps = append(p.Steps, st)
	}
	return p
}
