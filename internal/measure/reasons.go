package measure

import "github.com/benchproxy/benchproxy/internal/exchange"

// The reasons for which a figure is absent. The vocabulary is closed: Reasons lists it, and a test holds that no other
// word is ever given.
const (
	ReasonNotSent          exchange.Reason = "not_sent"                   // no request byte went to the engine: there is no t0
	ReasonNoResponse       exchange.Reason = "no_response"                // no response head came
	ReasonNoBody           exchange.Reason = "no_body"                    // no body byte came
	ReasonNoEvent          exchange.Reason = "no_event"                   // no event came
	ReasonNoDialect        exchange.Reason = "no_dialect"                 // the path speaks no language we read
	ReasonNotStreamed      exchange.Reason = "not_streamed"               // the answer came as one value
	ReasonNoTokenEvent     exchange.Reason = "no_token_event"             // the answer holds no generated content
	ReasonReasoningOnly    exchange.Reason = "reasoning_only"             // thinking came, but no answer
	ReasonNotReported      exchange.Reason = "not_reported"               // the engine does not say
	ReasonPerChoice        exchange.Reason = "per_choice_usage"           // usage is that of one choice of several, not of the answer
	ReasonEcho             exchange.Reason = "echo"                       // the answer repeats the prompt: its events are not all generated
	ReasonBuffered         exchange.Reason = "buffered"                   // the stream was held back and came in bursts
	ReasonHiddenReasoning  exchange.Reason = "hidden_reasoning"           // tokens were spent on reasoning that was not streamed
	ReasonSingleEvent      exchange.Reason = "single_event"               // the whole answer is one token event
	ReasonTooFewTokens     exchange.Reason = "too_few_tokens"             // fewer than two tokens
	ReasonZeroWindow       exchange.Reason = "zero_window"                // first and last token have one stamp, their span is shorter than any engine needs for its tokens, or a span is empty
	ReasonTooFewReads      exchange.Reason = "too_few_reads"              // all token events came in one read
	ReasonShortStream      exchange.Reason = "stream_under_1s"            // less than one second from first to last token
	ReasonFirstEventTokens exchange.Reason = "first_event_tokens_unknown" // no token ids, log-probabilities or running usage
	ReasonCached           exchange.Reason = "cached"                     // too much of the prompt came from a cache
	ReasonCachedUnknown    exchange.Reason = "cached_unknown"             // the engine does not say how much came from a cache
	ReasonNoDrafts         exchange.Reason = "no_draft_evidence"          // this answer says nothing of drafted tokens
	ReasonStepsUnknown     exchange.Reason = "steps_unknown"              // drafts are reported, verification steps are not
	ReasonNotComparable    exchange.Reason = "not_comparable"             // one side of a comparison is absent
	ReasonNoClientWrite    exchange.Reason = "no_client_write"            // nothing was written to a client
	ReasonRecordTruncated  exchange.Reason = "record_truncated"           // the record was cut before the end of the answer
	ReasonMemberFailed     exchange.Reason = "wave_member_failed"         // a request of the wave did not end complete
	ReasonNotTogether      exchange.Reason = "not_together"               // the streams of the wave never decoded all at once
)

// Reasons is the whole vocabulary, in the order of its definition.
func Reasons() []exchange.Reason {
	return []exchange.Reason{
		ReasonNotSent, ReasonNoResponse, ReasonNoBody, ReasonNoEvent, ReasonNoDialect, ReasonNotStreamed,
		ReasonNoTokenEvent, ReasonReasoningOnly, ReasonNotReported, ReasonPerChoice, ReasonEcho, ReasonBuffered,
		ReasonHiddenReasoning, ReasonSingleEvent, ReasonTooFewTokens, ReasonZeroWindow, ReasonTooFewReads,
		ReasonShortStream, ReasonFirstEventTokens, ReasonCached, ReasonCachedUnknown, ReasonNoDrafts,
		ReasonStepsUnknown, ReasonNotComparable, ReasonNoClientWrite, ReasonRecordTruncated,
		ReasonMemberFailed, ReasonNotTogether,
	}
}
