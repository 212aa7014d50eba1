package main

import (
	"bytes"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/stat"
)

// report is everything that was measured. Its JSON form is versioned by schema.
type report struct {
	Schema      int             `json:"schema"`
	Machine     machine         `json:"machine"`
	Rounds      int             `json:"rounds"`
	Streams     int             `json:"streams"`
	Scenarios   []*scenarioRow  `json:"scenarios"`
	Gone        []goneRow       `json:"client_gone"`
	Memory      []memoryRow     `json:"idle_memory"`
	Allocations []allocationRow `json:"allocations"`
	Budgets     []budgetRow     `json:"budgets"`
}

// machine is where it ran. Load averages tell how much else did.
type machine struct {
	CPUs       int    `json:"cpus"`
	System     string `json:"system"`
	Go         string `json:"go"`
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
}

// scenarioRow is one scenario on all targets.
type scenarioRow struct {
	Name    string                `json:"name"`
	What    string                `json:"what"`
	Per     string                `json:"per"`
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

func newReport(cfg config) *report {
	return &report{Schema: 1, Rounds: cfg.rounds, Streams: cfg.streams, Machine: machine{
		CPUs: runtime.NumCPU(), System: firstLine("/proc/sys/kernel/ostype") + " " + firstLine("/proc/sys/kernel/osrelease"),
		Go: runtime.Version(), LoadBefore: loadAverage(),
	}}
}

func firstLine(path string) string {
	b, _ := os.ReadFile(path) // a system without it is named by nothing
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return string(line)
}

func loadAverage() string {
	f := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(f[:min(1, len(f))], "")
}

// add enters one round of a scenario.
func (r *report) add(s scenario, played map[string]batch) {
	i := slices.IndexFunc(r.Scenarios, func(x *scenarioRow) bool { return x.Name == s.name })
	if i < 0 {
		i = len(r.Scenarios)
		r.Scenarios = append(r.Scenarios, &scenarioRow{Name: s.name, What: s.what, Per: s.per, Targets: map[string]*targetRow{}})
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

// budgetRow is a figure that has a budget. It is printed, never asserted.
type budgetRow struct {
	What  string   `json:"what"`
	Unit  string   `json:"unit"`
	Value *float64 `json:"value"` // null when it could not be told from noise
	Must  float64  `json:"must"`
	Aim   float64  `json:"aim"`
}

// finish derives the budgets.
func (r *report) finish() {
	r.Machine.LoadAfter = loadAverage()
	added := func(t *targetRow) series { return t.AddedP50 }
	cpu := func(t *targetRow) series { return t.CPU }
	r.Budgets = []budgetRow{
		{"added p50 an event, record / reverseproxy", "x", r.ratio("events", added), 0.7, 0.5},
		{"added p50 of TTFT, record / reverseproxy", "x", r.ratio("ttft", added), 0.7, 0.5},
		{"CPU a small JSON request, record / reverseproxy", "x", r.ratio("load", cpu), 0.45, 0.3},
	}
	for _, m := range r.Memory {
		if m.Target == records {
			kb := m.PerStream / 1024
			r.Budgets = append(r.Budgets, budgetRow{"memory of an idle stream, record", "KB", &kb, 40, 24})
		}
	}
	for _, g := range r.Gone {
		if g.Target == records {
			lost := float64(g.Missed)
			r.Budgets = append(r.Budgets, budgetRow{"client gone to engine closed, record, longest", "ms", g.Max, 100, 5},
				budgetRow{"client gone, record, engine never heard", "clients", &lost, 0, 0})
		}
	}
}

// ratio is the figure of record divided by that of the comparison, medians over rounds.
func (r *report) ratio(name string, figure func(*targetRow) series) *float64 {
	for _, s := range r.Scenarios {
		if s.Name != name || s.Targets[records] == nil || s.Targets[compare] == nil {
			continue
		}
		own, ok := figure(s.Targets[records]).median()
		other, also := figure(s.Targets[compare]).median()
		if ok && also && other > 0 {
			v := own / other
			return &v
		}
	}
	return nil
}
