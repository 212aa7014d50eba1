package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/selftest"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// printSelftest prints a report for people. Its last line is what the machine's numbers are worth.
func printSelftest(w io.Writer, r *selftest.Report) {
	printHost(w, r.Host)
	fmt.Fprintf(w, "\nThe proxy, recording, against the engine itself, in us (median of %d paired rounds, 95 %% interval):\n", r.Plan.Rounds)
	t := table{cols: []column{{head: "LOAD"}, {head: "STREAMS", right: true}, {head: "TIME"}, {head: "n", right: true},
		{head: "DIRECT p50", right: true}, {head: "p99", right: true}, {head: "PROXIED p50", right: true}, {head: "p99", right: true},
		{head: "ADDED p50", right: true}, {head: "INTERVAL"}, {head: "p99", right: true}}}
	for _, c := range r.Cells {
		addedRow(&t, c, "to first token", c.TTFT)
		addedRow(&t, c, "per event", c.Event)
	}
	t.print(w)
	fmt.Fprintf(w, "\nStamps against the engine's own writes, in us; events that are last in their read:\n")
	t = table{cols: []column{{head: "LOAD"}, {head: "STREAMS", right: true}, {head: "n", right: true}, {head: "p50", right: true},
		{head: "p99", right: true}, {head: "max", right: true}, {head: "READ STAMP p50", right: true}, {head: "p99", right: true},
		{head: "max", right: true}, {head: "UNSURE", right: true}, {head: "MERGED", right: true}, {head: "LOST", right: true}, {head: "NOISE BELOW", right: true}}}
	for _, c := range r.Cells {
		t.add(c.Load, strconv.Itoa(c.Streams), strconv.Itoa(c.Stamp.N), micros(c.Stamp.P50), micros(c.Stamp.P99), micros(c.Stamp.Max),
			micros(c.ReadReturn.P50), micros(c.ReadReturn.P99), micros(c.ReadReturn.Max), percent(c.Unsure), percent(c.Merged), percent(c.Lost), micros(c.Noise))
	}
	t.print(w)
	fmt.Fprintf(w, "- below the sample floor; read stamp: what the client of replay would say without the kernel's stamps;\nunsure: left out, the engine was held up in its own write\n\n%s\n", rateText(r.Rate))
	i := r.Instrument()
	fmt.Fprintf(w, "%s\n", instrumentText(&i))
}

func printHost(w io.Writer, h exchange.Host) {
	virtual := "virtual or not: unknown"
	if h.Virtual != nil {
		virtual = map[bool]string{true: "virtual machine", false: "no virtual machine"}[*h.Virtual]
	}
	load := "unknown"
	if h.Load1 != nil {
		load = fmt.Sprintf("%.2f", *h.Load1)
	}
	fmt.Fprintf(w, "%s  %s/%s  kernel %s  %s, %d cores, GOMAXPROCS %d  governor %s  clocksource %s  %s  load before %s\n",
		known(h.Name), h.OS, h.Arch, known(h.Kernel), known(h.CPU), h.Cores, h.MaxProcs, known(h.Governor), known(h.Clocksource), virtual, load)
}

// known is a fact about the machine, or that it is not to be had.
func known(s *string) string {
	if s == nil {
		return "unknown"
	}
	return printable(*s)
}

func addedRow(t *table, c selftest.Cell, what string, a selftest.Added) {
	t.add(c.Load, strconv.Itoa(c.Streams), what, strconv.Itoa(a.Proxied.N), micros(a.Direct.P50), micros(a.Direct.P99),
		micros(a.Proxied.P50), micros(a.Proxied.P99), micros(a.Added.Median), intervalText(a.Added.Interval), micros(a.AddedP99))
}

func micros(v *float64) string { return value(v, exchange.BasisMeasured) }

func percent(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f %%", 100**v)
}

func intervalText(i *stat.Interval) string {
	if i == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f to %.1f", i.Lo, i.Hi)
}

// rateLimits say what stood against a higher event rate.
var rateLimits = map[string]string{
	selftest.LimitProxy:  "beyond, the proxy does not keep up",
	selftest.LimitDriver: "beyond, the machine has no room for engine and client even without the proxy",
	selftest.LimitEngine: "beyond, the scripted engine does not keep its own times",
	selftest.LimitStall:  "beyond, a write of the proxy stalls",
	selftest.LimitSearch: "higher rates were not tried",
}

func rateText(r selftest.Rate) string {
	if r.EventsPerSecond == nil {
		return fmt.Sprintf("highest event rate without a stall, %d streams: none of those tried; %s", r.Streams, rateLimits[r.Limit])
	}
	return fmt.Sprintf("highest event rate without a stall, %d streams: %.0f events/s; %s", r.Streams, *r.EventsPerSecond, rateLimits[r.Limit])
}
