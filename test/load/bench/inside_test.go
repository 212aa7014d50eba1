package main

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/test/load/rig"
)

// TestInsideTargetsAnswerAlike holds that every target that allocations are counted on passes the engine's answer on,
// stores what it should, and ends.
func TestInsideTargetsAnswerAlike(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	engine := sim.New(sim.Config{})
	served := make(chan error, 1)
	go func() { served <- engine.Serve(ln) }()
	t.Cleanup(func() {
		if err := errors.Join(engine.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var want string
	for _, name := range insideNames {
		in, err := openInside(name, "http://"+ln.Addr().String(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		c := rig.NewClient(in.addr)
		a := rig.Ask{ID: "1", Prompt: "Say something.", Sim: "answer=20"}
		x, err := c.Do(a.Bytes())
		if err != nil || x.Status != 200 || want != "" && string(x.Body) != want {
			t.Errorf("%s: %v, answered %d %s", name, err, x.Status, x.Body)
		}
		want = string(x.Body)
		if _, _, err := in.allocated(ctx, c, a, 3); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := in.stored.Load(); name == records && n < 4 || name != records && n != 0 {
			t.Errorf("%s: %d exchanges are stored", name, n)
		}
		c.Close()
		if err := in.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInsideTargetThatCannotBe(t *testing.T) {
	for _, name := range insideNames {
		if in, err := openInside(name, "http://bad host", t.TempDir()); err == nil {
			t.Errorf("%s stands before a URL that is none: %v", name, in.Close())
		}
	}
	if _, err := openInside(records, "http://127.0.0.1:1", "/proc/nowhere"); err == nil {
		t.Error("a store is where none can be")
	}
}
