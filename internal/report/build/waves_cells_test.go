package build

import (
	"slices"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/compare"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// together is a cell of four requests at a time with these rates over its repeats.
func together(engine string, samples ...float64) Cell {
	c := Cell{Source: "results", Engine: engine, Model: "m", Scenario: "s", Status: StatusOK, TP: 1, Concurrency: 4, RequestsOK: 4, DecodeSource: "stream_window", ObservedDevice: "cuda"}
	c.Spreads = map[string]Spread{}
	for field, v := range map[string]*float64{fieldAggregate: &c.AggregateTPS, fieldSteady: &c.SteadyTPS, fieldBatch: &c.Batch} {
		*v = *stat.Summarize(samples).Median
		c.Spreads[field] = Spread{Lo: slices.Min(samples), Hi: slices.Max(samples), N: len(samples), Range: true, Samples: samples}
	}
	return c
}

// TestRatiosOfWaves holds that all three rates of requests in parallel have a ratio with its interval, where both sides ran
// whole, and a reason where one did not.
func TestRatiosOfWaves(t *testing.T) {
	reference := []float64{99, 99.5, 100, 100.5, 101}
	for _, tc := range []struct {
		name    string
		subject Cell
		edit    func(*Cell)
		ratio   float64
		why     exchange.Reason
		faster  int
		slower  int
	}{
		{"faster", together("a", 198, 199, 200, 201, 202), nil, 2, "", 3, 0},
		{"slower", together("a", 49, 49.5, 50, 50.5, 51), nil, 0.5, "", 0, 3},
		{"a lost request", together("a", 198, 199, 200, 201, 202), func(c *Cell) { c.RequestsOK = 3 }, 0, reasonWave, 0, 0},
		{"counted events", together("a", 198, 199, 200, 201, 202), func(c *Cell) { c.Estimated = true }, 0, compare.ReasonEstimated, 0, 0},
		{"partial", together("a", 198, 199, 200, 201, 202), func(c *Cell) { c.Turns, c.TurnsExpected = 1, 2 }, 0, reasonPartial, 0, 0},
		{"failed", together("a", 198, 199, 200, 201, 202), func(c *Cell) { c.Status = StatusFail }, 0, reasonNotOK, 0, 0},
		{"another number at a time", together("a", 198, 199, 200, 201, 202), func(c *Cell) { c.Concurrency, c.RequestsOK = 8, 8 }, 0, reasonNoRecord, 0, 0},
	} {
		if tc.edit != nil {
			tc.edit(&tc.subject)
		}
		whole := []Cell{together("a", 100), together("b", 100)} // keeps the comparison in the table
		for i := range whole {
			whole[i].Scenario = "whole"
		}
		g := NewGrid(append(whole, tc.subject, together("b", reference...)), "", nil, func(id string) string { return id })
		seen := 0
		for _, w := range g.waveQuotients() {
			if w.scenario != "s" || !slices.ContainsFunc(waveFigures[:], func(f figure) bool { return f.field == w.figure.field }) {
				continue
			}
			seen++
			if w.why != tc.why || w.value != tc.ratio {
				t.Errorf("%s: %s at %d: %v, %q", tc.name, w.figure.name, w.concurrency, w.value, w.why)
			}
			if cells := g.proofs.cells(w.quotient); tc.why == "" && !strings.HasSuffix(cells[1].Show(report.Column{}), "(n 5, 5)") || tc.why != "" && cells[0].Show(report.Column{}) != "—" {
				t.Errorf("%s: %s", tc.name, cells[1].Show(report.Column{}))
			}
		}
		if seen == 0 {
			t.Errorf("%s: there is no row", tc.name)
		}
		faster, slower, _ := (&Evidence{Grid: g}).standings(nil)
		if len(faster) != tc.faster || len(slower) != tc.slower {
			t.Errorf("%s: %d faster, %d slower", tc.name, len(faster), len(slower))
		}
		if s, ok := g.scalingSection(); !ok || len(s.Parts) != 1 {
			t.Errorf("%s: cells of waves alone stand in no table", tc.name)
		}
	}
}

// TestMeans holds what the interval of a mean over fewer than 11 scenarios rests on, or why there is none.
func TestMeans(t *testing.T) {
	noise := []float64{99, 99.5, 100, 100.5, 101}
	twice := []float64{198, 199, 200, 201, 202}
	for _, tc := range []struct {
		name    string
		subject [][]float64
		words   string
		tone    report.Tone
	}{
		{"repeats", [][]float64{twice, twice, twice}, " (repeats)", report.Good},
		{"noise", [][]float64{noise, noise}, " (repeats)", ""},
		{"one measurement each", [][]float64{{50}, {60}}, "— (one sample)", ""},
		{"some without repeats", [][]float64{twice, {200}}, "— (not every scenario)", ""},
		{"two against five", [][]float64{{99, 100}}, "— (too few takes)", ""},
	} {
		var cells []Cell
		for i, samples := range tc.subject {
			a, b := repeated("a", samples...), repeated("b", noise...)
			a.Scenario = string(rune('s' + i))
			b.Scenario = a.Scenario
			cells = append(cells, a, b)
		}
		g := NewGrid(cells, "", nil, func(id string) string { return id })
		head := g.headline().Table
		if len(head.Rows) != 1 {
			t.Fatalf("%s: %d rows", tc.name, len(head.Rows))
		}
		row := head.Rows[0]
		words, _ := row[6].Words()
		first, _, _ := strings.Cut(words, ";")
		if !strings.HasPrefix(first, "decode ") || !strings.HasSuffix(first, tc.words) || row[2].Tone() != tc.tone {
			t.Errorf("%s: %q, %q", tc.name, words, row[2].Tone())
		}
		value, _ := row[2].Value()
		if s, ok := row[2].Spreads(); ok && (s.Lo > value || s.Hi < value) {
			t.Errorf("%s: %+v around %v", tc.name, s, value)
		}
	}
}
