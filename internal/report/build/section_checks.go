package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// gatesSection is what gates judged: counts by gate, and every judgment that is no pass.
func (e *Evidence) gatesSection() (report.Section, bool) {
	s := report.Section{ID: "gates", Title: "Correctness gates"}
	for i := range e.Gates {
		s.Parts = append(s.Parts, e.Gates[i].part())
	}
	return s, len(s.Parts) > 0
}

func (g *Gates) part() report.Section {
	p := report.Section{ID: "gates-" + slug(g.Source), Title: strings.TrimSpace(g.Source + " " + g.Level)}
	if g.Verdict != "" {
		p.Lead = []string{"All together: " + g.Verdict + "."}
	}
	p.Table = report.Table{Source: "cases and verdicts as they were judged; only ok is a pass", Formula: "seconds: time of the judgments, with the requests they needed", Sample: "one judgment of each case", Columns: []report.Column{{Name: "Gate", Key: true}, {Name: "ok", Number: true, Better: report.Higher}, {Name: "fail", Number: true, Better: report.Lower},
		{Name: "skipped", Number: true}, {Name: "unjudged", Number: true}, {Name: "ok when read leniently", Number: true}, {Name: "seconds", Number: true, Digits: 1}}}
	var names []string
	for _, c := range g.Cases {
		if !slices.Contains(names, c.Gate) {
			names = append(names, c.Gate)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		p.Table.Add(g.row(name)...)
	}
	if f := g.failures(); len(f.Table.Rows) > 0 {
		p.Parts = append(p.Parts, f)
	}
	return p
}

func (g *Gates) row(gate string) []report.Cell {
	var ok, fail, skipped, other, lenient int
	seconds := 0.0
	var ids []exchange.ID
	for _, c := range g.Cases {
		if c.Gate != gate {
			continue
		}
		seconds += c.Seconds
		ids = append(ids, c.Exchanges...)
		switch c.Status {
		case exchange.VerdictOK:
			ok++
		case exchange.VerdictFail:
			fail++
		case exchange.VerdictSkipped:
			skipped++
		default:
			other++
		}
		if c.Lenient == exchange.VerdictOK && c.Status != exchange.VerdictOK {
			lenient++
		}
	}
	bad := func(n int, t report.Tone) report.Cell {
		if n == 0 {
			return report.Count(n)
		}
		return report.Count(n).Toned(t)
	}
	took := report.Absent("not_on_record")
	if seconds > 0 {
		took = report.Number(seconds).Of(ids...)
	}
	return []report.Cell{report.Text(gate), report.Count(ok).Of(ids...), bad(fail, report.Bad), report.Count(skipped), bad(other, report.Marked), report.Count(lenient), took}
}

func (g *Gates) failures() report.Section {
	f := report.Section{ID: "failed-" + slug(g.Source), Title: "What did not pass"}
	f.Table.Columns = []report.Column{{Name: "Case", Key: true}, {Name: "Gate", Key: true}, {Name: "Status"}, {Name: "Why"}}
	for _, c := range g.Cases {
		switch {
		case c.Status == exchange.VerdictOK || c.Status == exchange.VerdictSkipped:
		case len(f.Table.Rows) >= mostFailed:
			f.Table.Omitted++
		default:
			f.Table.Add(report.Text(c.Case).Of(c.Exchanges...), report.Text(c.Gate), report.Text(string(c.Status)).Toned(report.Bad), report.Text(c.Reason))
		}
	}
	return f
}

// clockSection is our rates beside the engines' own, over the exchanges that have both.
func (e *Evidence) clockSection() (report.Section, bool) {
	s := report.Section{ID: "engine_clock", Title: "Wire against engine"}
	s.Table = clockTable([]report.Column{{Name: "Run", Key: true}, {Name: "Model", Key: true}, {Name: "Scenario", Key: true}})
	s.Table.Columns = append(s.Table.Columns, report.Column{Name: "n", Number: true}, report.Column{Name: "flagged", Number: true})
	s.Table.Sample = "medians over the exchanges that have both"
	for _, r := range e.Runs {
		for _, g := range r.groups {
			n := max(len(g.clocks[0][0]), len(g.clocks[1][0]))
			if n == 0 {
				continue
			}
			var medians [4]float64
			for i, sample := range [][]float64{g.clocks[0][0], g.clocks[0][1], g.clocks[1][0], g.clocks[1][1]} {
				if m := stat.Summarize(sample).Median; m != nil {
					medians[i] = *m
				}
			}
			row := []report.Cell{report.Text(r.Label), textOr(g.model, "not_named"), textOr(g.scenario, "no_suite")}
			row = append(row, clockCells(medians[0], medians[1], medians[2], medians[3], g.ids)...)
			s.Table.Add(append(row, report.Count(n), report.Count(g.flags[measure.FlagDecodeDiffers]+g.flags[measure.FlagPrefillDiffers]))...)
		}
	}
	return s, len(s.Table.Rows) > 0
}

// instrumentSection is what benchproxy itself cost in each run, and what its selftest says of the machine.
func (e *Evidence) instrumentSection() (report.Section, bool) {
	s := report.Section{ID: "instrument", Title: "Instrument error"}
	s.Table = report.Table{Formula: "added time: end of the write to the client - stamp of the read, for each event", Source: "stamps of every exchange", Sample: "exchanges with events",
		Spread: "median and largest over the exchanges", Columns: []report.Column{{Name: "Run", Key: true}, {Name: "n", Number: true}, usColumn("added p50"), usColumn("added p99, median"), usColumn("added p99, largest"),
			{Name: "longest write stall", Unit: "ms", Number: true, Digits: 2}, usColumn("noise floor, idle"), usColumn("noise floor, busy"), {Name: "selftest"}}}
	for _, r := range e.Runs {
		s.Table.Add(instrumentRow(r)...)
	}
	s.Notes = []string{"The noise floor is the time below which a difference of two measurements says nothing on that machine, at as many streams as the run had. Without a selftest on record it is unknown: `benchproxy selftest` makes one."}
	return s, len(e.Runs) > 0
}

func usColumn(name string) report.Column {
	return report.Column{Name: name, Unit: "us", Number: true, Digits: 1}
}

func instrumentRow(r *Run) []report.Cell {
	run := r.all.sum()
	p50, p99, stall := run.Metric(measure.AddedP50US).Summary, run.Metric(measure.AddedP99US).Summary, run.Metric(measure.WriteStallMS).Summary
	row := []report.Cell{report.Text(r.Label).In(evidenceID(r)), report.Count(p50.N), report.Optional(p50.Median, "no_client_write"), report.Optional(p99.Median, "no_client_write"),
		report.Optional(p99.Max, "no_client_write"), report.Optional(stall.Max, "no_client_write")}
	in := r.Run.Instrument
	if in == nil {
		return append(row, report.Absent("no_selftest"), report.Absent("no_selftest"), report.Absent("no_selftest"))
	}
	peak := r.load.Load().Peak
	for _, load := range []string{exchange.LoadIdle, exchange.LoadBusy} {
		row = append(row, floorAt(in.Floors(load), peak))
	}
	return append(row, report.Text(string(in.ID)))
}

// floorAt is the floor at the fewest streams that were tried and are at least as many as peak, else at the most.
func floorAt(floors []exchange.NoiseFloor, peak int) report.Cell {
	if len(floors) == 0 {
		return report.Absent("not_known")
	}
	at := floors[len(floors)-1]
	for _, f := range floors {
		if f.Streams >= peak {
			at = f
			break
		}
	}
	return report.Number(*at.US).Titled(fmt.Sprintf("at %d streams", at.Streams))
}

// scheduleSection is how open loops kept the instants that were planned for them, and latency against the rate.
func (e *Evidence) scheduleSection() (report.Section, bool) {
	s := report.Section{ID: "schedule", Title: "Schedule fidelity"}
	ms := func(name string) report.Column { return report.Column{Name: name, Unit: "ms", Number: true, Digits: 1} }
	rate := func(name string) report.Column {
		return report.Column{Name: name, Unit: "req/s", Number: true, Digits: 2}
	}
	s.Table = report.Table{Formula: "lag: first request byte - planned instant; latency from the plan counts the lag, latency from the send does not", Source: "planned instants and stamps",
		Sample: "every planned request that was sent: counted, not estimated", Columns: []report.Column{{Name: "Run", Key: true}, {Name: "planned", Number: true}, {Name: "sent", Number: true}, rate("rate planned"), rate("rate achieved"),
			ms("lag p50"), ms("lag p99"), ms("lag max"), ms("TTFT p50 from send"), ms("TTFT p50 from plan"), ms("whole p99 from send"), ms("whole p99 from plan"), {Name: "valid"}}}
	plot := chart.Plot{Title: "Latency against rate", X: chart.Axis{Label: "achieved rate", Unit: "req/s"}, Y: chart.Axis{Label: "TTFT from the planned instant", Unit: "ms"}}
	for _, r := range e.Runs {
		if r.Run.Replay == nil || r.Run.Replay.Schedule == nil {
			continue
		}
		sc := r.Run.Replay.Schedule
		valid := report.Text("yes")
		if why := r.Run.Replay.Invalid; why != "" {
			valid = report.Text("no: " + why).Toned(report.Bad)
		}
		s.Table.Add(report.Text(r.Label).In(evidenceID(r)), report.Count(sc.Planned), report.Count(sc.Sent), report.Optional(sc.PlannedRate, "too_few"), report.Optional(sc.AchievedRate, "too_few"),
			report.Optional(sc.LagMS.P50, "no_samples"), report.Optional(sc.LagMS.P99, "no_samples"), report.Optional(sc.LagMS.Max, "no_samples"), report.Optional(sc.SentTTFT.P50, "no_samples"),
			report.Optional(sc.IntendedTTFT.P50, "no_samples"), report.Optional(sc.SentMS.P99, "no_samples"), report.Optional(sc.IntendedMS.P99, "no_samples"), valid)
		if sc.AchievedRate != nil && sc.IntendedTTFT.P50 != nil && sc.IntendedTTFT.P99 != nil {
			addPoint(&plot, "p50", chart.Point{X: *sc.AchievedRate, Y: *sc.IntendedTTFT.P50}, true)
			addPoint(&plot, "p99", chart.Point{X: *sc.AchievedRate, Y: *sc.IntendedTTFT.P99}, true)
		}
	}
	if len(plot.Series) > 0 && len(plot.Series[0].Points) > 1 {
		for i := range plot.Series {
			sortPoints(plot.Series[i].Points)
		}
		drawLines(&s, report.Chart{ID: "chart-rate", Title: "TTFT from the planned instant against the rate that was achieved, a point for each run"}, plot)
	}
	return s, len(s.Table.Rows) > 0
}

// gapQuantiles are the places at which the distribution of gaps is drawn.
const gapQuantiles = 200

// gapsSection is the gaps between token events: their tail, and their distribution.
func (e *Evidence) gapsSection() (report.Section, bool) {
	s := report.Section{ID: "gaps", Title: "Gaps between token events"}
	ms := func(name string) report.Column { return report.Column{Name: name, Unit: "ms", Number: true, Digits: 2} }
	s.Table = report.Table{Formula: "stamp of a token event - stamp of the one before, of different reads", Source: "all complete streams together; streams that were held back are left out",
		Sample: "n gaps; a percentile is absent below its sample floor", Columns: []report.Column{{Name: "Run", Key: true}, {Name: "n", Number: true}, ms("p50"), ms("p90"), ms("p99"), ms("p99.9"), ms("max")}}
	plot := chart.Plot{Title: "Distribution of the gaps", X: chart.Axis{Label: "gap", Unit: "ms", Log: true}, Y: chart.Axis{Label: "share of the gaps up to it", Unit: "%"}, Steps: true}
	for _, r := range e.Runs {
		if r.gaps.N() == 0 {
			continue
		}
		row := []report.Cell{report.Text(r.Label).In(evidenceID(r)), report.Count(r.gaps.N())}
		for _, q := range []float64{0.5, 0.9, 0.99, 0.999, 1} {
			if v, ok := r.gaps.Quantile(q); ok {
				row = append(row, report.Number(v/1e6))
			} else {
				row = append(row, report.Absent(stat.ReasonSampleFloor))
			}
		}
		s.Table.Add(row...)
		series := chart.Series{Name: r.Label}
		for i := range gapQuantiles + 1 {
			q := float64(i) / gapQuantiles
			series.Points = append(series.Points, chart.Point{X: r.gaps.Census(q) / 1e6, Y: 100 * q})
		}
		plot.Series = append(plot.Series, series)
	}
	if len(plot.Series) > 0 {
		drawLines(&s, report.Chart{ID: "chart-gaps", Title: "How large a share of the gaps between token events is at most so long"}, plot)
	}
	return s, len(s.Table.Rows) > 0
}

// draftsSection is speculative decoding in runs: acceptance, and the drafter where it is named.
func (e *Evidence) draftsSection() (report.Section, bool) {
	s := report.Section{ID: "drafts", Title: "Speculative decoding"}
	s.Table = report.Table{Formula: "acceptance: accepted / drafted; tokens a step: 1 + accepted / steps; speedup: median decode rate / the stated rate without drafts", Source: "what engines report for each answer, or their counters while nothing else ran",
		Sample: "exchanges with such evidence", Columns: []report.Column{{Name: "Run", Key: true}, {Name: "Drafter"}, {Name: "n", Number: true}, {Name: "acceptance", Unit: "%", Number: true, Digits: 1}, {Name: "tokens a step", Number: true, Digits: 2},
			{Name: "waste", Unit: "%", Number: true, Digits: 1}, {Name: "speedup", Number: true, Digits: 2, Suffix: "×"}}}
	for _, r := range e.Runs {
		d := r.all.drafts
		if len(d.acceptance) == 0 && r.Run.Drafting == nil {
			continue
		}
		speedup := report.Absent("no_baseline")
		method := ""
		if stated := r.Run.Drafting; stated != nil {
			if method = stated.Method; stated.BaselineTPS != nil {
				speedup = report.Figure(r.all.sum().DraftSpeedup(*stated.BaselineTPS))
			}
		}
		for _, dep := range r.deployments() {
			method = cmp.Or(method, deref(dep.DraftMethod))
		}
		share := func(values []float64, scale float64) report.Cell {
			sum := stat.Summarize(values)
			if sum.Median == nil {
				return report.Absent("no_draft_evidence")
			}
			return report.Number(*sum.Median * scale).Based(exchange.BasisReported).Of(r.all.ids...)
		}
		s.Table.Add(report.Text(r.Label).In(evidenceID(r)), textOr(method, "not_stated"), report.Count(len(d.acceptance)), share(d.acceptance, 100), share(d.perStep, 1), share(d.waste, 100), speedup)
	}
	return s, len(s.Table.Rows) > 0
}
