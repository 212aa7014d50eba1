package build

import (
	"cmp"
	"slices"

	"github.com/benchproxy/benchproxy/internal/chart"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// waveFormula says what the rates of a wave are.
const waveFormula = "aggregate: tokens after the first of each stream, from the first token of any to the last of any; steady: tokens while all decode; batch: all tokens over the whole wall"

// waveRow is the waves of a run that are of one kind and size.
type waveRow struct {
	model, scenario     string
	streams             int
	waves, failed, live int
	values              map[string][]float64               // by rate
	missing             map[string]map[exchange.Reason]int // by rate
	ids                 []exchange.ID
}

// wavesSection is requests that were sent together, with all three rates of a wave, and the runs of several concurrencies.
func (e *Evidence) wavesSection() (report.Section, bool) {
	s := report.Section{ID: "waves", Title: "Requests that ran together"}
	s.Table = report.Table{
		Formula: waveFormula, Source: "waves of the runs; one failed member voids the rates of its wave", Sample: "medians over the waves that have the rate",
		Columns: slices.Concat([]report.Column{{Name: "Run", Key: true}}, kindColumns(), []report.Column{{Name: "streams", Number: true, Key: true}, {Name: "waves", Number: true}, {Name: "with a failure", Number: true},
			{Name: "decoded at once", Number: true}, rateColumn("aggregate"), rateColumn("steady"), rateColumn("batch")})}
	plot := chart.Plot{Title: "Scaling", X: chart.Axis{Label: "streams at a time"}, Y: chart.Axis{Label: "aggregate decode", Unit: "tok/s"}}
	for _, r := range e.Runs {
		for _, w := range r.waveRows() {
			s.Table.Add(w.cells(r)...)
			m := stat.Summarize(w.values[measure.AggregateDecodeTPS]).Median
			if m != nil {
				addPoint(&plot, joined(r.Label, w.model, w.scenario), chart.Point{X: float64(w.streams), Y: *m}, true)
			}
		}
	}
	plot.Series = slices.DeleteFunc(plot.Series, func(s chart.Series) bool { return len(s.Points) < 2 })
	if len(plot.Series) > 0 {
		drawLines(&s, report.Chart{ID: "chart-waves", Title: "Aggregate decode rate against the streams of a wave"}, plot)
	}
	return s, len(s.Table.Rows) > 0
}

// waveRates are the waves of a run: as its replay closed them, else as the exchanges say.
func (r *Run) waveRates() []exchange.WaveRate {
	if r.wavesClosed() {
		return r.Run.Replay.Waves
	}
	var out []exchange.WaveRate
	for _, w := range r.waves {
		out = append(out, measure.Wave(w.name, w.members))
	}
	return out
}

// waveRows are the waves of a run by model, scenario and size: rates of other requests are no repeats of each other.
func (r *Run) waveRows() []waveRow {
	var out []waveRow
	for _, w := range r.waveRates() {
		row := waveRow{streams: w.Streams, values: map[string][]float64{}, missing: map[string]map[exchange.Reason]int{}}
		if at, seen := r.waveAt[w.Wave]; seen {
			row.model, row.scenario, row.ids = r.waves[at].group.model, r.waves[at].group.scenario, r.waves[at].ids
		}
		i := slices.IndexFunc(out, func(o waveRow) bool {
			return o.model == row.model && o.scenario == row.scenario && o.streams == row.streams
		})
		if i < 0 {
			i = len(out)
			out = append(out, row)
		}
		out[i].add(&w)
	}
	slices.SortStableFunc(out, func(a, b waveRow) int {
		return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.scenario, b.scenario), a.streams-b.streams)
	})
	return out
}

func (w *waveRow) add(rate *exchange.WaveRate) {
	w.waves++
	w.live = max(w.live, rate.PeakLive)
	if rate.Failed > 0 {
		w.failed++
	}
	for name, f := range rate.Figures {
		if f.Present() {
			w.values[name] = append(w.values[name], f.Value)
		} else {
			if w.missing[name] == nil {
				w.missing[name] = map[exchange.Reason]int{}
			}
			w.missing[name][f.Reason]++
		}
	}
}

func (w *waveRow) cells(r *Run) []report.Cell {
	failed := report.Count(w.failed)
	if w.failed > 0 {
		failed = failed.Toned(report.Bad)
	}
	row := slices.Concat([]report.Cell{report.Text(r.Label).In(evidenceID(r))}, kindCells(w.model, w.scenario),
		[]report.Cell{report.Count(w.streams), report.Count(w.waves).Of(w.ids...), failed, report.Count(w.live)})
	for _, name := range []string{measure.AggregateDecodeTPS, measure.SteadyTPS, measure.BatchTPS} {
		s := stat.Summarize(w.values[name])
		cell := report.Optional(s.Median, mostFrequent(w.missing[name]))
		if s.N > 0 {
			cell = cell.Spread(spreadOf(s)).Of(w.ids...)
		}
		row = append(row, cell)
	}
	return row
}
