package measure

import (
	"math"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// formulasJSON is one request under every tool's decode formula, and the floors and ratios around them.
type formulasJSON struct {
	Input struct {
		Request struct {
			SentMS           float64 `json:"sent_ms"`
			FirstTokenMS     float64 `json:"first_token_ms"`
			LastTokenMS      float64 `json:"last_token_ms"`
			StreamEndMS      float64 `json:"stream_end_ms"`
			PromptTokens     int64   `json:"prompt_tokens"`
			CompletionTokens int64   `json:"completion_tokens"`
		} `json:"request"`
		BenchRigFloor []struct {
			Tokens   float64 `json:"tokens"`
			WindowMS float64 `json:"window_ms"`
		} `json:"benchrig_floor"`
		LoomHalfBudget []struct {
			MaxTokens        int64 `json:"max_tokens"`
			CompletionTokens int64 `json:"completion_tokens"`
		} `json:"loom_half_budget"`
		Spec     specJSON   `json:"spec"`
		SpecPool []specJSON `json:"spec_pool"`
	} `json:"input"`
	Expected struct {
		Request       map[string]float64 `json:"request"`
		BenchRigFloor []struct {
			TPS     float64 `json:"eval_tok_per_sec"`
			Floored bool    `json:"floored"`
		} `json:"benchrig_floor"`
		LoomHalfBudget []struct {
			Counts bool `json:"counts"`
		} `json:"loom_half_budget"`
		Spec     map[string]float64 `json:"spec"`
		SpecPool map[string]float64 `json:"spec_pool"`
	} `json:"expected"`
	Tolerance struct {
		Relative float64 `json:"relative"`
	} `json:"tolerance"`
}

type specJSON struct {
	Drafted          float64 `json:"drafted"`
	Accepted         float64 `json:"accepted"`
	Steps            float64 `json:"steps"`
	CompletionTokens float64 `json:"completion_tokens"`
	TTFTMS           float64 `json:"ttft_ms"`
	TotalMS          float64 `json:"total_ms"`
	BaselineTPS      float64 `json:"baseline_tg_tps"`
}

func (s specJSON) speculation() Speculation {
	return Speculation{
		Drafted: s.Drafted, Accepted: s.Accepted, Steps: s.Steps, Completion: s.CompletionTokens,
		TTFTMS: s.TTFTMS, TotalMS: s.TotalMS, BaselineTPS: s.BaselineTPS,
	}
}

func TestToolDecodeFormulas(t *testing.T) {
	c := loadToolCases(t).DecodeFormulas
	r := c.Input.Request
	s := newScript().read(r.FirstTokenMS, wire.KindText).read(r.LastTokenMS, wire.KindText).usage(r.PromptTokens, r.CompletionTokens).end(r.StreamEndMS)
	ours := s.derive()
	whole := newScript().read(r.StreamEndMS, wire.KindText).usage(r.PromptTokens, r.CompletionTokens)
	whole.t.Framing = wire.FramingJSON
	got := map[string]exchange.Figure{
		"prefill_tps":                      ours.Figures[PrefillTPS],
		"tensorsharp_decode_tps":           TensorSharp(s.x, s.t).Figures[DecodeTPS],
		"loom_decode_tps":                  Loom(s.x, s.t).Figures[DecodeTPS],
		"benchrig_eval_tok_per_sec":        BenchRig(s.x, s.t).Figures[DecodeTPS],
		"tool_eval_bench_effective_tg_tps": ToolEval(s.x, s.t).Figures[SetEffectiveTPS],
		"request_wall_decode_tps":          TensorSharp(whole.x, whole.t).Figures[DecodeTPS],
	}
	wantAll(t, c.Expected.Request, got, c.Tolerance.Relative)
	wantValue(t, ours, DecodeTPS, 50, msrd) // our own formula is that of TensorSharp's stream window
	if row := TensorSharp(whole.x, whole.t); row.DecodeSource != SourceRequestWall {
		t.Errorf("a whole answer has the source %q", row.DecodeSource)
	}
	if row := TensorSharp(s.x, s.t); row.Figures[PrefillTPS].Value != 2000 || Loom(s.x, s.t).Figures[PrefillTPS].Value != 2000 {
		t.Errorf("prefill %v", row.Figures[PrefillTPS])
	}
}

// wantAll checks that both sides name the same figures and agree.
func wantAll(t *testing.T, want map[string]float64, got map[string]exchange.Figure, relative float64) {
	t.Helper()
	for name, v := range want {
		f, ok := got[name]
		if !ok || !f.Present() || math.Abs(f.Value-v) > relative*math.Abs(v) {
			t.Errorf("%s is %+v (known: %v), want %v", name, f, ok, v)
		}
	}
	if len(want) == 0 {
		t.Error("nothing was expected")
	}
}

func TestToolFloors(t *testing.T) {
	c := loadToolCases(t).DecodeFormulas
	for i, in := range c.Input.BenchRigFloor {
		tps, floored := BenchRigDecode(in.Tokens, in.WindowMS)
		want := c.Expected.BenchRigFloor[i]
		if math.Abs(tps-want.TPS) > c.Tolerance.Relative*want.TPS || floored != want.Floored {
			t.Errorf("%v tokens in %v ms: %v, %v; want %+v", in.Tokens, in.WindowMS, tps, floored, want)
		}
	}
	for i, in := range c.Input.LoomHalfBudget {
		want := c.Expected.LoomHalfBudget[i].Counts
		if got := LoomCounts(in.CompletionTokens, in.MaxTokens); got != want {
			t.Errorf("%+v counts: %v", in, got)
		}
		s := newScript().texts(1, 1, 5).usage(1, in.CompletionTokens)
		s.r.MaxTokens = &in.MaxTokens
		if short := s.derive().Flagged(FlagShortAnswer); short == want {
			t.Errorf("%+v: short is %v, counts is %v", in, short, want)
		}
	}
	if len(c.Input.BenchRigFloor) != 4 || len(c.Input.LoomHalfBudget) != 2 {
		t.Error("cases are missing")
	}
}

func TestToolSpeculation(t *testing.T) {
	c := loadToolCases(t).DecodeFormulas
	wantAll(t, c.Expected.Spec, c.Input.Spec.speculation().Figures(), c.Tolerance.Relative)
	var pool []Speculation
	for _, s := range c.Input.SpecPool {
		pool = append(pool, s.speculation())
	}
	got := map[string]exchange.Figure{"acceptance_rate": PooledAcceptance(pool)}
	wantAll(t, c.Expected.SpecPool, got, c.Tolerance.Relative)
	for name, f := range (Speculation{TTFTMS: 5, TotalMS: 5}).Figures() {
		if f.Present() || f.Reason == "" {
			t.Errorf("%s of nothing is %+v", name, f)
		}
	}
}

func TestSetsDifferWhereTheirToolsDo(t *testing.T) {
	s := newScript().read(100, wire.KindTool).read(200, wire.KindReasoning).read(300, wire.KindText).usage(10, 4).end(400)
	s.t.Usage.Completion, s.t.ParseErrors = nil, 1
	rows := map[string]Row{}
	for _, set := range Sets() {
		row := set.Measure(s.x, s.t)
		if row.Set != set.Name {
			t.Errorf("set %s gives rows of %s", set.Name, row.Set)
		}
		rows[set.Name] = row
	}
	if r := rows["tensorsharp"]; r.OK || r.Failure != FailureInvalidJSON || r.Figures[TTFTMS].Value != 100 {
		t.Errorf("tensorsharp: %+v", r)
	}
	r := rows["benchrig"] // skips the broken event, waits for text or reasoning, counts events
	if !r.OK || r.Figures[TTFTMS].Value != 200 || r.Figures[AnswerTTFTMS].Value != 300 || r.Figures[CompletionTokens].Value != 2 {
		t.Errorf("benchrig: %+v", r)
	}
	if r.Figures[DecodeTPS].Value != 10 || r.Figures[DecodeTPS].Basis != estd || r.Figures[PrefillTPS].Present() {
		t.Errorf("benchrig rates: %+v", r.Figures)
	}
	if r := rows["tool-eval"]; r.Figures[TTFTMS].Value != 100 || r.Figures[SetEffectiveTPS].Present() {
		t.Errorf("tool-eval: %+v", r)
	}
}

func TestSetsOnEngineTimings(t *testing.T) {
	s := newScript().texts(100, 100, 3).usage(1000, 9).end(500)
	s.t.Timings = &wire.Timings{Source: "timings", DecodeTPS: ref(33.0), PrefillTPS: ref(9000.0)}
	for _, row := range []Row{TensorSharp(s.x, s.t), Loom(s.x, s.t)} {
		if row.DecodeSource != SourceEngine || row.Figures[DecodeTPS].Value != 33 || row.Figures[DecodeTPS].Basis != rptd {
			t.Errorf("%s: %+v", row.Set, row)
		}
	}
	if got := Loom(s.x, s.t).Figures[PrefillTPS].Value; got != 9000 {
		t.Errorf("loom prefill %v", got)
	}
	if got := BenchRig(s.x, s.t).Figures[PrefillTPS]; got.Value != 9000 || got.Basis != rptd {
		t.Errorf("benchrig prefill %+v", got)
	}
	if got := TensorSharp(s.x, s.t).Figures[PrefillTPS].Value; got != 10000 {
		t.Errorf("tensorsharp prefill %v", got)
	}
}

func TestToolEvalEndsAtTheLastTokenWithTokenIDs(t *testing.T) {
	s := newScript().texts(100, 100, 3).usage(1, 9).end(500)
	if got := ToolEval(s.x, s.t).Figures[DecodeTPS].Value; got != 20 {
		t.Errorf("to the end of the stream: %v", got)
	}
	s.t.TokenIDs = 9
	if got := ToolEval(s.x, s.t).Figures[DecodeTPS].Value; got != 40 {
		t.Errorf("to the last token: %v", got)
	}
	one := newScript().texts(100, 1, 1).usage(1, 1).end(300)
	if got := ToolEval(one.x, one.t).Figures; got[DecodeTPS].Value != 5 || got[SetEffectiveTPS].Value != 1/0.3 {
		t.Errorf("one token: %v, %v", got[DecodeTPS], got[SetEffectiveTPS])
	}
}

func TestSetsOnFailures(t *testing.T) {
	for want, s := range map[exchange.Reason]*script{
		FailureHTTPError: newScript().texts(1, 1, 3).usage(1, 3), FailureEngineError: newScript().texts(1, 1, 3).usage(1, 3), FailureNoResponse: newScript(),
	} {
		switch want {
		case FailureHTTPError:
			s.x.Response.Status = 503
		case FailureEngineError:
			s.t.Error = &wire.Error{Message: "x"}
		case FailureNoResponse:
			s.x.Response.Status = 0
		}
		for _, set := range Sets() {
			row := set.Measure(s.x, s.t)
			if row.OK || row.Failure != want || row.Figures[DecodeTPS].Present() || row.DecodeSource != "" {
				t.Errorf("%s on %s: %+v", set.Name, want, row)
			}
		}
	}
}

func TestBenchRigGuessesWordsOfAWholeAnswer(t *testing.T) {
	s := newScript().read(100, wire.KindText)
	s.t.Framing, s.t.Choices = wire.FramingJSON, []wire.Choice{{Text: "one two three four"}}
	if got := BenchRig(s.x, s.t).Figures[CompletionTokens]; got.Value != 5 || got.Basis != estd {
		t.Errorf("%+v", got)
	}
	s.t.Choices = nil
	if got := BenchRig(s.x, s.t).Figures[CompletionTokens].Value; got != 1 {
		t.Errorf("nothing is %v tokens", got)
	}
}
