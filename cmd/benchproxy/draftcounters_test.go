package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// drafter is an engine that drafts 6 tokens an answer, of which 4 are accepted in 3 steps; it generates 7 tokens.
type drafter struct {
	answers  atomic.Int64
	readings atomic.Int64
	running  atomic.Int64
	overlap  atomic.Int64 // readings while a request ran
	foreign  atomic.Int64 // tokens of another client
	idle     bool         // it counts drafts, and never drafts
	gate     chan struct{}
}

func (d *drafter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/metrics":
		d.readings.Add(1)
		d.overlap.Add(d.running.Load())
		n := d.answers.Load()
		drafts := n
		if d.idle {
			drafts = 0
		}
		fmt.Fprintf(w, "vllm:spec_decode_num_draft_tokens_total %d\nvllm:spec_decode_num_accepted_tokens_total %d\n", 6*drafts, 4*drafts)
		fmt.Fprintf(w, "vllm:spec_decode_num_drafts_total %d\nvllm:generation_tokens_total %d\n", 3*drafts, 7*n+d.foreign.Load())
	case "/v1/models":
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}`)
	case "/v1/chat/completions":
		d.running.Add(1)
		if d.gate != nil {
			<-d.gate
		}
		d.answers.Add(1)
		d.running.Add(-1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"model":"m","choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":7}}`)
	default:
		http.NotFound(w, r)
	}
}

