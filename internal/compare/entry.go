package compare

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
	"github.com/benchproxy/benchproxy/internal/wire"
)

// Side is one run of a comparison.
type Side struct {
	Run      exchange.Run
	Upstream string  // the entries are those of this upstream only; "" = of all
	Entries  []Entry // in the order of acceptance
}

// Entry is what a comparison keeps of one exchange: no text and no bytes.
type Entry struct {
	Row      exchange.Summary
	Request  Fields
	Answer   uint64 // hash of the texts and calls of the answer
	Reasoned bool   // the answer holds reasoning, streamed or only counted
	again    bool   // its run has sent the same prompt before, to the last byte
	clock    exchange.StampClock
	instants
}

// circumstances are the metrics an entry keeps beside the compared ones.
var circumstances = [...]string{measure.PromptTokens, measure.CompletionTokens, measure.CachedTokens, measure.LoadMS}

// Answer is what was generated, and how it ended.
type Answer struct {
	Reasoning, Text, Refusal string
	Calls                    []exchange.ToolCall
	Finish                   string // "" when the engine named no reason
}

// NewEntry reduces an exchange to an entry. request is the request body as the engine got it, undecoded.
func NewEntry(d *exchange.Detail, request []byte) Entry {
	e := Entry{Row: d.Summary, Answer: answerHash(AnswerOf(d))}
	e.again = sentBefore(d)
	e.Row.Interventions = nil
	e.Row.Metrics = make(exchange.Figures, len(metrics)+len(circumstances))
	for _, name := range append(MetricNames(), circumstances[:]...) {
		e.Row.Metrics[name] = d.Metrics[name]
	}
	facts := wire.ReadRequest(d.Path, d.Request.Headers, request)
	e.clock = d.Timeline.Clock
	e.Request = readFields(request, facts)
	reasoning := d.Metrics[measure.ReasoningTokens]
	e.Reasoned = d.ReasoningText != "" || reasoning.Present() && reasoning.Value > 0
	e.instants = instantsOf(&d.Timeline.Timeline, d.Metrics)
	return e
}

// sentBefore reports whether a replay that repeats its workload sent this prompt before: a nonce makes every one new.
func sentBefore(d *exchange.Detail) bool {
	nonce := func(i exchange.Intervention) bool { return i.Kind == exchange.KindNonce }
	return d.Item != nil && d.Item.Repeat > 0 && !slices.ContainsFunc(d.Interventions, nonce)
}

func seconds(origin time.Time, ns int64) float64 {
	return float64(origin.UnixNano())/1e9 + float64(ns)/1e9
}

// AnswerOf is the first choice of an answer.
func AnswerOf(d *exchange.Detail) Answer {
	a := Answer{Reasoning: d.ReasoningText, Text: d.OutputText, Refusal: d.RefusalText, Calls: d.Calls}
	if d.FinishReason != nil {
		a.Finish = *d.FinishReason
	}
	return a
}

// answerHash tells equal answers without their texts. Ids of tool calls are drawn at random by most engines and take no
// part, nor does the reason for the end.
func answerHash(a Answer) uint64 {
	h := fnv.New64a()
	parts, _ := json.Marshal([]any{a.Reasoning, a.Text, a.Refusal, callTexts(a.Calls)}) // strings always marshal
	_, _ = h.Write(parts)                                                               // a hash takes everything
	return h.Sum64()
}

// callTexts are tool calls as name(arguments).
func callTexts(calls []exchange.ToolCall) []string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = c.Name + "(" + c.Arguments + ")"
	}
	return out
}

func (e *Entry) complete() bool { return e.Row.Outcome == exchange.OutcomeComplete }

// measured reports whether the exchange is of the run's measuring: a request for generation, and no warm-up.
func (e *Entry) measured() bool {
	return e.Row.Dialect != "" && (e.Row.Item == nil || !e.Row.Item.Warmup)
}

// decodeSource is the formula by which the speed of an answer can be told.
func (e *Entry) decodeSource() measure.DecodeSource {
	for _, s := range []struct {
		metric string
		source measure.DecodeSource
	}{{measure.DecodeTPS, measure.SourceStreamWindow}, {measure.EngineDecodeTPS, measure.SourceEngine}, {measure.WallTPS, measure.SourceRequestWall}} {
		if e.Row.Metrics[s.metric].Present() {
			return s.source
		}
	}
	return ""
}
