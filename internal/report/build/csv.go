package build

import (
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/report"
	"github.com/benchproxy/benchproxy/internal/stat"
)

// csvColumns are those of TensorSharp's results.csv, then ours.
var csvColumns = [...]string{
	"engine", "backend", "model", "scenario", "mtp", "tp", "cpu_moe_layers", "cpu_moe_threads", "concurrency", "status", "detail", "prompt_tokens", "completion_tokens",
	"ttft_ms", "prefill_tps", "decode_tps", "aggregate_decode_tps", "requests_ok", "turns", "turns_expected", "total_wall_ms", "finish_reason", "tool_call_ok",
	"requested_device", "observed_device", "cpu_fallback", "source", "decode_source", "usage_estimated", "engine_prefill_tps", "engine_decode_tps", "steady_tps", "batch_tps",
	"draft_acceptance", "model_memory_bytes", "n", "ttft_ms_lo", "ttft_ms_hi", "prefill_tps_lo", "prefill_tps_hi", "decode_tps_lo", "decode_tps_hi", "exchange_ids", "run",
}

// Results are all cells and runs as one table for programs: a row for each cell, and for each model and scenario of a run.
func Results(e *Evidence) *report.Table {
	t := &report.Table{}
	for _, name := range csvColumns {
		t.Columns = append(t.Columns, report.Column{Name: name})
	}
	if e.Grid != nil {
		for i := range e.Grid.Cells {
			t.Add(e.Grid.Cells[i].csv()...)
		}
	}
	for _, r := range e.Runs {
		for _, g := range r.groups {
			c := r.cell(g)
			t.Add(c.csv()...)
		}
	}
	return t
}

func (c *Cell) csv() []report.Cell {
	number := func(v float64) report.Cell {
		if v == 0 {
			return report.Absent(reasonNoValue)
		}
		return report.Number(v)
	}
	flag := func(b *bool) report.Cell {
		if b == nil {
			return report.Absent("not_known")
		}
		return report.Text(strconv.FormatBool(*b))
	}
	yes := func(b bool) report.Cell { return report.Text(strconv.FormatBool(b)) }
	row := []report.Cell{
		report.Text(c.Engine), report.Text(c.Backend), report.Text(c.Model), report.Text(c.Scenario), yes(c.MTP), report.Count(c.TP), report.Count(c.CPUMoELayers), report.Count(c.CPUMoEThreads),
		report.Count(c.Concurrency), report.Text(c.Status), report.Text(c.Detail), number(float64(c.PromptTokens)), number(float64(c.CompletionTokens)), number(c.TTFTMS), number(c.PrefillTPS),
		number(c.DecodeTPS), number(c.AggregateTPS), report.Count(c.RequestsOK), report.Count(c.Turns), report.Count(c.TurnsExpected), number(c.TotalWallMS), report.Text(c.FinishReason), flag(c.ToolCallOK),
		report.Text(c.RequestedDevice), report.Text(c.ObservedDevice), flag(c.CPUFallback), report.Text(c.Source), report.Text(c.DecodeSource), yes(c.Estimated), number(c.EnginePrefillTPS),
		number(c.EngineDecode), number(c.SteadyTPS), number(c.Batch), report.Optional(c.Acceptance, "not_reported"), number(float64(c.ModelMemory)), report.Count(c.measurements()),
	}
	for _, f := range []string{fieldTTFT, fieldPrefill, fieldDecode} {
		if s, ok := c.Spreads[f]; ok {
			row = append(row, report.Number(s.Lo), report.Number(s.Hi))
		} else {
			row = append(row, report.Absent("not_known"), report.Absent("not_known"))
		}
	}
	var ids []string
	for _, id := range c.Exchanges {
		ids = append(ids, string(id))
	}
	return append(row, report.Text(strings.Join(ids, " ")), report.Text(c.RunID))
}

// cell is a group of a run in the form of a cell: medians over its exchanges.
func (r *Run) cell(g *group) Cell {
	run, load := g.sum(), g.load.Load()
	c := Cell{Source: r.Label, Engine: g.engine, Model: g.model, Scenario: g.scenario, Status: StatusOK, TP: 1, Concurrency: max(load.InFlight, 1),
		RequestsOK: run.Outcomes[exchange.OutcomeComplete], Exchanges: g.ids, RunID: string(r.Run.ID), Spreads: map[string]Spread{}, DecodeSource: string(measure.SourceStreamWindow)}
	if c.RequestsOK == 0 {
		c.Status, c.Detail = StatusFail, outcomesText(run.Outcomes)
	}
	take := func(into *float64, metric, field string) {
		m := run.Metric(metric)
		if m.Summary.Median == nil {
			return
		}
		*into = *m.Summary.Median
		if s := spreadOf(m.Summary); field != "" {
			c.Spreads[field] = Spread{Lo: s.Lo, Hi: s.Hi, N: s.N, Range: s.Kind == report.SpreadRange}
		}
		c.Estimated = c.Estimated || m.Basis == exchange.BasisEstimated
	}
	take(&c.TTFTMS, measure.TTFTMS, fieldTTFT)
	take(&c.PrefillTPS, measure.PrefillTPS, fieldPrefill)
	take(&c.DecodeTPS, measure.DecodeTPS, fieldDecode)
	take(&c.TotalWallMS, measure.TotalWallMS, "")
	take(&c.EnginePrefillTPS, measure.EnginePrefillTPS, "")
	take(&c.EngineDecode, measure.EngineDecodeTPS, "")
	c.PromptTokens, c.CompletionTokens = medianCount(g.prompt), medianCount(g.completion)
	c.Acceptance = stat.Summarize(g.drafts.acceptance).Median
	for _, d := range r.deployments() {
		if g.upstream == d.Upstream {
			fallback := c.CPUFallback != nil && *c.CPUFallback || d.CPUFallback
			c.RequestedDevice, c.ObservedDevice, c.CPUFallback = deref(d.RequestedDevice), deref(d.ObservedDevice), &fallback
		}
	}
	return c
}

func medianCount(values []float64) int {
	if m := stat.Summarize(values).Median; m != nil {
		return int(*m)
	}
	return 0
}

// measurements is how many stand behind a cell: one where its file does not say.
func (c *Cell) measurements() int {
	n := 1
	for _, s := range c.Spreads {
		n = max(n, s.N)
	}
	return n
}
