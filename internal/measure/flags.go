package measure

import "slices"

// Flags are remarks on an exchange that a reader of its figures must know. The words are part of the JSON contract; flags
// says what each means.
const (
	FlagBuffered          = "buffered"
	FlagLateBurst         = "late_burst"
	FlagSingleEvent       = "single_event"
	FlagShortAnswer       = "short_answer"
	FlagTokensEstimated   = "tokens_estimated"
	FlagHiddenReasoning   = "hidden_reasoning"
	FlagUsagePartial      = "usage_partial"
	FlagPerChoiceUsage    = "per_choice_usage"
	FlagEcho              = "echo"
	FlagMergedReads       = "merged_reads"
	FlagPrefillDiffers    = "engine_prefill_differs"
	FlagDecodeDiffers     = "engine_decode_differs"
	FlagErrorAsContent    = "error_as_content"
	FlagSwallowedError    = "swallowed_error"
	FlagNoAPIAnswer       = "no_api_answer"
	FlagEventsAfterDone   = "events_after_done"
	FlagDraftCounters     = "draft_counters"
	FlagUnterminatedLast  = "unterminated_last_event"
	FlagTruncatedTail     = "truncated_tail"
	FlagUncleanEnd        = "unclean_end"
	FlagContentCoded      = "content_coded"
	FlagCodingError       = "coding_error"
	FlagWriteStalled      = "write_stalled"
	FlagRecordTruncated   = "record_truncated"
	FlagOversizedEvent    = "oversized_event"
	FlagOutcomeUnverified = "outcome_unverified"
)

// Flag is what a flag means, in one line.
type Flag struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

var flags = [...]Flag{
	{FlagBuffered, "the answer was held back and came in bursts: TTFT and decode rate are absent"},
	{FlagLateBurst, "it began in time, but most of it came at once: TTFT and the mean rate hold, gaps do not"},
	{FlagSingleEvent, "one token event: TTFT, but no decode rate"},
	{FlagShortAnswer, "fewer than half of max_tokens: no sample for decode medians"},
	{FlagTokensEstimated, "completion_tokens counts events"},
	{FlagHiddenReasoning, "reasoning tokens were reported, but none were streamed"},
	{FlagUsagePartial, "only a running usage came, its final one did not"},
	{FlagPerChoiceUsage, "usage covers one choice of several"},
	{FlagEcho, "the answer repeats the prompt"},
	{FlagMergedReads, "some reads brought more than one token event: these share a stamp"},
	{FlagPrefillDiffers, "our prefill rate and the engine's part by more than 5 %, over 20 tokens or more"},
	{FlagDecodeDiffers, "our decode rate and the engine's part by more than 5 %, over 20 tokens or more"},
	{FlagErrorAsContent, "the generated text is an error message: no sample of a run"},
	{FlagSwallowedError, "the stream ended as Ollama's does when it drops an error"},
	{FlagNoAPIAnswer, "a 2xx answer that is no API answer, such as a web page"},
	{FlagEventsAfterDone, "events came after [DONE]; their content is not part of the answer"},
	{FlagDraftCounters, "draft figures rest on counters of the whole engine, while nothing else ran"},
	{FlagUnterminatedLast, "the last event lacked its end"},
	{FlagTruncatedTail, "the body ended inside an event"},
	{FlagUncleanEnd, "the dialect's end came, but the transport did not end properly"},
	{FlagContentCoded, "stamps are those of reads of coded bytes"},
	{FlagCodingError, "the content coding could not be undone to the end"},
	{FlagWriteStalled, "bytes waited 100 ms and more for the client to take them: what came behind them is late"},
	{FlagRecordTruncated, "a memory bound cut the record"},
	{FlagOversizedEvent, "an event was too large to be taken apart: its tokens, usage and end are not in the figures"},
	{FlagOutcomeUnverified, "complete by its transport only: the record was cut before the dialect's end, an event was oversized, or the body was not decoded"},
}

// Flags is the table of all flags in the order in which to print them.
func Flags() []Flag { return slices.Clone(flags[:]) }
