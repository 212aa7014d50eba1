package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// identify reads what answers behind each target, before anything is measured.
func (r *replaying) identify(ctx context.Context) error {
	if err := r.discover(ctx); err != nil {
		return err
	}
	for n := range r.found {
		r.describe(ctx, n)
	}
	return nil
}

// describe tells the run what was found behind a target.
func (r *replaying) describe(ctx context.Context, n int) {
	t, d := r.found[n].by, r.found[n].is
	if errors.Is(r.found[n].err, exchange.ErrUnreachable) {
		return // the first requests will tell
	}
	r.targets[n].session.SetIdentity(t.name, d.Identity)
	r.targets[n].writer.Describe(d)
	if r.s.bridge.catalog.NamesModels(d) {
		r.targets[n].models.Expect(d)
	}
	r.targets[n].count(ctx, newCounterSource(r.s.bridge.catalog, t, d))
	if !r.s.json && !r.s.quiet {
		note(r.env.Stderr, "%s", deploymentText(r.s.bridge.catalog, d))
	}
}

// replayDoc is the document of --json.
type replayDoc struct {
	Schema int            `json:"schema"`
	Runs   []replayResult `json:"runs"`
}

// print tells what the runs came to.
func (r *replaying) print(w io.Writer, results []replayResult) error {
	if r.s.json {
		return json.NewEncoder(w).Encode(replayDoc{Schema: 1, Runs: results})
	}
	for i := range results {
		printReplay(w, &results[i])
	}
	if slices.ContainsFunc(results, func(res replayResult) bool { return res.Run.Replay.Items.Complete == 0 }) {
		return nil
	}
	switch {
	case len(results) > 1:
		fmt.Fprintf(w, "\nbenchproxy compare %s %s\n", nameOf(results[0].Run), nameOf(results[1].Run))
	case r.origin != "":
		fmt.Fprintf(w, "\nbenchproxy compare %s %s\n", r.origin, nameOf(results[0].Run))
	}
	return nil
}

// replayMetrics are the metrics of a replay's summary. Nothing was passed on, so there is no time that was added.
var replayMetrics = []string{measure.TTFTMS, measure.PrefillTPS, measure.DecodeTPS, measure.TPOTMS, measure.WallTPS, measure.TotalWallMS}

// nameOf is how a run is named on the command line.
func nameOf(r exchange.Run) string {
	if r.Name != "" && printable(r.Name) == r.Name && !strings.ContainsAny(r.Name, " '\"$`\\") {
		return r.Name
	}
	return string(r.ID)
}

func printReplay(w io.Writer, res *replayResult) {
	p := res.Run.Replay
	fmt.Fprintf(w, "\nrun %s  %s  %s\n", runName(res.Run), res.Run.State, countsText(res.Run.Counts))
	fmt.Fprintf(w, "items     %s\n", itemsText(p.Items))
	if res.Summary.Exchanges > 0 {
		fmt.Fprintf(w, "outcomes  %s\n", outcomesText(res.Summary.Outcomes))
	}
	if res.Load.Peak > 0 {
		fmt.Fprintf(w, "load      %s\n", loadText(&res.Load))
	}
	if p.Incomplete != "" {
		fmt.Fprintf(w, "incomplete: %s\n", printable(p.Incomplete))
	}
	if p.Schedule != nil {
		printSchedule(w, p)
	}
	if len(p.Waves) > 0 {
		printWaves(w, p.Waves)
	}
	if p.EventGaps != nil {
		fmt.Fprintf(w, "gaps      %s\n", tailText(p.EventGaps))
	}
	if res.Run.Instrument != nil {
		fmt.Fprintln(w, instrumentText(res.Run.Instrument))
	}
	if slices.ContainsFunc(res.Summary.Metrics, func(m measure.RunMetric) bool { return m.Summary.N > 0 }) {
		fmt.Fprintln(w)
		printRunMetrics(w, res.Summary, replayMetrics)
	}
}

// itemsText is what became of the items. What did not happen is left out.
func itemsText(c exchange.ItemCounts) string {
	text := fmt.Sprintf("%d planned, %d complete", c.Planned, c.Complete)
	for _, part := range []struct {
		n    int
		what string
	}{{c.Failed, "failed"}, {c.Partial, "partial"}, {c.Withheld, "withheld"}, {c.Broken, "broken off"}, {c.Unsent, "not sent"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	text += "; " + countOf(c.Requests, "request")
	if c.Retries > 0 {
		text += fmt.Sprintf(", %d of them after a 503", c.Retries)
	}
	if c.Warmups > 0 {
		text += fmt.Sprintf("; %s before", countOf(c.Warmups, "warm-up"))
	}
	return text
}

func printSchedule(w io.Writer, p *exchange.Replay) {
	s := p.Schedule
	fmt.Fprintf(w, "schedule  %d of %d planned requests sent", s.Sent, s.Planned)
	if s.PlannedRate != nil && s.AchievedRate != nil {
		fmt.Fprintf(w, ", %.2f of %.2f a second", *s.AchievedRate, *s.PlannedRate)
	}
	fmt.Fprintf(w, "; at most %d at once\n", s.PeakInFlight)
	if s.Sent > 0 {
		t := table{cols: []column{{head: "MS"}, {head: "n", right: true}, {head: "P50", right: true}, {head: "P99", right: true}, {head: "MAX", right: true}}}
		for _, row := range []struct {
			name string
			v    exchange.Spread
		}{{"late", s.LagMS}, {"answer from sent", s.SentMS}, {"answer from planned", s.IntendedMS}, {"first token from sent", s.SentTTFT}, {"first token from planned", s.IntendedTTFT}} {
			t.add(row.name, fmt.Sprint(row.v.N), value(row.v.P50, exchange.BasisMeasured), value(row.v.P99, exchange.BasisMeasured), value(row.v.Max, exchange.BasisMeasured))
		}
		t.print(w)
	}
	if p.Invalid != "" {
		fmt.Fprintf(w, "INVALID as an open loop: %s\n", p.Invalid)
	}
}

// printWaves sums up the waves: each rate by its median over the waves that have it.
func printWaves(w io.Writer, waves []exchange.WaveRate) {
	failed, peak := 0, 0
	for _, v := range waves {
		if v.Failed > 0 {
			failed++
		}
		peak = max(peak, v.PeakLive)
	}
	fmt.Fprintf(w, "waves     %d, %d with a failed member; at most %d streams decoded at once\n", len(waves), failed, peak)
	t := table{cols: []column{{head: "WAVES"}, {head: "n", right: true}, {head: "MEDIAN", right: true}, {head: "MIN", right: true}, {head: "MAX", right: true}, {head: "UNIT"}, {head: "LEFT OUT"}}}
	for _, name := range []string{measure.AggregateDecodeTPS, measure.SteadyTPS, measure.BatchTPS} {
		var sample []float64
		basis, why := exchange.BasisMeasured, map[exchange.Reason]int{}
		for _, v := range waves {
			f := v.Figures[name]
			if !f.Present() {
				why[f.Reason]++
				continue
			}
			sample = append(sample, f.Value)
			if f.Basis == exchange.BasisEstimated {
				basis = f.Basis
			}
		}
		s := stat.Summarize(sample)
		t.add(name, fmt.Sprint(s.N), value(s.Median, basis), value(s.Min, basis), value(s.Max, basis), "tok/s", excludedText(why))
	}
	t.print(w)
}
