package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/test/load/rig"
)

// patience bounds one test, on a busy machine.
const patience = 3 * time.Minute

// stage is what a test plays on: the program, a scripted engine and a store.
type stage struct {
	binary string
	engine *rig.Engine
	store  rig.Store
}

func newStage(t *testing.T) (context.Context, stage) {
	t.Helper()
	binary := os.Getenv("TEST_BENCHPROXY")
	if binary == "" {
		t.Fatal("TEST_BENCHPROXY is not set: run this through scripts/load-test.sh")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	engine, err := rig.StartEngine(ctx, binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return ctx, stage{binary: binary, engine: engine, store: rig.Store{Binary: binary, Dir: t.TempDir() + "/store"}}
}

// record starts `benchproxy record` on the store. It asks the engine nothing of its own, so that the engine's account is
// that of the clients' requests.
func (s stage) record(ctx context.Context, t *testing.T, run string) *rig.Proxy {
	t.Helper()
	p, err := rig.StartProxy(ctx, s.binary, "record", "--upstream", s.engine.URL, "--store", s.store.Dir, "--run", run, "--no-identify", "--json")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// truth is the engine's account of each request, by its id. It fails the test when one came more than once.
func (s stage) truth(ctx context.Context, t *testing.T) map[string]sim.Record {
	t.Helper()
	truth, err := s.engine.Truth(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	byID := rig.ByID(truth)
	if len(byID) != len(truth.Requests) {
		t.Errorf("the engine got %d requests, of which %d are different ones", len(truth.Requests), len(byID))
	}
	return byID
}

// stream is one request and what its client got.
type stream struct {
	ask    rig.Ask
	status int
	body   []byte
	whole  bool
	err    error
}

// runAll sends all requests at the same time, each over a connection of its own, and waits until all have ended.
func runAll(addr string, streams []stream) {
	var wg sync.WaitGroup
	for i := range streams {
		s := &streams[i]
		wg.Go(func() { s.run(addr) })
	}
	wg.Wait()
}

func (s *stream) run(addr string) {
	c := rig.NewClient(addr)
	defer c.Close()
	var a *rig.Answer
	a, s.err = c.Do(s.ask.Bytes())
	s.status, s.body, s.whole = a.Status, a.Body, a.Whole
}

// sum is the digest of a body as rows carry it.
func sum(b []byte) string {
	h := sha256.Sum256(b)
	return exchange.DigestPrefix + hex.EncodeToString(h[:])
}

// byRequest are rows by the digest of their request body.
func byRequest(t *testing.T, rows []exchange.Summary) map[string]exchange.Summary {
	t.Helper()
	out := make(map[string]exchange.Summary, len(rows))
	for _, r := range rows {
		if _, twice := out[r.RequestSum]; twice {
			t.Errorf("exchange %s is a second record of one request", r.ID)
		}
		out[r.RequestSum] = r
	}
	return out
}

// sent is the body that the engine sent, of a record with bytes.
func sent(t *testing.T, r sim.Record) []byte {
	t.Helper()
	body, err := rig.BodyOf(r.Sent)
	if err != nil {
		t.Fatalf("read what the engine sent for request %d: %v", r.Seq, err)
	}
	return body
}
