package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/test/load/rig"
)

// TestChange holds that what moves both in a round moves no difference, and when there is an interval.
func TestChange(t *testing.T) {
	base := rounds(12, 100, 0.9)
	own := slices.Clone(base)
	for i := range own {
		own[i] += 5
	}
	c := changeOf(own, base)
	if c == nil || c.Range == nil || c.Value < 4.999 || c.Value > 5.001 || c.Range.Lo < 4.999 || c.Range.Hi > 5.001 {
		t.Errorf("%+v", c)
	}
	if got := c.String(); !strings.HasPrefix(got, "+5.0 [+5.0..+5.0], +") {
		t.Errorf("it is told as %s", got)
	}
	noise := changeOf(rounds(12, 100, 0.3), rounds(12, 100.5, 0.3))
	if noise.Range == nil || noise.Range.Lo > 0 || noise.Range.Hi < 0 {
		t.Errorf("no change has the range %+v", noise.Range)
	}
	if few := changeOf(own[:3], base[:3]); few == nil || few.Range != nil {
		t.Errorf("three rounds give %+v", few)
	}
	if changeOf(own[:3], base) != nil || changeOf(nil, nil) != nil || (*change)(nil).String() != "-" {
		t.Error("rounds that are missing are compared")
	}
}

// TestTracingTable holds that the table has what tracing changes of times and of processor time, and none of it without.
func TestTracingTable(t *testing.T) {
	for _, with := range []bool{true, false} {
		cfg := config{rounds: 6, targets: []string{direct, records, compare}, only: []string{"events", "load"}, noise: 1}
		if with {
			cfg.targets = []string{direct, records, traced, unsampled, compare}
		}
		r := newReport(cfg)
		for range cfg.rounds {
			for _, name := range cfg.only {
				round := played(100, 110, 150, 200)
				delete(round, proxied)
				if with {
					round[traced] = played(0, 0, 157, 0)[records]
					round[unsampled] = played(0, 0, 149, 0)[records]
				}
				r.add(scenario{name: name, per: "event", queue: name == "load"}, round)
			}
		}
		r.finish(cfg)
		var table bytes.Buffer
		if err := r.print(&table); err != nil {
			t.Fatal(err)
		}
		text := table.String()
		for _, want := range []string{"+7.0 [+7.0..+7.0], +4.7 %", "-1.0 [-1.0..-1.0], -0.7 %"} {
			if strings.Contains(text, want) != with {
				t.Errorf("traced %v: %q is wrong in\n%s", with, want, text)
			}
		}
		if strings.Contains(text, "tracing: us more") != with || strings.Contains(text, "load p50") {
			t.Errorf("traced %v:\n%s", with, text)
		}
	}
}

// TestCollector holds that a collector is started, takes spans and tells that it did, and that a run whose proxy sent
// none is no measurement.
func TestCollector(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := &bench{}
	defer b.Close()
	vars, err := b.tracing(ctx, unsampled)
	if err != nil {
		t.Fatal(err)
	}
	if len(vars) != 2 || !strings.HasSuffix(vars[0], b.spans.url) || !strings.HasSuffix(vars[1], "=always_off") {
		t.Errorf("the variables are %q", vars)
	}
	first := b.spans
	if vars, err = b.tracing(ctx, traced); err != nil || len(vars) != 1 || b.spans != first {
		t.Errorf("the variables are %q, %v", vars, err)
	}
	if err := b.exported(ctx); err != nil {
		t.Errorf("nothing is traced, and that is %v", err)
	}
	if n, err := b.spans.received(ctx); n != 0 || err != nil {
		t.Errorf("%d requests came, %v", n, err)
	}
	resp, err := http.Post(b.spans.url+"/v1/traces", "application/x-protobuf", strings.NewReader("spans"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if n, asked := b.spans.received(ctx); resp.StatusCode != 200 || len(body) != 0 || err != nil || n != 1 || asked != nil {
		t.Errorf("status %d, body %q, %v; %d came, %v", resp.StatusCode, body, err, n, asked)
	}
	b.spans.Kill()
	if _, err := b.spans.received(ctx); err == nil {
		t.Error("a collector that is gone answers")
	}
}

// TestCollectorWithoutSpans holds that waiting for spans that never come ends as an error.
func TestCollectorWithoutSpans(t *testing.T) {
	b := &bench{}
	defer b.Close()
	if _, err := b.tracing(t.Context(), traced); err != nil {
		t.Fatal(err)
	}
	p, err := rig.Start("/bin/sh", "-c", "echo a proxy that traces nothing >&2; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Err.Match(t.Context(), regexp.MustCompile("nothing\n")); err != nil {
		t.Fatal(err)
	}
	b.targets = []*target{{name: traced, proxy: &rig.Proxy{Process: p}}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.exported(ctx); err == nil || !strings.Contains(err.Error(), "a proxy that traces nothing") {
		t.Errorf("it is %v", err)
	}
}

// TestProcessesInheritNoTracing holds that only what is said to be traced is.
func TestProcessesInheritNoTracing(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://nowhere:1")
	for _, vars := range [][]string{nil, {"OTEL_TRACES_SAMPLER=always_off"}} {
		p, err := rig.StartWith(vars, "/usr/bin/env")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		m, err := p.Out.Match(t.Context(), regexp.MustCompile(`(?s)^.*PATH=.*$`))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(m[0], "OTEL_"); n != len(vars) || n > 0 && !strings.Contains(m[0], vars[0]) {
			t.Errorf("with %q the process has %s", vars, m[0])
		}
	}
}
