package load

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/test/load/rig"
)

const (
	killRounds  = 5
	killStreams = 200 // that run at once
	killLeast   = 150 // exchanges acknowledged before the kill, and up to as many more
)

// TestKilledInTheMiddle holds that nothing acknowledged is lost when the proxy is killed in the middle of its streams,
// that the store needs no help to open, and that recording goes on in it.
func TestKilledInTheMiddle(t *testing.T) {
	ctx, s := newStage(t)
	kept := map[exchange.ID]string{} // acknowledged in any round: id -> digest of the response body
	for round := range killRounds {
		k := killing{stage: s, round: round}
		k.run(ctx, t)
		for id, sum := range k.acknowledged(t) {
			kept[id] = sum
		}
		if err := s.store.Check(ctx); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		k.checkClients(ctx, t)
		k.checkStore(ctx, t, kept)
		k.checkRun(ctx, t)
	}
	s.checkAfter(ctx, t, kept)
}

// killing is one round: streams without end, and a proxy that is killed among them.
type killing struct {
	stage
	round int
	proxy *rig.Proxy

	mu      sync.Mutex
	streams []stream
	cut     int
}

func (k *killing) name() string { return fmt.Sprint("kill-", k.round) }

// run keeps killStreams streams running until enough are acknowledged, then kills the proxy.
func (k *killing) run(ctx context.Context, t *testing.T) {
	t.Helper()
	k.proxy = k.record(ctx, t, k.name())
	var wg sync.WaitGroup
	for worker := range killStreams {
		wg.Go(func() { k.work(worker) })
	}
	enough := killLeast + rand.IntN(killLeast)
	err := k.proxy.Out.Await(ctx, func(text []byte) bool { return bytes.Count(text, []byte("\n")) >= enough })
	k.proxy.Kill()
	wg.Wait()
	if err != nil {
		t.Fatalf("round %d: wait for %d acknowledged exchanges: %v: %s", k.round, enough, err, k.proxy.Err.Tail())
	}
	if k.cut < killStreams/2 {
		t.Errorf("round %d: the kill met %d running streams, want most of %d", k.round, k.cut, killStreams)
	}
}

// work is a client that sends one stream after the other until the proxy is gone.
func (k *killing) work(worker int) {
	for n := 0; ; n++ {
		length := 10 + (worker*7+n*13)%60
		x := stream{ask: rig.Ask{
			ID:     fmt.Sprintf("%s-%d-%d", k.name(), worker, n),
			Prompt: fmt.Sprintf("round %d worker %d stream %d", k.round, worker, n), Stream: true,
			Sim: fmt.Sprintf("ttft=50ms; decode=40; jitter=0.5; answer=%d", length),
		}}
		x.run(k.proxy.Addr)
		k.mu.Lock()
		if x.err != nil && x.status != 0 {
			k.cut++
		}
		k.streams = append(k.streams, x)
		k.mu.Unlock()
		if x.err != nil {
			return
		}
	}
}

// acknowledged are the exchanges whose rows the proxy printed, each held to what its client got.
func (k *killing) acknowledged(t *testing.T) map[exchange.ID]string {
	t.Helper()
	rows, err := k.proxy.Rows()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]stream{}
	for _, x := range k.streams {
		got[sum([]byte(x.ask.Body()))] = x
	}
	out := map[exchange.ID]string{}
	for _, row := range rows {
		x, ok := got[row.RequestSum]
		if !ok || !x.whole || sum(x.body) != row.ResponseSum || row.Outcome != exchange.OutcomeComplete {
			t.Errorf("round %d: exchange %s was acknowledged as %s; its client got %d bytes, whole %t: %v",
				k.round, row.ID, row.Outcome, len(x.body), x.whole, x.err)
		}
		out[row.ID] = row.ResponseSum
	}
	t.Logf("round %d: %d exchanges acknowledged, %d streams cut", k.round, len(out), k.cut)
	return out
}

// checkClients holds that each client got what the engine sent, up to the kill, and that no cut answer looked whole.
func (k *killing) checkClients(ctx context.Context, t *testing.T) {
	t.Helper()
	truth := k.truth(ctx, t)
	for _, x := range k.streams {
		body, err := rig.BodyOf(truth[x.ask.ID].Sent)
		if !bytes.HasPrefix(body, x.body) || x.whole && (err != nil || len(body) != len(x.body)) {
			t.Errorf("%s: the client got %d bytes, whole %t; the engine sent %d: %v", x.ask.ID, len(x.body), x.whole, len(body), err)
		}
	}
	if err := k.engine.Forget(ctx); err != nil {
		t.Fatal(err)
	}
}

// checkStore holds that every acknowledged exchange is listed with the body it had.
func (k *killing) checkStore(ctx context.Context, t *testing.T, kept map[exchange.ID]string) {
	t.Helper()
	rows, err := k.store.Rows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[exchange.ID]string{}
	for _, row := range rows {
		listed[row.ID] = row.ResponseSum
	}
	for id, sum := range kept {
		if got, ok := listed[id]; !ok || got != sum {
			t.Errorf("round %d: acknowledged exchange %s is stored: %t, body %s, want %s", k.round, id, ok, got, sum)
		}
	}
}

// checkRun holds that nobody takes the run for a complete one.
func (k *killing) checkRun(ctx context.Context, t *testing.T) {
	t.Helper()
	runs, err := k.store.Runs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != k.round+1 {
		t.Fatalf("round %d: there are %d runs", k.round, len(runs))
	}
	run := runs[k.round]
	if run.Name != k.name() || run.State == exchange.RunComplete || run.Counts.Stored == 0 {
		t.Errorf("round %d: run %s is %s with %d exchanges", k.round, run.Name, run.State, run.Counts.Stored)
	}
}

// checkAfter holds that a new proxy records into the store, shows every acknowledged body through its admin listener,
// and closes its run as complete.
func (s stage) checkAfter(ctx context.Context, t *testing.T, kept map[exchange.ID]string) {
	t.Helper()
	p := s.record(ctx, t, "after")
	after := make([]stream, 20)
	for i := range after {
		after[i].ask = rig.Ask{ID: fmt.Sprint("after-", i), Prompt: fmt.Sprint("after all kills ", i), Stream: true, Sim: "answer=20"}
	}
	runAll(p.Addr, after)
	for _, x := range after {
		if !x.whole {
			t.Errorf("%s: %v", x.ask.ID, x.err)
		}
	}
	for id, want := range kept {
		body, err := p.Body(ctx, id)
		if err != nil {
			t.Fatalf("read body of %s: %v", id, err)
		}
		if sum(body) != want {
			t.Errorf("the body of %s is not the one that was acknowledged", id)
		}
	}
	s.truth(ctx, t) // no request came twice
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Check(ctx); err != nil {
		t.Error(err)
	}
	runs, err := s.store.Runs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	last := runs[len(runs)-1]
	if last.Name != "after" || last.State != exchange.RunComplete || last.Counts.Stored != int64(len(after)) {
		t.Errorf("run %s is %s with %d exchanges, want %d", last.Name, last.State, last.Counts.Stored, len(after))
	}
}
