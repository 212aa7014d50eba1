package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// Flags of records, beside those of exchanges.
const (
	FlagShortLeftOut   = "short_answers_left_out" // of answers below half of their limit: the decode rate is that of the others
	FlagQueued         = "queued"                 // fewer slots than requests: they did not decode together
	FlagRetried        = "retried"                // the engine refused a request at first, and said when to come back
	FlagNotSpeculating = "not_speculating"        // the engine was to draft, and counted no drafted token
	FlagUnlisted       = "model_not_listed"       // the server lists models, and not the one that is asked for
	FlagBusyMachine    = "busy_machine"           // something else used the machine when the sitting began
	FlagCrowded        = "memory_exceeded"        // it was up beside another engine, and their weights are more than the memory
	FlagDraftsUnknown  = "drafts_not_counted"     // the engine was to draft, and does not say whether it did
)

// recordOf is the record of a cell by its samples, in the order of the repeats.
func recordOf(p *matrix.Plan, g *matrix.Group, c *matrix.Cell, samples []*sample) matrix.Record {
	r := matrix.NewRecord(p, g, c)
	fill(&r, samples)
	return r
}

// fill fills in what the samples come to.
func fill(r *matrix.Record, samples []*sample) {
	r.Repeats = len(samples)
	if len(samples) == 0 {
		return
	}
	r.Absent, r.Spreads = map[string]exchange.Reason{}, map[string]matrix.Spread{}
	first := samples[0]
	r.TurnsExpected, r.Turns, r.RequestsOK = first.of, first.turns, first.ok
	for _, s := range samples {
		r.Turns, r.RequestsOK = min(r.Turns, s.turns), min(r.RequestsOK, s.ok)
		r.Exchanges, r.Warmups = append(r.Exchanges, s.exchanges...), append(r.Warmups, s.warmups...)
		r.Flags = union(r.Flags, s.flags)
		r.Answers = union(r.Answers, s.answers)
		if r.FinishReason == "" {
			r.FinishReason = s.finish
		}
		if s.usage == exchange.BasisEstimated || r.UsageBasis == "" {
			r.UsageBasis = s.usage
		}
		if s.tools != nil && (r.ToolCallOK == nil || *r.ToolCallOK) {
			r.ToolCallOK = s.tools
		}
		r.Gates = worse(r.Gates, s.gates)
		if r.OutputText == "" {
			r.SetText(s.text)
		}
	}
	numbers(r, samples)
	settle(r, samples)
}

// settle says what became of the cell: it fails when a repeat had no answer at all, and is unsupported when each was refused
// for what the model lacks.
func settle(r *matrix.Record, samples []*sample) {
	why := ""
	for _, s := range samples {
		if why == "" {
			why = s.why
		}
	}
	r.Status = matrix.StatusOK
	switch lack := lackIn(samples); {
	case lack != nil:
		r.LackWith(lack.Lack, lack.why)
	case r.RequestsOK == 0:
		r.Status, r.Detail = matrix.StatusFail, why
		if r.Concurrency > 1 {
			r.Detail = fmt.Sprintf("0/%d parallel requests ok: %s", r.Concurrency, why)
		}
	case r.Concurrency > 1:
		r.Detail = fmt.Sprintf("%d/%d parallel requests ok", r.RequestsOK, r.Concurrency)
		if why != "" {
			r.Detail += "; " + why
		}
	default:
		r.Detail = why
	}
	if drafts := r.MTP || r.Method != "" && r.Method != "none"; drafts && r.Acceptance == nil && r.Status == matrix.StatusOK {
		flag := FlagDraftsUnknown
		if slices.ContainsFunc(samples, func(s *sample) bool { return s.draftsCounted }) {
			flag = FlagNotSpeculating
		}
		r.Flags = union(r.Flags, []string{flag})
	}
}

// numbers fills in the figures: of each the median over the repeats that have it.
func numbers(r *matrix.Record, samples []*sample) {
	n := median{r, samples}
	r.PromptTokens, r.CompletionTokens = n.count("prompt_tokens", measure.PromptTokens), n.count("completion_tokens", measure.CompletionTokens)
	r.TTFTms = n.figure("ttft_ms", measure.TTFTMS)
	r.PrefillTPS = n.figure("prefill_tps", measure.PrefillTPS)
	decode := measure.DecodeTPS
	if samples[0].source == measure.SourceRequestWall {
		decode = measure.WallTPS
	}
	if r.DecodeTPS = n.figure("decode_tps", decode); r.DecodeTPS != nil {
		r.DecodeSource = samples[0].source
	}
	r.EngineDecodeTPS, r.EnginePrefillTPS = n.figure("engine_decode_tps", measure.EngineDecodeTPS), n.figure("engine_prefill_tps", measure.EnginePrefillTPS)
	r.Acceptance = n.ratio("draft_acceptance", measure.DraftAcceptance)
	r.TotalWallMS = n.of("total_wall_ms", func(s *sample) reading {
		if s.wall <= 0 {
			return reading{Figure: exchange.Absent("ms", measure.ReasonNoResponse)}
		}
		return reading{Figure: exchange.Figure{Value: float64(s.wall) / 1e6, Basis: exchange.BasisMeasured}}
	})
	standAside(r, samples, decode)
	if r.CompletionTokens == nil {
		r.UsageBasis = ""
	}
	if r.Concurrency == 1 {
		r.AggregateDecodeTPS = n.figure(measure.AggregateDecodeTPS, decode)
		return
	}
	r.AggregateDecodeTPS = n.wave(measure.AggregateDecodeTPS)
	r.BatchTPS = n.wave(measure.BatchTPS)
	r.SteadyTPS = n.wave(measure.SteadyTPS)
}

