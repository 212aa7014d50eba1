package main

import (
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/stat"
)

// report is everything that was measured. Its JSON form is versioned by schema.
type report struct {
	Schema      int             `json:"schema"`
	Date        string          `json:"date"` // of the start, RFC 3339 in UTC
	Command     string          `json:"command"`
	Commit      string          `json:"commit"`
	Versions    []version       `json:"versions"` // of the targets that were made elsewhere
	Machine     machine         `json:"machine"`
	Targets     []string        `json:"targets"`
	Rounds      int             `json:"rounds"`
	Large       int             `json:"large_every"` // large scenarios were played in one round of so many
	Streams     int             `json:"streams"`
	Noise       float64         `json:"noise_bound"` // spread of direct above which nothing is judged
	Scenarios   []*scenarioRow  `json:"scenarios"`
	Gone        []goneRow       `json:"client_gone"`
	Memory      []memoryRow     `json:"idle_memory"`
	Allocations []allocationRow `json:"allocations"`
	Ratios      []ratioRow      `json:"ratios"`
	Tracing     []tracingRow    `json:"tracing"`
	Budgets     []budgetRow     `json:"budgets"`
}

// scenarioRow is one scenario on all targets.
type scenarioRow struct {
	Name    string                `json:"name"`
	What    string                `json:"what"`
	Per     string                `json:"per"`
	Queue   bool                  `json:"queue"` // its times are those of a queue
	Targets map[string]*targetRow `json:"targets"`
}

// targetRow is one scenario on one target. Times are in us, of every round in order.
type targetRow struct {
	Requests int    `json:"requests"`
	Failed   int    `json:"failed"`
	P50      series `json:"p50_us"`
	P99      series `json:"p99_us"`
	AddedP50 series `json:"added_p50_us"` // p50 - that of direct in the same round
	AddedP99 series `json:"added_p99_us"`
	CPU      series `json:"cpu_us"` // of the process, for each event or request; the engine's for direct
	Rate     series `json:"per_second"`
}

// series is one figure over the rounds.
type series []float64

// median is the middle of the series; ok is false when it is empty.
func (s series) median() (v float64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	return stat.Quantile(slices.Sorted(slices.Values(s)), 0.5), true
}

// quantile is stat.Quantile as a figure that may be absent.
func quantile(sorted []float64, q float64) *float64 {
	v := stat.Quantile(sorted, q)
	return &v
}

// spread is the distance between the quartiles as a share of the median; ok is false when there is no median above 0.
func (s series) spread() (share float64, ok bool) {
	m, ok := s.median()
	if !ok || m <= 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(s))
	return (stat.Quantile(sorted, 0.75) - stat.Quantile(sorted, 0.25)) / m, true
}

func newReport(cfg config) *report {
	return &report{
		Schema: 2, Targets: cfg.targets, Rounds: cfg.rounds, Large: cfg.large, Streams: cfg.streams, Noise: cfg.noise,
		Command: cfg.command, Commit: cfg.commit, Date: time.Now().UTC().Format(time.RFC3339), Machine: here(),
	}
}

// add enters one round of a scenario.
func (r *report) add(s scenario, played map[string]batch) {
	i := slices.IndexFunc(r.Scenarios, func(x *scenarioRow) bool { return x.Name == s.name })
	if i < 0 {
		i = len(r.Scenarios)
		r.Scenarios = append(r.Scenarios, &scenarioRow{Name: s.name, What: s.what, Per: s.per, Queue: s.queue, Targets: map[string]*targetRow{}})
	}
	base := played[direct].samples
	for name, x := range played {
		row := r.Scenarios[i].Targets[name]
		if row == nil {
			row = &targetRow{}
			r.Scenarios[i].Targets[name] = row
		}
		row.Requests += x.requests
		row.Failed += x.failed
		if len(x.samples) == 0 {
			continue
		}
		p50, p99 := stat.Quantile(x.samples, 0.5), stat.Quantile(x.samples, 0.99)
		row.P50, row.P99 = append(row.P50, p50), append(row.P99, p99)
		row.CPU = append(row.CPU, float64(x.cpu.Microseconds())/float64(x.units))
		row.Rate = append(row.Rate, float64(x.units)/x.wall.Seconds())
		if name != direct && len(base) > 0 {
			row.AddedP50 = append(row.AddedP50, p50-stat.Quantile(base, 0.5))
			row.AddedP99 = append(row.AddedP99, p99-stat.Quantile(base, 0.99))
		}
	}
}
