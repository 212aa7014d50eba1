package main

import (
	"bufio"
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/telemetry"
	"github.com/benchproxy/benchproxy/recorder"
)

// counters are the counters of metrics, by their names with labels.
func counters(t *testing.T, m *telemetry.Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	out := map[string]float64{}
	for scan := bufio.NewScanner(w.Body); scan.Scan(); {
		name, value, ok := strings.Cut(scan.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && strings.Contains(name, "_total") {
			out[name] = v
		}
	}
	return out
}

// TestCountersWhileRecordingPauses holds that a disk that is full and free again shows in the counters of the recorder, and
// that none of them ever goes back.
func TestCountersWhileRecordingPauses(t *testing.T) {
	var full atomic.Bool
	store, err := recorder.Open(filepath.Join(t.TempDir(), "store"), recorder.Options{Harness: "test", FreeSpace: func(string) (int64, error) {
		if full.Load() {
			return 0, nil
		}
		return 1 << 50, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	const each = 3
	settled := make(chan struct{}, each)
	c := &capture{store: store}
	c.writer, err = store.NewWriter(exchange.Run{Mode: "record"}, recorder.WriterOptions{
		Derive:    func(x *exchange.Exchange) exchange.Summary { return measure.Summarize(x, measure.Analyze(x)) },
		OnStored:  func(exchange.Summary) { settled <- struct{}{} },
		OnDropped: func(exchange.ID, recorder.DropReason) { settled <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	m := telemetry.NewMetrics(telemetry.MetricsOptions{Version: "test", Recorder: c.recorderState})
	before := counters(t, m)
	lost := `benchproxy_record_dropped_total{reason="` + string(recorder.DropNoSpace) + `"}`
	for step, paused := range []bool{false, true, false, true} {
		full.Store(paused)
		for range each {
			x := &exchange.Exchange{ID: exchange.NewID(clock.Now()), Run: c.writer.Run().ID, Mode: "record", End: exchange.EndEOF, State: exchange.StateStored,
				Request: exchange.Request{Method: "GET", Target: "/", Body: exchange.NewBody(nil)}, Response: exchange.Response{Status: 200, Body: exchange.NewBody(nil)}}
			c.writer.Offer(x)
		}
		for range each {
			<-settled
		}
		now := counters(t, m)
		for name, v := range before {
			if w, there := now[name]; !there || w < v {
				t.Errorf("step %d: %s went from %g to %g", step, name, v, w)
			}
		}
		grown := "benchproxy_record_stored_total"
		if paused {
			grown = lost
		}
		if now[grown] != before[grown]+each {
			t.Errorf("step %d: %s went from %g to %g", step, grown, before[grown], now[grown])
		}
		before = now
	}
	if _, err := c.writer.Close(context.Background()); !errors.Is(err, exchange.ErrNoSpace) {
		t.Errorf("the run on a full disk is closed with %v", err)
	}
	full.Store(false)
	if _, err := c.writer.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
