package build

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
)

// ParseTarget reads METRIC>=NUMBER or METRIC<=NUMBER, such as decode_tps>=100. The error wraps exchange.ErrUsage.
func ParseTarget(text string) (Target, error) {
	t := Target{Text: strings.TrimSpace(text)}
	name, value, ok := strings.Cut(t.Text, ">=")
	if !ok {
		name, value, ok = strings.Cut(t.Text, "<=")
		t.AtMost = true
	}
	t.Metric = strings.TrimSpace(name)
	v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	t.Value = v
	if !ok || err != nil || definitionOf(t.Metric) == "" {
		return Target{}, fmt.Errorf("%w: target %q is not METRIC>=NUMBER or METRIC<=NUMBER, such as decode_tps>=100", exchange.ErrUsage, text)
	}
	return t, nil
}

// missed reports whether a run missed the target; known is false when the run has no such number.
func (t *Target) missed(r *Run) (median float64, missed, known bool) {
	m := r.all.sum().Metric(t.Metric).Summary.Median
	if m == nil {
		return 0, false, false
	}
	return *m, t.AtMost && *m > t.Value || !t.AtMost && *m < t.Value, true
}

// targetsSection is what was to be reached, with what was missed first.
func (e *Evidence) targetsSection() (report.Section, bool) {
	s := report.Section{ID: "targets", Title: "Stated targets"}
	s.Table = report.Table{Formula: "median of the run against the stated number", Source: "targets as they were given to this report; exchanges of each run", Sample: "all exchanges of the run that give one",
		Columns: []report.Column{{Name: "Run", Key: true}, {Name: "Target", Key: true}, {Name: "median", Number: true, Digits: 1}, {Name: "reached"}}}
	var reached [][]report.Cell
	for _, r := range e.Runs {
		for i := range e.Targets {
			t := &e.Targets[i]
			row := []report.Cell{report.Text(r.Label), report.Text(t.Text)}
			switch median, missed, known := t.missed(r); {
			case !known:
				s.Table.Add(append(row, report.Absent("no_samples"), report.Text("no number").Toned(report.Marked))...)
			case missed:
				s.Table.Add(append(row, report.Number(median).In(evidenceID(r)), report.Text("missed").Toned(report.Bad))...)
			default:
				reached = append(reached, append(row, report.Number(median).In(evidenceID(r)), report.Text("reached").Toned(report.Good)))
			}
		}
	}
	s.Table.Rows = append(s.Table.Rows, reached...)
	return s, len(s.Table.Rows) > 0
}

// limitsSection is what this report cannot say.
func (e *Evidence) limitsSection() report.Section {
	s := report.Section{ID: "limits", Title: "Limits"}
	say := func(format string, args ...any) { s.Lead = append(s.Lead, fmt.Sprintf(format, args...)) }
	for _, r := range e.Runs {
		if r.Run.State != exchange.RunComplete {
			say("Run %s is %s: it is not the whole of what was planned.", r.Label, r.Run.State)
		}
		if !r.deviceKnown() {
			say("The device that %s ran on is not on record.", r.Label)
		}
		if r.Run.Instrument == nil {
			say("No selftest of the machine that recorded %s is on record: how small a difference it can tell is unknown.", r.Label)
		}
		if n := r.Run.Counts.Dropped; n > 0 {
			say("%d exchanges of %s were seen and not stored.", n, r.Label)
		}
		if n := r.all.sum().Truncated; n > 0 {
			say("%d records of %s were cut at a memory bound.", n, r.Label)
		}
		if n := r.all.flags["tokens_estimated"]; n > 0 {
			say("%d answers of %s carry no token count: events are counted in its place, and such numbers have a tilde.", n, r.Label)
		}
		if n := r.all.flags["buffered"]; n > 0 {
			say("%d answers of %s were held back on the way and came in bursts: they have no TTFT and no decode rate.", n, r.Label)
		}
		if n := r.all.flags["short_answer"]; n > 0 {
			say("%d answers of %s are shorter than half of their limit and no sample of a decode rate.", n, r.Label)
		}
	}
	for _, c := range e.Comparisons {
		if c.Report != nil && len(c.Report.Accepted) > 0 {
			say("%s was compared across differences that were accepted by name: %s.", c.name(), reasonsText(c.Report.Accepted))
		}
	}
	if e.Grid != nil {
		say("Cells of result files rest on one measurement each unless the file holds samples: ratios of those have no interval and are proof of nothing.")
		if n := e.Grid.index.replaced; n > 0 {
			say("%d cells have the point of another one of the same source: the last by file name counts.", n)
		}
	}
	if n := len(e.CellsLeft); n > 0 {
		say("JSON files of the result directories that are no cells were left out, %d: %s.", n, firstRunes(strings.Join(e.CellsLeft, ", "), excerptRunes))
	}
	if len(s.Lead) == 0 {
		s.Lead = []string{"None that the evidence tells of."}
	}
	return s
}

// deviceKnown reports whether the engine behind the run said what it ran on.
func (r *Run) deviceKnown() bool {
	return r.deviceNamed() != "" || slices.ContainsFunc(r.deployments(), func(d exchange.Deployment) bool { return d.ObservedDevice != nil })
}

