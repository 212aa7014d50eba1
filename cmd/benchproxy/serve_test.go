package main

import (
	"errors"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/replay"
)

// TestServingHasNoWayOut holds that where misses are refused nothing exists by which a request could leave: no client of
// engines, no proxy, no way to one.
func TestServingHasNoWayOut(t *testing.T) {
	for _, how := range []string{missError, missPass} {
		v := &serving{failed: make(chan error, 1)}
		v.s.onMiss = how
		v.s.targets = []upstream{{name: "engine", url: "http://127.0.0.1:9"}}
		o, err := v.options()
		if err != nil {
			t.Fatal(err)
		}
		exists := v.upstream != nil || v.front != nil || v.inside != nil || o.Forward != nil
		if exists != (how == missPass) {
			t.Errorf("--on-miss %s: there is a way out: %v", how, exists)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestServingRefusesLoops holds that misses do not go to the stand-in itself, where each would become the next one.
func TestServingRefusesLoops(t *testing.T) {
	server, err := startScripted("127.0.0.1:0", true, sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	v := &serving{failed: make(chan error, 1), server: server}
	v.s.onMiss, v.s.targets = missPass, []upstream{{name: "engine", url: server.url}}
	if _, err := v.options(); err != nil {
		t.Fatal(err)
	}
	if err := v.begin(); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("it passes misses on to itself: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
}

// TestPaceText holds how a pace is told.
func TestPaceText(t *testing.T) {
	for speed, want := range map[float64]string{0: "at once", 1: "at the recorded pace", 2.5: "at 2.5 times the recorded pace"} {
		if got := paceText(speed); got != want {
			t.Errorf("%v: %q", speed, got)
		}
	}
}

// TestServeRules holds that the rules of matching stand with a run of misses.
func TestServeRules(t *testing.T) {
	rule, err := replay.ParseRelax("$.seed")
	if err != nil {
		t.Fatal(err)
	}
	v := &serving{named: "run x"}
	v.s.what = replay.ServeOptions{Speed: 2, Strict: true, Relax: []replay.RelaxRule{rule}}
	if got := v.rules(); got.Source != "run x" || got.Speed != 2 || !got.Strict || len(got.Relax) != 1 || got.Relax[0] != "$.seed" {
		t.Errorf("%+v", got)
	}
}
