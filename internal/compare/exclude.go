package compare

import (
	"math"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// What a metric depends on beside the speed of the engine: where the two sides differ in it, the pair gives no ratio.
type traits uint8

const (
	ofCache  traits = 1 << iota // how much of the prompt was cached, and whether the model was loaded
	ofLength                    // how long the answer is
	ofDecode                    // a rate over the answer, which a short answer does not bear
)

// metric is one line of the comparison.
type metric struct {
	name       string
	moreBetter bool
	traits     traits
}

// metrics are the compared metrics in the order of printing.
var metrics = [...]metric{
	{measure.TTFTMS, false, ofCache},
	{measure.AnswerTTFTMS, false, ofCache | ofLength},
	{measure.PrefillTPS, true, ofCache},
	{measure.PrefillUncachedTPS, true, ofCache},
	{measure.DecodeTPS, true, ofDecode},
	{measure.DecodeFirstEventTPS, true, ofDecode},
	{measure.TPOTMS, false, ofDecode},
	{measure.EventGapP50MS, false, ofDecode},
	{measure.EventGapP99MS, false, ofDecode},
	{measure.WallTPS, true, ofCache | ofLength | ofDecode},
	{measure.TotalWallMS, false, ofCache | ofLength},
	{measure.EnginePrefillTPS, true, ofCache},
	{measure.EngineDecodeTPS, true, ofDecode},
	{measure.EngineTTFTMS, false, ofCache},
	{measure.DraftAcceptance, true, ofDecode},
	{measure.TokensPerStep, true, ofDecode},
}

// Bounds of what counts as the same circumstance.
const (
	cacheShare  = 0.05 // of the prompt, from a cache: the rule of prefill_tps
	lengthShare = 0.10 // of the longer answer
	loadShare   = 0.05 // of the time to the first token, spent on loading
)

// judge decides which takes and pairs give samples.
type judge struct {
	p        *pairing
	accepted []exchange.Reason
}

func (j *judge) accepts(why exchange.Reason) bool { return slices.Contains(j.accepted, why) }

// take is the value that one take gives to a metric, or why it gives none.
func (j *judge) take(side int, e *Entry, m metric) (v float64, why exchange.Reason) {
	f := e.Row.Metrics[m.name]
	flagged := func(flag string) bool { return slices.Contains(e.Row.Flags, flag) }
	switch {
	case !e.complete():
		return 0, ReasonFailed
	case flagged(measure.FlagErrorAsContent):
		return 0, ReasonSuspect
	case !j.accepts(ReasonPartial) && j.p.broken(side, e):
		return 0, ReasonPartial
	case !j.accepts(ReasonWave) && j.p.failedWaves[side][e.Row.Wave]:
		return 0, ReasonWave
	case !f.Present() && f.Reason == "":
		return 0, measure.ReasonNotReported
	case !f.Present():
		return 0, f.Reason
	case m.traits&ofDecode != 0 && flagged(measure.FlagShortAnswer):
		return 0, ReasonShort
	}
	return f.Value, ""
}

// apart is why two complete exchanges of a pair are not compared by a metric; "" when they are.
func (j *judge) apart(a, b *Entry, m metric) exchange.Reason {
	for _, why := range pairReasons(a, b) {
		if !j.accepts(why) {
			return why
		}
	}
	fa, fb := a.Row.Metrics[m.name], b.Row.Metrics[m.name]
	switch {
	case m.traits&ofCache != 0 && !j.accepts(ReasonCache) && otherCache(a, b):
		return ReasonCache
	case m.traits&ofCache != 0 && !j.accepts(ReasonLoad) && loads(a) != loads(b):
		return ReasonLoad
	case m.traits&ofLength != 0 && !j.accepts(ReasonLength) && otherLength(a, b):
		return ReasonLength
	case m.name == measure.DecodeTPS && a.decodeSource() != b.decodeSource():
		return ReasonSource
	case fa.Present() && fb.Present() && (fa.Basis == exchange.BasisEstimated) != (fb.Basis == exchange.BasisEstimated):
		return ReasonEstimated
	}
	return ""
}

// pairReasons are the reasons that hold for every metric: what was asked differs, or how it was answered.
func pairReasons(a, b *Entry) []exchange.Reason {
	out := forbids(differences(a.Request, b.Request), a.Row.Dialect == b.Row.Dialect)
	if a.Row.Stream != b.Row.Stream && !slices.Contains(out, ReasonStream) {
		out = append(out, ReasonStream)
	}
	if a.Reasoned != b.Reasoned && !slices.Contains(out, ReasonThinking) {
		out = append(out, ReasonThinking)
	}
	// Without the stream of one side most figures are absent for that reason already; whole answers still compare by wall.
	return slices.DeleteFunc(out, func(r exchange.Reason) bool { return r == ReasonStream && a.decodeSource() == b.decodeSource() })
}

// cached is the share of the prompt that came from a cache.
func cached(e *Entry) (share float64, known bool) {
	prompt, from := e.Row.Metrics[measure.PromptTokens], e.Row.Metrics[measure.CachedTokens]
	if !prompt.Present() || !from.Present() || prompt.Value <= 0 {
		return 0, false
	}
	return from.Value / prompt.Value, true
}

// otherCache reports whether one side is known to be warmer than the other: a share that is known against one that is
// not differs when it is warm. Where it is not known on both sides, a prompt that its run has sent before is taken to be
// warm, and is not set against one that was sent for the first time.
func otherCache(a, b *Entry) bool {
	x, knownA := cached(a)
	y, knownB := cached(b)
	return math.Abs(x-y) > cacheShare || !(knownA && knownB) && a.again != b.again
}

// loads reports whether loading the model is part of an answer's time.
func loads(e *Entry) bool {
	load, ttft := e.Row.Metrics[measure.LoadMS], e.Row.Metrics[measure.TTFTMS]
	if !ttft.Present() {
		ttft = e.Row.Metrics[measure.TotalWallMS]
	}
	return load.Present() && ttft.Present() && load.Value > loadShare*ttft.Value
}

func otherLength(a, b *Entry) bool {
	x, y := a.Row.Metrics[measure.CompletionTokens], b.Row.Metrics[measure.CompletionTokens]
	return x.Present() && y.Present() && math.Abs(x.Value-y.Value) > lengthShare*max(x.Value, y.Value)
}