// standAside says of a record that has a rate of full answers that short ones beside them are not in it.
func standAside(r *matrix.Record, samples []*sample, decode string) {
	i := slices.Index(r.Flags, measure.FlagShortAnswer)
	full := slices.ContainsFunc(samples, func(s *sample) bool {
		_, has := s.values[decode]
		return has && !s.short[decode]
	})
	if i >= 0 && full {
		r.Flags[i] = FlagShortLeftOut
	}
}

// median makes figures of a record out of samples, and keeps their spread or why they are absent.
type median struct {
	r       *matrix.Record
	samples []*sample
}

// reading is a figure of a sample.
type reading struct {
	exchange.Figure
	short bool // a rate of short answers
}

// of is a median with one decimal, as files have it; its spread has it whole.
func (m median) of(field string, value func(*sample) reading) *float64 {
	if v := m.exact(field, value); v != nil {
		return matrix.Rounded(*v)
	}
	return nil
}

// exact is a median that is not rounded. Rates of short answers stand aside where a repeat has another.
func (m median) exact(field string, value func(*sample) reading) *float64 {
	var have, short []float64
	var why exchange.Reason
	for _, s := range m.samples {
		switch v := value(s); {
		case !v.Present():
			why = v.Reason
		case v.short:
			short = append(short, v.Value)
		default:
			have = append(have, v.Value)
		}
	}
	if len(have) == 0 {
		have = short
	}
	sp, ok := matrix.SpreadOf(have)
	if !ok {
		if why == "" {
			why = measure.ReasonNoResponse
		}
		m.r.Absent[field] = why
		return nil
	}
	m.r.Spreads[field] = sp
	return &sp.Median
}

// mean is the figure of a sample: the mean over its conversations.
func mean(name string) func(*sample) reading {
	return func(s *sample) reading {
		if v, ok := s.values[name]; ok {
			return reading{exchange.Figure{Value: v, Basis: exchange.BasisMeasured}, s.short[name]}
		}
		return reading{Figure: exchange.Absent("", s.absent[name])}
	}
}

func (m median) figure(field, name string) *float64 { return m.of(field, mean(name)) }

// ratio is a figure between 0 and 1, which one decimal would not tell.
func (m median) ratio(field, name string) *float64 { return m.exact(field, mean(name)) }

func (m median) count(field, name string) *int {
	v := m.exact(field, mean(name))
	if v == nil {
		return nil
	}
	n := int(math.RoundToEven(*v))
	return &n
}

func (m median) wave(name string) *float64 {
	return m.of(name, func(s *sample) reading { return reading{Figure: s.wave.Figures[name]} })
}

// about fills in what is known of the server.
func about(r *matrix.Record, f *Facts) {
	r.Run, r.Identity, r.Weights = f.Run, f.Identity, f.Weights
	r.Launch, r.Build, r.ModelFiles = f.Launch, f.Build, f.ModelFiles
	r.RequestedDevice, r.ObservedDevice, r.CPUFallback = f.RequestedDevice, f.ObservedDevice, f.CPUFallback
	r.Slots, r.Context, r.LoadMS = f.Slots, f.Window, f.LoadMS
	r.Command, r.Log, r.Environment = f.Command, f.Log, f.Environment
	if f.Unlisted {
		r.Flags = union(r.Flags, []string{FlagUnlisted})
	}
	if f.Crowded {
		r.Flags = union(r.Flags, []string{FlagCrowded})
	}
	if f.Busy {
		r.Flags = union(r.Flags, []string{FlagBusyMachine})
	}
	if f.Slots != nil && *f.Slots < r.Concurrency && r.Status == matrix.StatusOK {
		r.Flags = union(r.Flags, []string{FlagQueued})
		r.SteadyTPS = nil
		delete(r.Spreads, measure.SteadyTPS)
		r.Absent[measure.SteadyTPS] = FlagQueued
	}
}

// union is a set in order, each once.
func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

// worse keeps of each gate the worse verdict.
func worse(a, b []exchange.CaseVerdict) []exchange.CaseVerdict {
	for _, v := range b {
		i := slices.IndexFunc(a, func(have exchange.CaseVerdict) bool { return have.Gate == v.Gate })
		switch {
		case i < 0:
			a = append(a, v)
		case severity(v.Status) > severity(a[i].Status):
			a[i] = v
		}
	}
	return a
}
