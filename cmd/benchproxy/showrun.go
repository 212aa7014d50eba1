package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report/build"
)

// storeShowRun shows a run: what it is, and what was read of the engines behind it.
func (p *program) storeShowRun(c *cli.Context, r reading, run exchange.Run) error {
	var sum measure.Run
	if run.Drafting != nil {
		var err error
		if sum, err = totalOf(c.Context, r, run.ID); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		row := runRow{Schema: 1, Run: run}
		if d := run.Drafting; d != nil && d.BaselineTPS != nil {
			f := sum.DraftSpeedup(*d.BaselineTPS)
			row.DraftSpeedup = &f
		}
		return json.NewEncoder(p.Stdout).Encode(row)
	}
	catalog, err := engines.Builtin() // a store needs no config
	if err != nil {
		return err
	}
	printRun(p.Stdout, run)
	printRows(p.Stdout, []namedValue{{"drafts", draftingText(run.Drafting, sum)}})
	for _, d := range run.Deployments {
		fmt.Fprintln(p.Stdout)
		printDeployment(p.Stdout, catalog, d)
	}
	return nil
}

// totalOf is what the exchanges of a run come to.
func totalOf(ctx context.Context, r reading, run exchange.ID) (measure.Run, error) {
	total := measure.Totals{Limit: sampleLimit}
	for row, err := range rowsOf(ctx, r, run) {
		if err != nil {
			return measure.Run{}, err
		}
		total.Add(&row)
	}
	return total.Run(), nil
}

func printRun(w io.Writer, run exchange.Run) {
	fmt.Fprintf(w, "run %s  %s  %s\n", runName(run), run.State, countsText(run.Counts))
	when := func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
	ended := ""
	if run.Ended != nil {
		ended = when(*run.Ended)
	}
	rows := []namedValue{{"mode", run.Mode}, {"started", when(run.Started)}, {"ended", ended}, {"harness", run.Harness},
		{"made by", madeBy(run)}, {"command", strings.Join(run.Command, " ")}, {"labels", valuesText(run.Labels, "=")}, {"upstreams", valuesText(run.Upstreams, " ")},
		{"outcomes", outcomesText(run.Counts.Outcomes)}}
	if run.Pinned {
		rows = append(rows, namedValue{"pinned", "yes"})
	}
	rows = append(rows, replayRows(run.Replay)...)
	if len(run.Deployments) == 0 {
		rows = append(rows, namedValue{"engine", strings.TrimSpace(run.Identity.Engine + " " + run.Identity.Version + " (nothing was read of it)")})
	}
	printRows(w, rows)
	if run.Instrument != nil {
		fmt.Fprintln(w, instrumentText(run.Instrument))
	}
}

// madeBy is the command line that made a run, "" when it is not on record.
func madeBy(run exchange.Run) string {
	if len(run.MadeBy) == 0 {
		return ""
	}
	return "benchproxy " + build.ShellWords(run.MadeBy)
}

// printRows lists names and values, without those that have none.
func printRows(w io.Writer, rows []namedValue) {
	for _, r := range rows {
		if r.value != "" {
			fmt.Fprintf(w, "  %-13s %s\n", r.name, printable(r.value))
		}
	}
}

// valuesText is a map in one line, sorted.
func valuesText(m map[string]string, between string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, k+between+m[k])
	}
	return strings.Join(parts, ", ")
}

// printDeployment tells what was read of one engine, and which fields of its fingerprint are known.
func printDeployment(w io.Writer, catalog *engines.Catalog, d exchange.Deployment) {
	name := engineText(catalog, d.Identity)
	if d.Why == exchange.ReadAtAnswer {
		name += ", the model of an answer"
	}
	fmt.Fprintf(w, "%s: %s\n", printable(d.Upstream), printable(name))
	rows := []namedValue{{"id", d.Engine}, {"read", strings.TrimSpace(d.ReadAt.Local().Format("2006-01-02 15:04:05") + ", " + whyText(d.Why))},
		{"evidence", d.Evidence}}
	if d.Inner != nil {
		rows = append(rows, namedValue{"in front of", engineText(catalog, *d.Inner)})
	}
	rows = append(append(rows, deploymentFields(d)...), weightsRows(d.Weights)...)
	if f := d.Fingerprint; f != nil {
		rows = append(rows, namedValue{"fingerprint", f.Digest}, namedValue{"known", valuesText(f.Known, " ")},
			namedValue{"unknown", strings.Join(f.Unknown, ", ")})
	}
	printRows(w, rows)
}

// whyText says when in a run something was read.
func whyText(why string) string {
	switch why {
	case exchange.ReadAtStart:
		return "at the start"
	case exchange.ReadAtRestart:
		return "again, for it had been away"
	case exchange.ReadAtAnswer:
		return "of an answer"
	case exchange.ReadOfFile:
		return "when the model file was read"
	}
	return why
}

// weightsRows are what a model file states beside its digest, which is a field of the deployment.
func weightsRows(f *exchange.Weights) []namedValue {
	if f == nil {
		return nil
	}
	return []namedValue{{"model file", f.Name}, {"  states", strings.Trim(strings.Join([]string{f.Architecture, f.Model, knownText(f.Quantization),
		contextText(f.Context)}, ", "), ", ")}}
}

func contextText(n *int64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("context %d", *n)
}
