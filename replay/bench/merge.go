package bench

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
)

// merged is what the suites of a sitting come to together, as its run keeps it. broken is why the sitting ended early, nil
// when it did not.
func merged(plan string, suites []suiteEnd, broken error) exchange.Replay {
	out := exchange.Replay{Workload: plan, Plan: plan, Source: "benchmark", Driver: string(replay.LoopWaves)}
	for _, s := range suites {
		r := s.suite.Report(s.ran)
		add(&out.Items, r.Items)
		out.Waves = append(out.Waves, r.Waves...)
		out.Cases = append(out.Cases, r.Cases...)
		out.Settings.Concurrency = max(out.Settings.Concurrency, widest(r.Waves))
		if out.Incomplete == "" {
			out.Incomplete = r.Incomplete
		}
	}
	out.Settings.Targets, out.Settings.Repeats, out.Settings.Warmup = 1, 1, out.Items.Warmups
	if broken != nil && out.Incomplete == "" {
		out.Incomplete = "the benchmark was ended: " + broken.Error()
	}
	return out
}

func add(to *exchange.ItemCounts, n exchange.ItemCounts) {
	to.Planned += n.Planned
	to.Complete += n.Complete
	to.Failed += n.Failed
	to.Partial += n.Partial
	to.Unsent += n.Unsent
	to.Broken += n.Broken
	to.Requests += n.Requests
	to.Retries += n.Retries
	to.Warmups += n.Warmups
}

func widest(waves []exchange.WaveRate) (n int) {
	for i := range waves {
		n = max(n, waves[i].Streams)
	}
	return n
}
