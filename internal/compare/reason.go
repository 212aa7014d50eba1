package compare

import (
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/measure"
)

// Reasons for which whole runs are not compared.
const (
	ReasonIncomplete  exchange.Reason = "incomplete_run"    // a run is open, was cut, or lost records
	ReasonSchedule    exchange.Reason = "missed_schedule"   // an open loop did not keep its schedule
	ReasonWeights     exchange.Reason = "other_weights"     // the engines are known to serve different weights
	ReasonFallback    exchange.Reason = "cpu_fallback"      // an engine ran on the CPU though a GPU was asked for
	ReasonChanged     exchange.Reason = "engine_changed"    // an engine was restarted or changed within a run
	ReasonUpstreams   exchange.Reason = "several_upstreams" // a run mixes several engines
	ReasonConcurrency exchange.Reason = "other_concurrency" // one side ran more requests at once
	ReasonDriver      exchange.Reason = "other_driver"      // the runs were driven differently: closed loop, rate, waves
	ReasonUnpaired    exchange.Reason = "unpaired"          // without a plan: requests that only one side has
)

// Reasons for which a pair is not compared, beside the reasons of internal/measure for a figure that is absent.
const (
	ReasonFailed    exchange.Reason = "failed"               // one side did not end complete
	ReasonPartial   exchange.Reason = "partial_conversation" // it is a turn of a conversation that stopped early on one side
	ReasonWave      exchange.Reason = "failed_wave"          // a request that was sent together with it failed: it had the engine more to itself
	ReasonStream    exchange.Reason = "other_stream"         // one was streamed, the other not
	ReasonLimit     exchange.Reason = "other_output_limit"
	ReasonSampling  exchange.Reason = "other_sampling"
	ReasonThinking  exchange.Reason = "other_thinking"
	ReasonStructure exchange.Reason = "other_structure"     // tools, response format or stop words differ
	ReasonCache     exchange.Reason = "other_cache_state"   // warm against cold: another part of the prompt came from a cache
	ReasonLoad      exchange.Reason = "model_load"          // one side loaded the model first
	ReasonLength    exchange.Reason = "other_length"        // the answers' lengths differ by more than a tenth
	ReasonSource    exchange.Reason = "other_decode_source" // the speed comes from different formulas
	ReasonShort     exchange.Reason = measure.ExcludedShort
	ReasonSuspect   exchange.Reason = measure.ExcludedSuspect
	ReasonEstimated exchange.Reason = measure.ExcludedEstimated // one side counts tokens, the other events
	ReasonNoPairs   exchange.Reason = "no_pairs"                // nothing belongs together

	// ReasonCircumstances is why a take of the reference is left out of a pair that gives a ratio: the candidate has no take
	// under its circumstances.
	ReasonCircumstances exchange.Reason = "other_circumstances"
)

// Why a difference is not told from noise.
const (
	ReasonTooFew     exchange.Reason = "too_few_takes"           // no outcome could come out below 5 % by chance
	ReasonNoise      exchange.Reason = "noise"                   // same sides would give such a difference too often
	ReasonMargin     exchange.Reason = "within_margin"           // smaller than what counts as a difference
	ReasonInstrument exchange.Reason = "within_instrument_noise" // smaller than what the measuring machine can tell
)

// ReasonPrompts stands beside a verdict that holds: in half of the pairs or more the two sides count the prompt in numbers
// of tokens that differ by more than 5 %. The tokenizers or the prompts are not the same.
const ReasonPrompts exchange.Reason = "other_prompt_tokens"

// acceptable are the reasons a caller may lift.
var acceptable = []exchange.Reason{
	ReasonIncomplete, ReasonSchedule, ReasonWeights, ReasonFallback, ReasonChanged, ReasonUpstreams, ReasonConcurrency, ReasonDriver,
	ReasonUnpaired, ReasonPartial, ReasonWave, ReasonLimit, ReasonSampling, ReasonThinking, ReasonStructure, ReasonCache, ReasonLoad, ReasonLength,
}

// Acceptable are the reasons that Options.Accept may name. The others cannot be lifted: without them there is no number.
func Acceptable() []exchange.Reason { return slices.Clone(acceptable) }
