package recorder

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestDescribeIsStoredWithTheRun(t *testing.T) {
	s := openStore(t, t.TempDir(), Options{})
	w := newWriter(t, s, exchange.Run{Mode: "record"}, WriterOptions{Derive: deriveStub})
	first := exchange.Deployment{Upstream: "engine", Why: exchange.ReadAtStart, Identity: exchange.Identity{Engine: "vllm", Basis: "probe"}}
	again := first
	again.Why, again.Version = exchange.ReadAtRestart, "0.9.1"
	if !w.Describe(first) {
		t.Fatal("an open run was not described")
	}
	before := w.Run()
	if !w.Describe(again) {
		t.Fatal("an open run was not described again")
	}
	if len(before.Deployments) != 1 {
		t.Errorf("a copy of the run changed with it: %d deployments", len(before.Deployments))
	}
	if _, err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if w.Describe(first) {
		t.Error("a closed run was described")
	}
	run, err := s.Run(string(w.Run().ID))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]exchange.Deployment{first, again}, run.Deployments); diff != "" {
		t.Errorf("stored deployments (-want +got):\n%s", diff)
	}
	if run.Identity != first.Identity {
		t.Errorf("the run's identity is %+v, want %+v", run.Identity, first.Identity)
	}
}
