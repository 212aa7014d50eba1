package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// kindMetrics are those that a terminal shows of each model and scenario; --json has all.
var kindMetrics = [...]string{measure.TTFTMS, measure.PrefillTPS, measure.DecodeTPS}

// printKinds shows the ratios of each model and scenario, and of requests that ran together.
func printKinds(w io.Writer, r *compare.Report) {
	t := table{cols: []column{{head: "MODEL"}, {head: "SCENARIO"}, {head: "METRIC"}, {head: "RATIO", right: true}, {head: "INTERVAL"}, {head: "n", right: true}, {head: "VERDICT"}}}
	for _, k := range r.Parts {
		for _, m := range k.Metrics {
			if slices.Contains(kindMetrics[:], m.Name) {
				t.add(kindRow(k.Model, k.Scenario, m, m.N)...)
			}
		}
	}
	for _, k := range r.Waves {
		for _, m := range k.Metrics {
			scenario := strings.TrimSpace(fmt.Sprintf("%s %d at a time", k.Scenario, k.Streams))
			t.add(kindRow(k.Model, scenario, m, min(m.Takes[0], m.Takes[1]))...)
		}
	}
	if len(t.rows) == 0 {
		return
	}
	t.print(w)
	fmt.Fprintln(w, "by model and scenario; of requests that ran together n is the number of waves of the side that has fewer")
	fmt.Fprintln(w)
}

func kindRow(model, scenario string, m compare.Metric, n int) []string {
	count := strconv.Itoa(n)
	if m.Ratio == nil {
		count = "-"
	}
	return []string{cell(model), cell(scenario), m.Name, number(m.Ratio, 3), ratioInterval(m), count, verdictText(m)}
}

// cell is a name in a table, a dash where there is none.
func cell(name string) string {
	if name == "" {
		return "-"
	}
	return printable(name)
}
