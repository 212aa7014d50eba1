package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// summaryMetrics are the metrics of a closing summary, in order.
var summaryMetrics = []string{
	measure.TTFTMS, measure.PrefillTPS, measure.DecodeTPS, measure.TotalWallMS, measure.AddedP50US, measure.AddedP99US, measure.ProxyQueueMS,
}

// printSummary tells what a run came to: its state, its outcomes, and the figures of its complete exchanges.
func printSummary(w io.Writer, run *exchange.Run, sum measure.Run) {
	if run != nil {
		fmt.Fprintf(w, "\nrun %s  %s  %s\n", runName(*run), run.State, countsText(run.Counts))
	} else {
		fmt.Fprintf(w, "\n%d exchanges measured, nothing kept\n", sum.Exchanges)
	}
	if sum.Exchanges == 0 {
		return
	}
	fmt.Fprintf(w, "outcomes  %s\n", outcomesText(sum.Outcomes))
	if run != nil && run.Drafting != nil {
		fmt.Fprintf(w, "drafts    %s\n", draftingText(run.Drafting, sum))
	}
	if run != nil && run.Instrument != nil {
		fmt.Fprintln(w, instrumentText(run.Instrument))
	}
	fmt.Fprintln(w)
	if slices.ContainsFunc(sum.Metrics, func(m measure.RunMetric) bool { return m.Summary.N > 0 }) {
		printRunMetrics(w, sum, summaryMetrics)
	}
}

// printRunMetrics is the table of a run's figures: one line a metric, with the spread beside the median.
func printRunMetrics(w io.Writer, sum measure.Run, names []string) {
	t := table{cols: []column{{head: "METRIC"}, {head: "n", right: true}, {head: "MEDIAN", right: true}, {head: "MIN", right: true},
		{head: "MAX", right: true}, {head: "UNIT"}, {head: "LEFT OUT"}}}
	for _, name := range names {
		m := sum.Metric(name)
		t.add(name, strconv.Itoa(m.Summary.N), value(m.Summary.Median, m.Basis), value(m.Summary.Min, m.Basis), value(m.Summary.Max, m.Basis),
			m.Unit, excludedText(m.Excluded))
	}
	t.print(w)
	fmt.Fprintln(w, "- absent, ~ estimated; medians over complete exchanges")
	if sum.Unsampled > 0 {
		fmt.Fprintf(w, "figures are of the first %d exchanges; %d later ones are only counted\n", sum.Generated-sum.Unsampled, sum.Unsampled)
	}
	if sum.Outdated > 0 {
		fmt.Fprintf(w, "the figures of %d exchanges were derived by rules of another version; store show derives them anew\n", sum.Outdated)
	}
}

func value(v *float64, basis exchange.Basis) string {
	if v == nil {
		return "-"
	}
	return figure(exchange.Figure{Value: *v, Basis: basis}, 1)
}

func excludedText(why map[exchange.Reason]int) string {
	var parts []string
	for _, r := range slices.Sorted(maps.Keys(why)) {
		parts = append(parts, fmt.Sprintf("%d %s", why[r], r))
	}
	return strings.Join(parts, ", ")
}

func runName(r exchange.Run) string {
	if r.Name == "" {
		return string(r.ID)
	}
	return printable(r.Name) + " " + string(r.ID)
}

func countsText(c exchange.RunCounts) string {
	text := fmt.Sprintf("%d stored", c.Stored)
	if c.Truncated > 0 {
		text += fmt.Sprintf(" (%d truncated)", c.Truncated)
	}
	if c.Dropped > 0 {
		var parts []string
		for _, why := range slices.Sorted(maps.Keys(c.DropWhy)) {
			parts = append(parts, fmt.Sprintf("%d %s", c.DropWhy[why], why))
		}
		text += fmt.Sprintf(", %d dropped: %s", c.Dropped, strings.Join(parts, ", "))
	}
	return text
}

func outcomesText[N int | int64](outcomes map[exchange.Outcome]N) string {
	var parts []string
	for _, o := range slices.Sorted(maps.Keys(outcomes)) {
		parts = append(parts, fmt.Sprintf("%s %d", o, outcomes[o]))
	}
	return strings.Join(parts, ", ")
}
