package measure

// Flags are remarks on an exchange that a reader of its figures must know. The words are part of the JSON contract.
const (
	FlagBuffered          = "buffered"                // see burst.go; TTFT and decode rate are absent
	FlagLateBurst         = "late_burst"              // it began in time, but most of it came at once: TTFT and the mean rate hold, gaps do not
	FlagSingleEvent       = "single_event"            // one token event: TTFT, but no decode rate
	FlagShortAnswer       = "short_answer"            // fewer than half of max_tokens: no sample for decode medians
	FlagTokensEstimated   = "tokens_estimated"        // completion_tokens counts events
	FlagHiddenReasoning   = "hidden_reasoning"        // reasoning tokens were reported, but none were streamed
	FlagUsagePartial      = "usage_partial"           // only a running usage came, its final one did not
	FlagPerChoiceUsage    = "per_choice_usage"        // usage covers one choice of several
	FlagEcho              = "echo"                    // the answer repeats the prompt
	FlagMergedReads       = "merged_reads"            // some reads brought more than one token event: these share a stamp
	FlagPrefillDiffers    = "engine_prefill_differs"  // our prefill rate and the engine's part by more than 5 %, over 20 tokens or more
	FlagDecodeDiffers     = "engine_decode_differs"   // our decode rate and the engine's part by more than 5 %, over 20 tokens or more
	FlagErrorAsContent    = "error_as_content"        // the generated text is an error message: no sample of a run
	FlagSwallowedError    = "swallowed_error"         // the stream ended as Ollama's does when it drops an error
	FlagNoAPIAnswer       = "no_api_answer"           // a 2xx answer that is no API answer, such as a web page
	FlagEventsAfterDone   = "events_after_done"       // events came after [DONE]; their content is not part of the answer
	FlagDraftCounters     = "draft_counters"          // draft figures rest on counters of the whole engine, while nothing else ran
	FlagUnterminatedLast  = "unterminated_last_event" // the last event lacked its end
	FlagTruncatedTail     = "truncated_tail"          // the body ended inside an event
	FlagUncleanEnd        = "unclean_end"             // the dialect's end came, but the transport did not end properly
	FlagContentCoded      = "content_coded"           // stamps are those of reads of coded bytes
	FlagCodingError       = "coding_error"            // the content coding could not be undone to the end
	FlagWriteStalled      = "write_stalled"           // bytes waited 100 ms and more for the client to take them: what came behind them is late
	FlagRecordTruncated   = "record_truncated"        // a memory bound cut the record
	FlagOversizedEvent    = "oversized_event"         // an event was too large to be taken apart: its tokens, usage and end are not in the figures
	FlagOutcomeUnverified = "outcome_unverified"      // complete by its transport only: the record was cut before the dialect's end, an event was oversized, or the body was not decoded
)
