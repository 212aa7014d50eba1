package load

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/test/load/rig"
)

const (
	crowd      = 1000
	crowdEvent = 100       // with generated content, a stream
	crowdPeak  = 512 << 20 // bytes of memory the proxy may have taken
	// crowdPace makes every stream last 22 s at least, so that all run at once however slowly they are started.
	crowdPace = "ttft=2s; decode=5; jitter=0.5; answer=100; usage=always"
)

// TestThousandStreams holds that a thousand streams at once pass whole, are stored whole, and leave nothing behind.
func TestThousandStreams(t *testing.T) {
	ctx, s := newStage(t)
	p := s.record(ctx, t, "crowd")
	warm := make([]stream, 1)
	warm[0].ask = rig.Ask{ID: "warm", Prompt: "one stream before all others", Stream: true, Sim: "answer=3"}
	runAll(p.Addr, warm)
	before := quietFiles(ctx, t, p, nil)

	streams := make([]stream, crowd)
	for i := range streams {
		streams[i].ask = rig.Ask{ID: fmt.Sprint("crowd-", i), Prompt: fmt.Sprintf("stream %d of a crowd", i), Stream: true, Sim: crowdPace}
	}
	runAll(p.Addr, streams)

	truth := s.truth(ctx, t)
	if n := together(truth); n < crowd {
		t.Errorf("at most %d streams ran at the same time, want %d", n, crowd)
	}
	for _, x := range streams {
		checkStream(t, x, truth[x.ask.ID])
	}
	if err := p.Settle(ctx, crowd+1); err != nil {
		t.Fatalf("wait until all is stored: %v", err)
	}
	h, err := p.Health(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if h.Status != "ok" || h.Proxy.Accepted != crowd+1 || h.Proxy.Running != 0 || h.Proxy.Dropped != 0 || h.Recorder.Dropped != 0 {
		t.Errorf("health is %+v, recorder %+v", h, *h.Recorder)
	}
	quietFiles(ctx, t, p, before)
	m, err := rig.MemoryOf(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the proxy took at most %d MiB, %d MiB now", m.Peak>>20, m.Now>>20)
	if m.Peak > crowdPeak {
		t.Errorf("the proxy took %d MiB, the limit is %d", m.Peak>>20, crowdPeak>>20)
	}
	if err := p.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	checkCrowd(ctx, t, s.store, append(streams, warm...))
}

// checkStream holds a client's answer to what the engine sent.
func checkStream(t *testing.T, x stream, r sim.Record) {
	t.Helper()
	if x.err != nil || !x.whole || x.status != 200 {
		t.Errorf("%s: status %d, whole %t: %v", x.ask.ID, x.status, x.whole, x.err)
		return
	}
	events := 0
	for _, w := range r.Writes {
		if w.Token {
			events++
		}
	}
	if events != crowdEvent {
		t.Errorf("%s: the engine sent %d events, want %d", x.ask.ID, events, crowdEvent)
	}
	if want := sent(t, r); !bytes.Equal(x.body, want) {
		t.Errorf("%s: the client got %d bytes that are not the %d bytes sent", x.ask.ID, len(x.body), len(want))
	}
}

// checkCrowd holds the closed store to what the clients got.
func checkCrowd(ctx context.Context, t *testing.T, store rig.Store, streams []stream) {
	t.Helper()
	if err := store.Check(ctx); err != nil {
		t.Error(err)
	}
	rows, err := store.Rows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(streams) {
		t.Errorf("%d exchanges are stored, want %d", len(rows), len(streams))
	}
	stored := byRequest(t, rows)
	for _, x := range streams {
		row, ok := stored[sum([]byte(x.ask.Body()))]
		switch {
		case !ok:
			t.Errorf("%s is not stored", x.ask.ID)
		case row.State != exchange.StateStored || row.Outcome != exchange.OutcomeComplete:
			t.Errorf("%s: state %s, outcome %s", x.ask.ID, row.State, row.Outcome)
		case row.ResponseSum != sum(x.body):
			t.Errorf("%s: the stored body is not the one the client got", x.ask.ID)
		}
	}
	runs, err := store.Runs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 || runs[0].State != exchange.RunComplete || runs[0].Counts.Stored != int64(len(streams)) || runs[0].Counts.Dropped != 0 {
		t.Errorf("runs are %+v, want one, complete, with %d exchanges", runs, len(streams))
	}
}

// together is the largest number of requests that the engine had in hand at one instant.
func together(truth map[string]sim.Record) int {
	type edge struct {
		at   int64
		step int
	}
	var edges []edge
	for _, r := range truth {
		edges = append(edges, edge{r.Wall, 1}, edge{r.Wall + r.End, -1})
	}
	slices.SortFunc(edges, func(x, y edge) int { return int(x.at - y.at) })
	most, now := 0, 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}

// quietFiles waits until the proxy has no connection that is only kept for later, and gives its open descriptors by
// kind. When want is given they must come down to it. Files of the store may come and go and are left out.
func quietFiles(ctx context.Context, t *testing.T, p *rig.Proxy, want map[string]int) map[string]int {
	t.Helper()
	var files map[string]int
	err := rig.Poll(ctx, func() (bool, error) {
		var err error
		files, err = rig.Files(p.PID())
		delete(files, "file")
		if want != nil {
			return files["socket"] <= want["socket"], err
		}
		return files["socket"] == 3, err // its listeners, and the one that keeps the kernel stamping
	})
	if err != nil {
		t.Fatalf("wait for connections to end: %v; open are %v, want %v", err, files, want)
	}
	for kind, n := range files {
		if want != nil && n > want[kind] {
			t.Errorf("%d descriptors of kind %s are open, there were %d", n, kind, want[kind])
		}
	}
	return files
}