// timelineSection is when each thing was made, in order.
func (e *Evidence) timelineSection() (report.Section, bool) {
	s := report.Section{ID: "when", Title: "When each run was made"}
	s.Table.Source = "wall clock of the measuring machine, UTC"
	s.Table.Columns = []report.Column{{Name: "Run", Key: true}, {Name: "id"}, {Name: "made by"}, {Name: "started"}, {Name: "ended"}, {Name: "state"}, {Name: "benchproxy"}}
	const form = "2006-01-02 15:04:05"
	for _, r := range e.Runs {
		ended := report.Absent("not_ended")
		if r.Run.Ended != nil {
			ended = report.Text(r.Run.Ended.UTC().Format(form))
		}
		s.Table.Add(report.Text(r.Label), report.Text(string(r.Run.ID)), report.Text(r.Run.Mode), report.Text(r.Run.Started.UTC().Format(form)), ended, report.Text(string(r.Run.State)), report.Text(r.Run.Harness))
	}
	return s, len(s.Table.Rows) > 0
}

// reproduceSection is how to make the evidence and this report again, and the digests by which it can be told to be the same.
func (e *Evidence) reproduceSection() report.Section {
	s := report.Section{ID: "reproduce", Title: "How to reproduce"}
	s.Table.Columns = []report.Column{{Name: "What", Key: true}, {Name: "Command or digest"}}
	for _, c := range e.Commands {
		s.Table.Add(report.Text("command"), report.Text(c))
	}
	for _, r := range e.Runs {
		s.Table.Add(report.Text(r.Label+", made by"), report.Text(r.command()))
		if len(r.Run.Command) > 0 {
			s.Table.Add(report.Text(r.Label+", client"), report.Text(ShellWords(r.Run.Command)))
		}
		if p := r.Run.Replay; p != nil {
			s.Table.Add(report.Text(r.Label+", workload"), report.Text(p.Workload))
			s.Table.Add(report.Text(r.Label+", plan"), report.Text(p.Plan))
			s.Table.Add(report.Text(r.Label+", driver"), report.Text(driverText(p)))
		}
		for _, d := range r.deployments() {
			if d.Fingerprint != nil {
				s.Table.Add(report.Text(r.Label+", deployment"), report.Text(d.Fingerprint.Digest))
			}
		}
	}
	if e.Grid != nil {
		e.Grid.reproduce(&s.Table)
	}
	for _, f := range e.Files {
		s.Table.Add(report.Text(f.Name), report.Text(f.Value))
	}
	if len(s.Table.Rows) == 0 {
		s.Lead, s.Table = []string{"No command is on record."}, report.Table{}
	}
	return s
}

// command is that by which the run was made; of one that does not have it on record, that by which it can be made again as far
// as the record tells.
func (r *Run) command() string {
	if len(r.Run.MadeBy) > 0 {
		return "benchproxy " + ShellWords(r.Run.MadeBy)
	}
	var targets []string
	for _, name := range slices.Sorted(maps.Keys(r.Run.Upstreams)) {
		targets = append(targets, r.Run.Upstreams[name])
	}
	p := r.Run.Replay
	if p == nil {
		return "benchproxy record --run " + ShellWords([]string{r.Run.Name}) + flagsOf("--upstream", targets)
	}
	if len(p.Cases) > 0 {
		return "benchproxy " + r.Run.Mode + " (its cases stand with the run)"
	}
	return "benchproxy replay " + ShellWords([]string{p.Source}) + flagsOf("--target", targets) + replayFlags(p)
}

// replayFlags are the flags of replay that lead to these settings.
func replayFlags(p *exchange.Replay) string {
	set, words := p.Settings, ""
	add := func(holds bool, format string, args ...any) {
		if holds {
			words += fmt.Sprintf(" "+format, args...)
		}
	}
	switch p.Driver {
	case "waves":
		add(true, "--waves %d", set.Concurrency)
	case "rate":
		add(true, "--rate %g --arrivals %s", set.Rate, set.Arrivals)
	case "recorded":
		add(true, "--timing recorded")
		add(set.Speed != nil, "--speed %g", valueOf(set.Speed))
		add(set.MaxGapMS > 0, "--max-gap %gms", set.MaxGapMS)
	}
	add(p.Driver != "waves" && set.Concurrency > 0, "--concurrency %d", set.Concurrency)
	add(set.Repeats > 1, "--repeats %d", set.Repeats)
	add(set.KeepSeed, "--keep-seed")
	add(set.Warmup > 0, "--warmup %d", set.Warmup)
	add(set.Nonce, "--nonce")
	add(set.LiveHistory, "--live-history")
	add(set.MaxRequests > 0, "--max-requests %d", set.MaxRequests)
	add(set.DurationMS > 0, "--duration %gms", set.DurationMS)
	add(true, "--retries %d --seed %d", set.Retries, p.Seed)
	return words
}

func valueOf(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func flagsOf(name string, values []string) string {
	out := ""
	for _, v := range values {
		out += " " + name + " " + v
	}
	return out
}

func driverText(p *exchange.Replay) string {
	words := []string{p.Driver, fmt.Sprintf("concurrency %d", p.Settings.Concurrency), fmt.Sprintf("repeats %d", p.Settings.Repeats), fmt.Sprintf("seed %d", p.Seed)}
	if p.Settings.Rate > 0 {
		words = append(words, fmt.Sprintf("%g req/s %s", p.Settings.Rate, p.Settings.Arrivals))
	}
	if p.Settings.Nonce {
		words = append(words, "nonce in every prompt")
	}
	return strings.Join(words, ", ")
}

// notesSection is the only part that people write.
func (e *Evidence) notesSection() (report.Section, bool) {
	s := report.Section{ID: "notes", Title: "Notes (written by hand)"}
	for p := range strings.SplitSeq(strings.ReplaceAll(e.Notes, "\r\n", "\n"), "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			s.Lead = append(s.Lead, p)
		}
	}
	return s, len(s.Lead) > 0
}
