package bench

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// takeName tells the times apart that a cell was measured: its repeat, and whether it was asked again for being short.
type takeName struct {
	repeat int
	again  bool
}

// take is one of these times: the exchanges of each of its cases, by the case's place among those that ran together.
type take map[int][]*exchange.Exchange

// Again is the record of a cell as the run gives it that holds its exchanges, measured by the rules of today. What no
// exchange tells is as told: what the server was launched with and took, and how the cell was planned.
func Again(told *matrix.Record, from *replay.RunRecord) (*matrix.Record, error) {
	if !named(told) {
		return nil, fmt.Errorf("%w: its engine, backend, model, scenario, device, mtp, method, depth, tp, cpu_moe_layers, cpu_moe_threads or concurrency is not that of cell %s", exchange.ErrMiss, told.Cell)
	}
	if told.Lack != nil && len(told.Exchanges) == 0 {
		return withoutAgain(told, from)
	}
	takes, warmups, err := takesOf(told, from)
	if err != nil {
		return nil, err
	}
	if len(takes) == 0 {
		return nil, fmt.Errorf("%w: run %s has no exchange of cell %s that came to its end", exchange.ErrMiss, from.Run.ID, told.Cell)
	}
	var samples []*sample
	for _, name := range repeatsOf(takes) {
		s, _ := sampled(takes[name], from)
		if second, asked := takes[takeName{name.repeat, true}]; asked {
			last, limit := sampled(second, from)
			if last.tooShort(limit) {
				last.withoutRates()
			}
			last.exchanges = append(s.exchanges, last.exchanges...)
			s = last
		}
		samples = append(samples, s)
	}
	made := *told
	made.PromptTokens, made.CompletionTokens, made.TTFTms, made.PrefillTPS, made.DecodeTPS, made.TotalWallMS, made.AggregateDecodeTPS = nil, nil, nil, nil, nil, nil, nil
	made.EngineDecodeTPS, made.EnginePrefillTPS, made.SteadyTPS, made.BatchTPS, made.Acceptance, made.ToolCallOK = nil, nil, nil, nil, nil, nil
	made.Absent, made.Spreads, made.Flags, made.Gates, made.Answers, made.Exchanges = nil, nil, nil, nil, nil, nil
	made.RequestsOK, made.Turns, made.TurnsExpected, made.FinishReason, made.UsageBasis, made.DecodeSource = 0, 0, 0, "", "", ""
	made.Schema, made.TP = matrix.RecordVersion, max(told.TP, 1)
	if told.Method == "" {
		made.Depth = 0
	}
	if told.CPUMoELayers == 0 {
		made.CPUMoEThreads = 0
	}
	made.OutputPreview, made.OutputText, made.Run, made.Warmups, made.Lack = "", "", from.Run.ID, warmups, nil
	if len(samples) > 0 {
		made.Concurrency = samples[0].planned
		made.Stream = told.Stream || samples[0].source == measure.SourceStreamWindow // a scenario may never stream
	}
	fill(&made, samples)
	keepStated(&made, told)
	return &made, nil
}

// named reports whether the name of the cell, which its exchanges carry, is that of what the record says it is of.
func named(r *matrix.Record) bool {
	axes := matrix.Axes{Engine: r.Engine, Backend: r.Backend, Model: r.Model, MTP: r.MTP, TP: r.TP, CPUMoELayers: r.CPUMoELayers, CPUMoEThreads: r.CPUMoEThreads,
		Method: r.Method, Depth: r.Depth, Device: r.Device}
	rest, ok := strings.CutPrefix(r.Cell, axes.CellName(r.Scenario, 1, ""))
	if r.Concurrency > 1 {
		var told bool
		rest, told = strings.CutSuffix(rest, "__c"+strconv.Itoa(r.Concurrency))
		ok = ok && told
	}
	return ok && (rest == "" || strings.HasPrefix(rest, "__") && !strings.Contains(rest[2:], "__")) // what is left tells of thinking
}

// keepStated takes over what is said of a cell beside its exchanges: how the server was, and with fewer slots than requests
// there is no rate of all together.
func keepStated(made, told *matrix.Record) {
	for _, f := range []string{FlagUnlisted, FlagCrowded, FlagBusyMachine} {
		if slices.Contains(told.Flags, f) {
			made.Flags = union(made.Flags, []string{f})
		}
	}
	if made.Slots != nil && *made.Slots < made.Concurrency && made.Status == matrix.StatusOK {
		made.Flags = union(made.Flags, []string{FlagQueued})
		made.SteadyTPS = nil
		delete(made.Spreads, measure.SteadyTPS)
		if made.Absent != nil {
			made.Absent[measure.SteadyTPS] = FlagQueued
		}
	}
}

