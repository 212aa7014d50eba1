package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Set is a named set of definitions: how another tool would put one exchange into numbers. Its figures carry names of
// the tool's meaning and are never mixed with those of Metrics.
type Set struct {
	Name    string // tensorsharp, loom, benchrig, tool-eval, vllm, aiperf, guidellm, inference-perf, otel
	Measure func(x *exchange.Exchange, t *wire.Transcript) Row
	Rules   []SetRule // of the figures it has, in the order of printing
}

// Sets are the definition sets of the tools whose numbers stand beside ours: those of four harnesses first, then those of
// load generators and conventions.
func Sets() []Set {
	return []Set{
		{"tensorsharp", TensorSharp, tensorSharpRules[:]},
		{"loom", Loom, loomRules[:]},
		{"benchrig", BenchRig, benchRigRules[:]},
		{"tool-eval", ToolEval, toolEvalRules[:]},
		{"vllm", VLLM, vllmRules[:]},
		{"aiperf", AIPerf, aiperfRules[:]},
		{"guidellm", GuideLLM, guideLLMRules[:]},
		{"inference-perf", InferencePerf, inferencePerfRules[:]},
		{"otel", OTel, otelRules[:]},
	}
}

// DecodeSource says which formula a decode rate came from. Rates of different sources are not divided by each other.
type DecodeSource string

const (
	SourceStreamWindow DecodeSource = "stream_window" // over a window of the stream, by our clock
	SourceEngine       DecodeSource = "engine"        // stated by the engine (TensorSharp's own word is "server")
	SourceRequestWall  DecodeSource = "request_wall"  // over the whole request
)

// Row is one exchange by a set of definitions. A figure the tool would print as 0 for want of data is absent here.
type Row struct {
	Set          string
	OK           bool             // the tool would take the exchange for a success
	Failure      exchange.Reason  // why not: invalid_json, engine_error, http_error; "" when OK
	UsageSeen    bool             // the engine reported usage
	DecodeSource DecodeSource     // of decode_tps; "" when it is absent
	Floored      bool             // decode_tps rests on the tool's minimum window
	Figures      exchange.Figures // by the names of the set*-constants
}

// Names of the figures of a Row. ttft_ms and the others named as in Metrics mean the tool's own rule here.
const (
	SetTokenDeltas  = "token_deltas"             // pieces of generated content, as the tool counts them
	SetDecodeStream = "decode_tps_stream_window" // the tool's decode rate by the client clock, where it prefers the engine's
	SetEffectiveTPS = "effective_tg_tps"         // tool-eval: (n-1) over request minus TTFT
)

// Failures a tool can see in an exchange.
const (
	FailureInvalidJSON exchange.Reason = "invalid_json"
	FailureEngineError exchange.Reason = "engine_error"
	FailureHTTPError   exchange.Reason = "http_error"
	FailureNoResponse  exchange.Reason = "no_response"
)

// toolView is an exchange in the terms that the tools share: ms from the send, and counts as sent.
type toolView struct {
	*stream
	ttft   float64 // ms, of the first event whose kinds the tool looks at
	hasTok bool
	last   float64 // ms, of the last such event
	end    float64 // ms, end of the stream
	hasEnd bool
}

// toolOf looks at the exchange through the kinds of content a tool knows.
func toolOf(x *exchange.Exchange, t *wire.Transcript, kinds wire.Kind) toolView {
	v := toolView{stream: newStream(x, t, wire.RequestFacts{N: 1})}
	if ns, ok := x.Timeline.BodyEnd.NS(); ok && v.sent {
		v.end, v.hasEnd = float64(ns-v.t0)/nsPerMS, true
	}
	if !v.streamed || !v.sent {
		return v
	}
	for i := range v.events {
		e := &v.events[i]
		if e.Kinds&kinds == 0 {
			continue
		}
		ms := float64(e.at) / nsPerMS
		if !v.hasTok {
			v.ttft, v.hasTok = ms, true
		}
		v.last = ms
	}
	return v
}

// firstOf is the instant of the first event of the given kinds in ms.
func (v toolView) firstOf(kinds wire.Kind) exchange.Figure {
	for i := range v.events {
		if v.streamed && v.events[i].Kinds&kinds != 0 {
			return measured(float64(v.events[i].at)/nsPerMS, unitMS)
		}
	}
	return exchange.Absent(unitMS, ReasonNoTokenEvent)
}

// failure is what every tool takes for a failed request.
func (v toolView) failure() exchange.Reason {
	switch {
	case v.x.Response.Status == 0:
		return FailureNoResponse
	case v.x.Response.Status != 200:
		return FailureHTTPError
	case v.t.Error != nil:
		return FailureEngineError
	}
	return ""
}

// row starts a row with the instants and counts that need no rule of the tool's own.
func (v toolView) row(set string, failure exchange.Reason) Row {
	r := Row{Set: set, OK: failure == "", Failure: failure, UsageSeen: v.t.Usage != nil, Figures: exchange.Figures{}}
	fs := r.Figures
	fs[TTFTMS], fs[LastTokenMS] = exchange.Absent(unitMS, ReasonNoTokenEvent), exchange.Absent(unitMS, ReasonNoTokenEvent)
	if v.hasTok {
		fs[TTFTMS], fs[LastTokenMS] = measured(v.ttft, unitMS), measured(v.last, unitMS)
	}
	fs[TotalWallMS] = exchange.Absent(unitMS, ReasonNoResponse)
	if v.hasEnd {
		fs[TotalWallMS] = measured(v.end, unitMS)
	}
	fs[PromptTokens], fs[CompletionTokens] = v.usage(false), v.usage(true)
	for _, name := range []string{PrefillTPS, DecodeTPS} {
		fs[name] = exchange.Absent(unitTPS, ReasonNotReported)
	}
	return r
}

// usage is a count of the engine's last usage and of nothing else.
func (v toolView) usage(completion bool) exchange.Figure {
	f := exchange.Absent(unitTokens, ReasonNotReported)
	if u := v.t.Usage; u != nil && completion {
		take(&f, u.Completion)
	} else if u != nil {
		take(&f, u.Prompt)
	}
	return f
}

// perSecond is count over ms as a rate, absent unless both are positive.
func perSecond(count, ms float64, basis exchange.Figure) exchange.Figure {
	if count <= 0 || ms <= 0 {
		return exchange.Absent(unitTPS, ReasonZeroWindow)
	}
	return rate(count/ms*1000, unitTPS, basis)
}
