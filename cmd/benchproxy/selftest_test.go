package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/selftest"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// waitErr NAME TEXT waits until a background process has printed the text on stderr.
func waitErr(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: wait_err NAME TEXT")
	}
	s := running(ts).running[args[0]]
	if !s.err.await(patience, func(text string) bool { return strings.Contains(text, args[1]) }) {
		ts.Fatalf("%s did not say %q:\n%s", args[0], args[1], s.err.String())
	}
}

// noHelpers holds that no process of the script's own environment is left, after the moment that the kernel may take.
func noHelpers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: no_helpers")
	}
	home := "HOME=" + ts.Getenv("HOME") + "\x00"
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		left := processesWith(home)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("processes are left: %q", left)
		}
	}
}

// processesWith are the command lines of all processes with that variable in their environment. Without /proc it finds none.
func processesWith(variable string) (lines []string) {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return []string{err.Error()}
	}
	for _, f := range files {
		environ, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(environ), variable) {
			continue // it has ended, or belongs to another user
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if err == nil && len(line) > 0 {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}

// selftestReport FILE holds the shape of a quick report. It looks at no time but for order.
func selftestReport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: selftest_report FILE")
	}
	var r selftest.Report
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.DisallowUnknownFields()
	ts.Check(dec.Decode(&r))
	if r.Schema != 1 || !exchange.ValidID(string(r.ID)) || r.Host.Cores != runtime.NumCPU() || len(r.Cells) != 4 || len(r.Noise) != 4 {
		ts.Fatalf("report of schema %d, id %q, %d cores, %d cells, %d floors", r.Schema, r.ID, r.Host.Cores, len(r.Cells), len(r.Noise))
	}
	for i, want := range []struct {
		load    string
		streams int
	}{{"idle", 1}, {"idle", 16}, {"busy", 1}, {"busy", 16}} {
		c := r.Cells[i]
		if c.Load != want.load || c.Streams != want.streams {
			ts.Fatalf("cell %d is %s %d", i, c.Load, c.Streams)
		}
		if wrong := cellProblem(c, r.Plan.Rounds); wrong != "" {
			ts.Fatalf("%s %d: %s", c.Load, c.Streams, wrong)
		}
	}
	if len(r.Rate.Steps) == 0 || r.Rate.Limit == "" {
		ts.Fatalf("rate %+v", r.Rate)
	}
}

// cellProblem is what is wrong with the shape of a cell, "" when nothing is.
func cellProblem(c selftest.Cell, rounds int) string {
	for name, s := range map[string]stat.Summary{
		"direct ttft": c.TTFT.Direct, "proxied ttft": c.TTFT.Proxied, "direct event": c.Event.Direct, "proxied event": c.Event.Proxied,
		"stamp": c.Stamp, "driver": c.Driver, "read": c.ReadReturn, "own cost": c.OwnCost,
	} {
		if s.N == 0 || !ordered(s.Min, s.Median, s.P90, s.P99, s.Max) {
			return fmt.Sprintf("%s is out of order: %+v", name, s)
		}
	}
	if c.TTFT.Added.N != rounds || c.TTFT.Added.Interval == nil || c.Noise == nil || *c.Noise <= 0 {
		return fmt.Sprintf("added %+v, noise %v", c.TTFT.Added, c.Noise)
	}
	if runtime.GOOS == "linux" && (c.Lost == nil || *c.Lost != 0) {
		return fmt.Sprintf("the kernel's stamps were not used: lost %v", c.Lost)
	}
	return ""
}

// ordered reports whether the values that are there do not go down.
func ordered(values ...*float64) bool {
	last := values[0]
	for _, v := range values[1:] {
		if v == nil {
			continue
		}
		if *v < *last {
			return false
		}
		last = v
	}
	return true
}

func TestInstrumentText(t *testing.T) {
	us := func(v float64) *float64 { return &v }
	idle := exchange.NoiseFloor{Load: exchange.LoadIdle, Streams: 1, US: us(41.2)}
	many := exchange.NoiseFloor{Load: exchange.LoadIdle, Streams: 256, US: us(910)}
	busy := exchange.NoiseFloor{Load: exchange.LoadBusy, Streams: 16, US: us(1234)}
	for _, c := range []struct {
		age   *float64
		noise []exchange.NoiseFloor
		want  string
	}{
		{us(7300), []exchange.NoiseFloor{idle, busy}, "this machine (selftest 2 h ago): differences below 42 us (1 stream) are noise; with all cores busy below 1300 us (16 streams)"},
		{us(10), []exchange.NoiseFloor{many, idle}, "this machine (selftest just now): differences below 42 us (1 stream), 910 us (256) are noise; not known with all cores busy"},
		{us(600), []exchange.NoiseFloor{busy}, "this machine (selftest 10 min ago): differences below 1300 us (16 streams) are noise with all cores busy; not known when idle"},
		{us(86400 * 9), nil, "this machine (selftest 9 days ago): there were too few samples to say which differences are noise"},
		{nil, []exchange.NoiseFloor{idle, busy}, "this machine: differences below 42 us (1 stream) are noise; with all cores busy below 1300 us (16 streams)"},
	} {
		if got := instrumentText(&exchange.Instrument{AgeS: c.age, Noise: c.noise}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if instrumentText(nil) != "" {
		t.Error("a text without a selftest")
	}
}

func TestLoadIsWarnedOf(t *testing.T) {
	for _, c := range []struct {
		load *float64
		want bool
	}{{nil, false}, {new(float64), false}, {func() *float64 { v := 3.5; return &v }(), true}} {
		var errOut bytes.Buffer
		p := &program{env: env{Stderr: &errOut}}
		if p.warnLoad(exchange.Host{Cores: 4, Load1: c.load}); (errOut.Len() > 0) != c.want {
			t.Errorf("load %v: said %q", c.load, errOut.String())
		}
	}
}

// testEnv is a process that can start this test's binary as benchproxy.
func testEnv() env {
	return env{Environ: func() []string { return append(os.Environ(), "BENCHPROXY_STORE=must-not-be-seen") }, Stderr: io.Discard}
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// TestHelperSaysWhyItEnded holds that the helper's own words are in the error, and that one which ended can be ended.
func TestHelperSaysWhyItEnded(t *testing.T) {
	h, err := startHelper(testEnv(), "sim", "sim", "--set", "ttft=soon")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, err = h.says(bounded(t), engineSays)
	if err == nil || !strings.Contains(err.Error(), "ttft=soon") || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("error %v", err)
	}
	if err := h.End(); err == nil || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("end: %v", err)
	}
}

// TestHelperEndsWithItsInput holds that a load of the cores stops when the one who asked for it is gone.
func TestHelperEndsWithItsInput(t *testing.T) {
	h, err := startHelper(testEnv(), "burner", "selftest", "--burn")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.says(bounded(t), burnerSays); err != nil {
		t.Fatal(err)
	}
	if err := h.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.ended:
		if h.result != nil {
			t.Errorf("ended with %v", h.result)
		}
	case <-bounded(t).Done():
		t.Fatal("it burns on")
	}
}

func TestHelperWaitEndsWithTheContext(t *testing.T) {
	h, err := startHelper(testEnv(), "sim", "sim", "--listen", "127.0.0.1:0", "--json")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := h.says(ctx, regexp.MustCompile("never")); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	if _, err := h.says(bounded(t), engineSays); err != nil {
		t.Fatal(err)
	}
	if err := h.End(); err != nil {
		t.Errorf("end: %v", err)
	}
}