// await waits until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.After(20 * time.Second); !holds(); {
		select {
		case <-end:
			t.Fatalf("in vain: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ready reports whether the capture has read the counters since its last exchange.
func (c *counting) read() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sources {
		if s.ready {
			return true
		}
	}
	return false
}

// stored is how many exchanges of the capture are in the store.
func stored(c *capture) int { return int(c.writer.Run().Counts.Stored) }

func storedRows(t *testing.T, c *capture) []exchange.Summary {
	t.Helper()
	var rows []exchange.Summary
	for row, err := range c.store.Summaries(c.s.run.ID) {
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

func TestCountersAroundWhatRanAlone(t *testing.T) {
	d := &drafter{}
	engine := httptest.NewServer(d)
	defer engine.Close()
	c := identifying(t, engine.URL)
	awaitDeployments(t, c, 1)
	await(t, "a reading before the first request", c.counting.read)
	chat(t, c)
	await(t, "the record of a request that ran alone", func() bool { return stored(c) == 1 })

	await(t, "a reading before the second", c.counting.read)
	d.gate = make(chan struct{})
	done := make(chan int, 2)
	for range 2 {
		go func() { done <- chat(t, c) }()
	}
	await(t, "two at once", func() bool { return d.running.Load() == 2 })
	close(d.gate)
	<-done
	<-done
	await(t, "the records of requests that ran together", func() bool { return stored(c) == 3 })

	await(t, "a reading before the last", c.counting.read)
	d.foreign.Add(100) // somebody else asks the engine
	chat(t, c)
	await(t, "the last record", func() bool { return stored(c) == 4 })
	rows := storedRows(t, c)
	x, _, err := c.store.Exchange(rows[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	closeCapture(t, c)
	for i, want := range []bool{true, false, false, false} {
		f := rows[i].Metrics[measure.DraftAcceptance]
		if f.Present() != want {
			t.Errorf("exchange %d: acceptance %+v, flags %q", i+1, f, rows[i].Flags)
		}
	}
	if f := rows[0].Metrics[measure.TokensPerStep]; math.Abs(f.Value-7./3) > 1e-9 || f.Basis != exchange.BasisReported {
		t.Errorf("tokens per step %+v", f)
	}
	if k := x.Counters; k == nil || k.Source != "vllm /metrics" || *k.Before.Generated != 0 || *k.After.Generated != 7 {
		t.Errorf("stored counters %+v", k)
	}
	if n := d.overlap.Load(); n != 0 {
		t.Errorf("%d readings while a request ran", n)
	}
}

// TestEngineThatNeverDraftsIsLeftAlone holds that readings which can say nothing end.
func TestEngineThatNeverDraftsIsLeftAlone(t *testing.T) {
	d := &drafter{idle: true}
	engine := httptest.NewServer(d)
	defer engine.Close()
	c := identifying(t, engine.URL)
	awaitDeployments(t, c, 1)
	for n := range counterPatience {
		await(t, "a reading", c.counting.read)
		chat(t, c)
		await(t, "the record", func() bool { return stored(c) == n+1 })
	}
	await(t, "the end of the readings", func() bool { return !c.counting.read() })
	before := d.readings.Load()
	chat(t, c)
	await(t, "the record of one more", func() bool { return stored(c) == counterPatience+1 })
	closeCapture(t, c)
	if n := d.readings.Load() - before; n != 0 {
		t.Errorf("%d readings of an engine that never drafted", n)
	}
}

func TestReadingsThatDoNotCome(t *testing.T) {
	lost := errors.New("lost")
	s := &counterSource{read: func(context.Context) (exchange.CounterReading, error) { return exchange.CounterReading{}, lost }}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range counterPatience + 1 {
		s.begin(gone) // taken back
	}
	if s.off {
		t.Error("readings that were taken back count as failed ones")
	}
	sink := &soloCounters{next: takeAll{}, source: s}
	for n := range counterPatience {
		if s.off {
			t.Errorf("given up after %d", n)
		}
		x := &exchange.Exchange{}
		if !sink.Offer(x) || x.Counters != nil {
			t.Errorf("offered: %+v", x.Counters)
		}
	}
	if !s.off {
		t.Error("an engine that does not answer is asked without end")
	}
}

type takeAll struct{}

func (takeAll) Offer(*exchange.Exchange) bool { return true }

// TestReplayReadsCountersBetweenRequests holds that a replay of one request at a time has draft figures, and one of
// several at once has none.
func TestReplayReadsCountersBetweenRequests(t *testing.T) {
	for concurrency, want := range map[string]int{"1": 4, "2": 0} {
		d := &drafter{}
		engine := httptest.NewServer(d)
		dir := t.TempDir()
		workload := writeWorkload(t, slices.Repeat([]string{`{"model":"m","messages":[{"role":"user","content":"a"}]}`}, 4)...)
		if code, _ := command(t, "replay", workload, "--target", engine.URL, "--store", dir, "--run", "r", "--concurrency", concurrency, "-q"); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		engine.Close()
		_, out := command(t, "store", "ls", "r", "--store", dir, "--json")
		if n := strings.Count(out, measure.FlagDraftCounters); n != want {
			t.Errorf("--concurrency %s: %d of 4 exchanges have draft figures, want %d", concurrency, n, want)
		}
		if n := d.overlap.Load(); n != 0 {
			t.Errorf("--concurrency %s: %d readings while a request ran", concurrency, n)
		}
	}
}

// command runs one command and gives its exit code and what it printed.
func command(t *testing.T, args ...string) (code int, stdout string) {
	t.Helper()
	var out, messages strings.Builder
	e := quietEnv(&messages)
	e.Args, e.Stdout, e.Stdin = args, &out, strings.NewReader("")
	e.Getenv, e.Environ = func(string) string { return "" }, func() []string { return nil }
	code = run(t.Context(), e)
	if code != 0 {
		t.Log(messages.String())
	}
	return code, out.String()
}

// writeWorkload is a workload file of chat requests.
func writeWorkload(t *testing.T, bodies ...string) string {
	t.Helper()
	var lines strings.Builder
	for i, body := range bodies {
		fmt.Fprintf(&lines, "{\"id\":\"q%d\",\"method\":\"POST\",\"path\":\"/v1/chat/completions\",\"headers\":{\"Content-Type\":\"application/json\"},\"body\":%s}\n", i, body)
	}
	file := filepath.Join(t.TempDir(), "w.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
