package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/sim"
	"github.com/benchproxy/benchproxy/test/load/rig"
)

// two is an answer of two events: the first is not content.
func two(id string) (got, sim.Record) {
	r := sim.Record{Writes: []sim.Write{{Wall: 1_000_000, Body: 10}, {Wall: 2_000_000, Body: 20, Token: true}, {Wall: 3_000_000, Body: 30, Token: true}}}
	r.Headers = []exchange.Header{{Name: "X-Request-Id", Value: id}}
	return got{id: id, sent: 500_000, done: 3_200_000, size: 30, reads: []rig.Read{{At: 1_100_000, Body: 10}, {At: 3_200_000, Body: 30}}}, r
}

func TestTimes(t *testing.T) {
	g, r := two("1")
	for name, x := range map[string]struct{ got, want []float64 }{
		"first token":  {firstToken(g, r), []float64{2700}},
		"event delays": {eventDelays(g, r), []float64{1200, 200}},
		"whole answer": {wholeAnswer(g, r), []float64{2700}},
	} {
		if len(x.got) != len(x.want) {
			t.Errorf("%s: %v, want %v", name, x.got, x.want)
			continue
		}
		for i := range x.want {
			if math.Abs(x.got[i]-x.want[i]) > 1e-9 {
				t.Errorf("%s: %v, want %v", name, x.got, x.want)
			}
		}
	}
	g.reads = g.reads[:1]
	if got := append(firstToken(g, r), eventDelays(g, r)...); len(got) > 0 {
		t.Errorf("events that never came have times %v", got)
	}
	r.Writes = r.Writes[:1]
	if got := firstToken(g, r); got != nil {
		t.Errorf("a stream without a token has a first one at %v", got)
	}
}

// TestGather holds that an answer counts only when it is whole by the engine's account.
func TestGather(t *testing.T) {
	whole, r := two("1")
	cut, failed, stray := whole, whole, whole
	cut.size = 29
	failed.err = io.ErrUnexpectedEOF
	stray.id = "2"
	p := &playing{scenario: scenario{per: "event", samples: eventDelays}, answers: [][]got{{whole, cut}, {failed, stray}}}
	x := p.gather(map[string]sim.Record{"1": r})
	if x.requests != 4 || x.failed != 3 || x.units != 2 || len(x.samples) != 2 || x.samples[0] > x.samples[1] {
		t.Errorf("%+v", x)
	}
}

// played is a round with these medians, in us.
func played(base, proxy, record, other float64) map[string]batch {
	one := func(us float64) batch {
		return batch{samples: []float64{us}, requests: 1, units: 1, cpu: time.Duration(us) * time.Microsecond, wall: time.Second}
	}
	return map[string]batch{direct: one(base), proxied: one(proxy), records: one(record), compare: one(other)}
}

func TestReport(t *testing.T) {
	cfg := config{rounds: 3, streams: 10, targets: insideNames, only: measured(), noise: 10, command: "make this", commit: "abc"}
	r := newReport(cfg)
	for _, name := range []string{"events", "ttft", "load"} {
		s := scenario{name: name, per: "event", queue: name == "load"}
		r.add(s, played(100, 140, 150, 200)) // added: 50 of 100
		r.add(s, played(900, 930, 950, 1100))
		r.add(s, played(100, 120, 130, 300))
	}
	failed := played(1, 1, 1, 1)
	failed[compare] = batch{requests: 2, failed: 2}
	r.add(scenario{name: "json"}, failed)
	r.Memory = []memoryRow{{Target: records, Streams: 10, PerStream: 2048}}
	r.Gone = []goneRow{{Target: records, N: 2, P50: quantile([]float64{1, 3}, 0.5), Max: quantile([]float64{1, 3}, 1)}, {Target: proxied, Missed: 2}}
	r.finish(cfg)
	want := []float64{50.0 / 200, 50.0 / 200, 150.0 / 300, 2, 3, 0, 0, 0}
	if len(r.Budgets) != len(want) {
		t.Fatalf("there are %d budgets, want %d", len(r.Budgets), len(want))
	}
	for i, b := range r.Budgets {
		if b.Value == nil || math.Abs(*b.Value-want[i]) > 1e-9 {
			t.Errorf("%s: %s, want %g", b.What, number(b.Value), want[i])
		}
	}
	var table bytes.Buffer
	if err := r.print(&table); err != nil {
		t.Fatal(err)
	}
	for _, cell := range []string{"+50 [30..50]", "+200 [100..200]", "100 [100..900]", "2 of 2", "2.00 / 3.00 / 0", "- / - / 2", "<= 0.45"} {
		if !strings.Contains(table.String(), cell) {
			t.Errorf("the table lacks %q:\n%s", cell, table.String())
		}
	}
	page := filepath.Join(t.TempDir(), "page.md")
	if err := r.writeMarkdown(page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"\n| | direct itself | proxy | record | reverseproxy |\n|---|--:|--:|--:|--:|\n| events p50 () | 100 [100..900] | +30 [20..40] | +50 [30..50] | +200 [100..200] |\n",
		"\n| CPU a small JSON request, record / reverseproxy | 0.50 | <= 0.45 | <= 0.3 | x | not met |\n",
		"\nWritten by `make this` at ", ", of commit abc;",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	if err := r.writeMarkdown(t.TempDir()); err == nil {
		t.Error("a page is written over a folder")
	}
	b, err := json.Marshal(r)
	if err != nil || !bytes.Contains(b, []byte(`"schema":2`)) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestRatioNeedsSomethingToDivideBy holds that a comparison that added nothing, or never ran, gives no ratio.
func TestRatioNeedsSomethingToDivideBy(t *testing.T) {
	cfg := config{targets: insideNames, only: []string{"events", "ttft"}, noise: 1}
	r := newReport(cfg)
	r.add(scenario{name: "events"}, played(100, 100, 150, 90))
	r.finish(cfg)
	for _, b := range r.Budgets[:2] {
		if b.Value != nil || b.Verdict != verdictMissing {
			t.Errorf("%s is %s: %s", b.What, number(b.Value), b.Verdict)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-benchproxy", "x", "-rounds", "0"}, {"-benchproxy", "x", "-noise", "0"}, {"-benchproxy", "x", "more"}, {"-what"},
		{"-benchproxy", "x", "-targets", "envoy"}, {"-benchproxy", "x", "-only", "ttft,"},
	} {
		if err := run(context.Background(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	err := run(context.Background(), []string{"-benchproxy", "/nowhere", "-reverseproxy", "/nowhere"}, io.Discard, io.Discard)
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a program that is not there was measured: %v", err)
	}
}
