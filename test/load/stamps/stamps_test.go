package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
)

// otherClock is the part of answers that may have a read the kernel had no usable stamp for: after a step of the wall
// clock, say.
const otherClock = 0.01

// earliest is how far two readings of the wall clock may seem out of order, in us.
const earliest = -100

func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("TEST_BENCHPROXY")
	if path == "" {
		t.Fatal("TEST_BENCHPROXY is not set: run this through scripts/load-test.sh")
	}
	return path
}

// TestKernelStamps holds that with all cores busy every read of 256 streams is stamped by the kernel, but for a stated share,
// in order, and never before the engine's write. What the error is, is a figure: it is printed.
func TestKernelStamps(t *testing.T) {
	cfg := config{binary: binary(t), streams: 256, events: 40, rate: 20, rounds: 1, busy: true}
	sides, err := measure(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i, clock := range []exchange.StampClock{exchange.ClockKernel, exchange.ClockRead} {
		s := sides[i]
		if s.Answers != cfg.streams || s.Events != cfg.streams*cfg.events || len(s.errors)+s.Merged != s.Events {
			t.Errorf("%s: %d answers, %d events, %d of them last in their read, %d merged", s.Name, s.Answers, s.Events, len(s.errors), s.Merged)
		}
		if others := s.Answers - s.Clocks[clock]; float64(others) > otherClock*float64(s.Answers) {
			t.Errorf("%s: %d of %d answers have another clock: %v", s.Name, others, s.Answers, s.Clocks)
		}
		if s.Unsort != 0 || s.Least < earliest {
			t.Errorf("%s: %d reads out of order, the earliest %v us after its write", s.Name, s.Unsort, s.Least)
		}
	}
	var table strings.Builder
	if err := print(&table, cfg, sides); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
}

// TestOutput runs the program as a user does.
func TestOutput(t *testing.T) {
	args := []string{"-benchproxy", binary(t), "-streams", "4", "-events", "5", "-rate", "200", "-rounds", "2", "-idle"}
	var text, data bytes.Buffer
	if err := run(t.Context(), args, &text); err != nil || !strings.Contains(text.String(), "left alone") || !strings.Contains(text.String(), "kernel") {
		t.Errorf("%v: %s", err, text.String())
	}
	if err := run(t.Context(), append(args, "-json"), &data); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema int
		Sides  []side
	}
	if err := json.Unmarshal(data.Bytes(), &got); err != nil || got.Schema != 1 || len(got.Sides) != 2 {
		t.Fatalf("%v: %s", err, data.String())
	}
	for _, s := range got.Sides {
		if s.Answers != 8 || s.Events != 40 || s.Least > s.P50 || s.P50 > s.P99 || s.P99 > s.Max {
			t.Errorf("%+v", s)
		}
	}
	for _, bad := range [][]string{nil, {"-benchproxy", "x", "-rate", "0"}, {"-nonsense"}, {"-benchproxy", t.TempDir() + "/none"}} {
		if err := run(t.Context(), bad, &text); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestSamples holds how an answer is counted: two events in one read, one in two reads, one that is early.
func TestSamples(t *testing.T) {
	s := &side{Clocks: map[exchange.StampClock]int{}}
	x := &exchange.Exchange{}
	wall := x.Timeline.Wall.UnixNano()
	x.Timeline.Clock = exchange.ClockKernel
	x.Timeline.Reads = []exchange.Read{{At: 1000, Size: 20}, {At: 5000, Size: 4}, {At: 9000, Size: 6}, {At: 8000, Size: 10}, {At: 12000, Size: 0}}
	s.add(x, sim.Record{Writes: []sim.Write{
		{Body: 10, Wall: wall + 100, Token: true}, {Body: 20, Wall: wall + 400, Token: true}, {Body: 30, Wall: wall + 4000, Token: true},
		{Body: 40, Wall: wall + 8500, Token: true}, {Body: 40, Wall: wall + 9000},
	}})
	s.derive()
	if s.Events != 4 || s.Merged != 1 || s.Early != 1 || s.Unsort != 1 || len(s.errors) != 3 {
		t.Errorf("%+v", s)
	}
}