// takesOf reads the exchanges of a cell, and which of them came before the measuring. Of several attempts at a turn the last
// one counts, and of times that were not brought to their end none.
func takesOf(told *matrix.Record, from *replay.RunRecord) (takes map[takeName]take, warmups []exchange.ID, err error) {
	takes = map[takeName]take{}
	last := map[string]exchange.Summary{} // of a turn
	var order []string
	for _, row := range from.Rows() {
		if row.Item == nil || row.Item.Warmup || !strings.HasPrefix(row.Item.CaseID(), told.Cell+"/") {
			continue
		}
		turn := fmt.Sprintf("%s/%d", row.Item.CaseID(), row.Item.Turn)
		if was, there := last[turn]; !there {
			order = append(order, turn)
		} else if was.Item.Attempt > row.Item.Attempt {
			continue
		}
		last[turn] = row
	}
	for _, id := range told.Warmups {
		x, err := from.Exchange(id)
		if err != nil {
			return nil, nil, err
		}
		if x.Run == from.Run.ID && x.Cell == told.Cell && x.Item != nil && x.Item.Warmup {
			warmups = append(warmups, id)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return last[a].Item.Turn - last[b].Item.Turn })
	for _, turn := range order {
		row := last[turn]
		id := row.Item.CaseID()
		kept := from.Kept(id)
		if kept == nil || kept.Status == "" {
			continue
		}
		x, err := from.Exchange(row.ID)
		if err != nil {
			return nil, nil, err
		}
		name := takeName{kept.Repeat, strings.Contains(strings.TrimPrefix(id, told.Cell), "/again/")}
		index, err := strconv.Atoi(id[strings.LastIndexByte(id, 'i')+1:])
		if err != nil {
			return nil, nil, fmt.Errorf("read case %s: %w", id, err)
		}
		if takes[name] == nil {
			takes[name] = take{}
		}
		takes[name][index] = append(takes[name][index], x)
	}
	return takes, warmups, nil
}

// repeatsOf are the repeats, in their order.
func repeatsOf(takes map[takeName]take) (out []takeName) {
	for name := range takes {
		if !name.again {
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b takeName) int { return a.repeat - b.repeat })
	return out
}

// sampled reads a take as it was read when it had ended, and the output limit of its requests.
func sampled(t take, from *replay.RunRecord) (s *sample, limit int) {
	w := &replay.SuiteWave{}
	streamed := false
	for i := range t.size() {
		xs := t[i]
		if len(xs) == 0 {
			continue
		}
		kept := from.Kept(xs[0].Item.CaseID())
		c := &replay.SuiteCase{Member: scenario.Member{Scenario: scenario.Scenario{Turns: max(kept.Turns, 1)}, Concurrency: kept.Concurrency, Repeat: kept.Repeat, Index: i},
			Case: kept.Case}
		c.Exchanges = xs
		for _, v := range kept.Verdicts {
			c.Verdicts = append(c.Verdicts, exchange.Verdict{Gate: v.Gate, Version: v.Version, Status: v.Status, Lenient: v.Lenient})
		}
		if why := stoppedShort(kept, len(xs)); why != "" {
			c.Stopped = errors.New(why)
		}
		a := measure.Analyze(xs[0])
		streamed = streamed || a.Request.Stream
		if n := a.Request.MaxTokens; n != nil {
			limit = int(*n)
		}
		w.Cases = append(w.Cases, c)
	}
	if len(w.Cases) > 0 {
		first := w.Cases[0]
		w.Name = first.Case.ID[:strings.LastIndexByte(first.Case.ID, '-')]
	}
	w.Wall = replay.WallOf(w.Cases)
	return sampleOf(w, streamed), limit
}

// size is one more than the last place.
func (t take) size() (n int) {
	for i := range t {
		n = max(n, i+1)
	}
	return n
}

// stoppedShort is why a conversation did not go on, "" when it did, or when that is what a gate said of it. What gates said
// of the turns before stands behind it.
func stoppedShort(kept *exchange.PlannedCase, there int) string {
	if kept.Status != exchange.VerdictFail || there >= kept.Turns {
		return ""
	}
	why := kept.Reason
	for _, v := range kept.Verdicts {
		if strings.HasPrefix(why, v.Gate+": ") {
			return ""
		}
		why, _, _ = strings.Cut(why, "; "+v.Gate+": ")
	}
	return why
}

// tooShort reports whether a sample that was asked for again is one of too short an answer still.
func (s *sample) tooShort(limit int) bool {
	return slices.ContainsFunc(s.completions, func(n int) bool { return matrix.HalfBudget(&n, limit, 1) == matrix.SampleNone })
}
