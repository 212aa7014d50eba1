package replay

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// endless is a run of so many exchanges that are made when they are asked for.
type endless struct{ n int }

func (e endless) at(i int) *exchange.Exchange {
	x := recorded(time.Duration(i)*time.Second, fmt.Sprintf(`{"model":"sim","stream":true,"max_tokens":4,"messages":[{"role":"user","content":"question %d"}]}`, i), eventStream,
		say("Good "), say("morning"), chatEnd)
	x.ID, x.Seq, x.Run = exchange.ID(fmt.Sprintf("01J%023d", i)), uint64(i+1), "R"
	return x
}

// Summaries are the rows, each as the rules of today derive it.
func (e endless) Summaries(exchange.ID) iter.Seq2[exchange.Summary, error] {
	return func(yield func(exchange.Summary, error) bool) {
		for i := range e.n {
			x := e.at(i)
			if !yield(measure.Summarize(x, measure.Analyze(x)), nil) {
				return
			}
		}
	}
}

// Exchange is the one that the id counts.
func (e endless) Exchange(id exchange.ID) (*exchange.Exchange, exchange.Summary, error) {
	var i int
	if _, err := fmt.Sscanf(string(id[3:]), "%d", &i); err != nil {
		return nil, exchange.Summary{}, err
	}
	return e.at(i), exchange.Summary{}, nil
}

// keptBy is what a revalidation of so many exchanges holds at its end, in bytes.
func keptBy(tb testing.TB, n int) int64 {
	tb.Helper()
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	run := exchange.Run{ID: "R", State: exchange.RunComplete, Counts: exchange.RunCounts{Stored: int64(n)}}
	last := int64(0)
	judged := 0
	r, err := Revalidate(context.Background(), endless{n}, &run, RevalidateOptions{Limit: 1000, Each: func(*Judged) error {
		if judged++; judged == n {
			last = live()
		}
		return nil
	}})
	if err != nil || r.Judged != n || r.Verdict() != nil {
		tb.Fatalf("%d judged: %v, %v", r.Judged, err, r.Verdict())
	}
	return last - before
}

// TestRevalidationMemory holds that what a revalidation keeps of each exchange is a line: 100,000 of them stay below
// 256 MiB by far.
func TestRevalidationMemory(t *testing.T) {
	const bound, small, large = 256 << 20, 500, 3_000
	each := float64(keptBy(t, large)-keptBy(t, small)) / (large - small)
	if all := each * 100_000; all > bound/2 {
		t.Errorf("%.0f bytes of each exchange are kept: %.0f MiB of 100,000", each, all/(1<<20))
	}
}

// BenchmarkRevalidationMemory measures it with 100,000 exchanges.
func BenchmarkRevalidationMemory(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(keptBy(b, 100_000))/(1<<20), "MiB-kept")
	}
}
