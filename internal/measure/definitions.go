package measure

import "slices"

// Names of the metrics. They are the keys of Figures and of every JSON document.
const (
	HeadersMS    = "headers_ms"
	FirstByteMS  = "first_byte_ms"
	FirstEventMS = "first_event_ms"
	TTFTMS       = "ttft_ms"
	AnswerTTFTMS = "answer_ttft_ms"
	LastTokenMS  = "last_token_ms"
	TotalWallMS  = "total_wall_ms"

	QueueMS       = "queue_ms"
	LoadMS        = "load_ms"
	EngineQueueMS = "engine_queue_ms"
	ThinkMS       = "think_ms"

	PromptTokens     = "prompt_tokens"
	CompletionTokens = "completion_tokens"
	CachedTokens     = "cached_tokens"
	ReasoningTokens  = "reasoning_tokens"
	ReasoningChars   = "reasoning_chars"
	TokenEvents      = "token_events"

	PrefillTPS          = "prefill_tps"
	PrefillUncachedTPS  = "prefill_uncached_tps"
	DecodeTPS           = "decode_tps"
	DecodeFirstEventTPS = "decode_first_event_tps"
	TPOTMS              = "tpot_ms"
	WallTPS             = "wall_tps"
	Peak1sTPS           = "peak_1s_tps"

	EnginePrefillTPS    = "engine_prefill_tps"
	EnginePrefillMaxTPS = "engine_prefill_max_tps"
	EngineDecodeTPS     = "engine_decode_tps"
	EngineTTFTMS        = "engine_ttft_ms"
	PrefillEngineDiff   = "prefill_engine_diff"
	DecodeEngineDiff    = "decode_engine_diff"

	EventGapP50MS  = "event_gap_p50_ms"
	EventGapP90MS  = "event_gap_p90_ms"
	EventGapP99MS  = "event_gap_p99_ms"
	EventGapMaxMS  = "event_gap_max_ms"
	TokensPerEvent = "tokens_per_event"
	EventsPerRead  = "events_per_read"
	MergedReads    = "merged_reads"

	DraftAcceptance    = "draft_acceptance"
	DraftWaste         = "draft_waste"
	DraftWindow        = "draft_window"
	TokensPerStep      = "tokens_per_step"
	VerifyStepsPS      = "verify_steps_per_s"
	AcceptedGoodputTPS = "accepted_goodput_tps"

	AddedP50US   = "added_p50_us"
	AddedP99US   = "added_p99_us"
	WriteStallMS = "write_stall_ms"
	ProxyQueueMS = "proxy_queue_ms"
)

// Units of the metrics.
const (
	unitMS     = "ms"
	unitUS     = "us"
	unitTPS    = "tok/s"
	unitTokens = "tokens"
	unitEvents = "events"
	unitReads  = "reads"
	unitRatio  = "ratio"
	unitChars  = "chars"
	unitSteps  = "steps/s"
)

// Definition is what a metric means, in one line.
type Definition struct {
	Name string `json:"name"`
	Unit string `json:"unit"` // ms, us, tok/s, steps/s, tokens, chars, events, reads, ratio
	Text string `json:"text"` // t0 is the moment before the first request byte is written to the engine
}

// definitions is the table. Its order is the order of printing.
var definitions = [...]Definition{
	{HeadersMS, unitMS, "response head complete, from t0"},
	{FirstByteMS, unitMS, "first body byte, from t0"},
	{FirstEventMS, unitMS, "first event of any kind, from t0"},
	{TTFTMS, unitMS, "first event with generated content of any kind (text, reasoning, refusal, tool call), from t0"},
	{AnswerTTFTMS, unitMS, "first event with text, refusal or tool call, from t0"},
	{LastTokenMS, unitMS, "last event with generated content, from t0"},
	{TotalWallMS, unitMS, "end of the response body, from t0"},
	{QueueMS, unitMS, "last event that named a place in the engine's queue, from t0: the request waited at least so long"},
	{LoadMS, unitMS, "loading the model for this request, by the engine's own clock; some engines count waiting in it"},
	{EngineQueueMS, unitMS, "waiting before the work began, by the engine's own clock"},
	{ThinkMS, unitMS, "answer_ttft_ms - ttft_ms"},

	{PromptTokens, unitTokens, "tokens of the prompt by the engine's last usage, cached ones included"},
	{CompletionTokens, unitTokens, "generated tokens by the engine's last usage, reasoning included; else the number of token events, marked estimated"},
	{CachedTokens, unitTokens, "prompt tokens that came from a cache, as the engine reports"},
	{ReasoningTokens, unitTokens, "generated tokens spent on reasoning, as the engine reports"},
	{ReasoningChars, unitChars, "characters of reasoning in all choices"},
	{TokenEvents, unitEvents, "events with generated content"},

	{PrefillTPS, unitTPS, "prompt_tokens / TTFT, when at most 5 % of the prompt came from a cache and no hidden reasoning lies in TTFT"},
	{PrefillUncachedTPS, unitTPS, "(prompt_tokens - cached_tokens) / TTFT, from 32 uncached tokens on"},
	{DecodeTPS, unitTPS, "(completion_tokens - 1) / (last token - first token)"},
	{DecodeFirstEventTPS, unitTPS, "(completion_tokens - tokens in the first event) / (last token - first token)"},
	{TPOTMS, unitMS, "(last token - first token) / (completion_tokens - 1)"},
	{WallTPS, unitTPS, "completion_tokens / total wall time"},
	{Peak1sTPS, unitTPS, "largest number of tokens in any one second of the stream, or the mean over the whole stream where that is larger"},

	{EnginePrefillTPS, unitTPS, "prefill rate of the uncached prompt by the engine's own clock"},
	{EnginePrefillMaxTPS, unitTPS, "all prompt tokens / the engine's time for those it had to read: the prefill rate is at most this, and is this when nothing was cached"},
	{EngineDecodeTPS, unitTPS, "decode rate by the engine's own clock"},
	{EngineTTFTMS, unitMS, "time to first token by the engine's own clock"},
	{PrefillEngineDiff, unitRatio, "our prefill rate / the engine's - 1"},
	{DecodeEngineDiff, unitRatio, "our decode rate / the engine's - 1"},

	{EventGapP50MS, unitMS, "median of the gaps between token events of different reads, over all gaps of the stream"},
	{EventGapP90MS, unitMS, "90th percentile of these gaps"},
	{EventGapP99MS, unitMS, "99th percentile of these gaps"},
	{EventGapMaxMS, unitMS, "largest of these gaps"},
	{TokensPerEvent, unitTokens, "completion_tokens / token events"},
	{EventsPerRead, unitEvents, "token events / reads that brought one"},
	{MergedReads, unitReads, "reads that brought more than one token event, which then share one stamp"},

	{DraftAcceptance, unitRatio, "accepted / drafted tokens of speculative decoding, as the engine reports for this answer"},
	{DraftWaste, unitRatio, "1 - draft_acceptance"},
	{DraftWindow, unitTokens, "drafted tokens / verification steps"},
	{TokensPerStep, unitTokens, "1 + accepted tokens / verification steps, as the engine reports for this answer"},

	{VerifyStepsPS, unitSteps, "verification steps / (last token - first token)"},
	{AcceptedGoodputTPS, unitTPS, "accepted draft tokens / (last token - first token)"},

	{AddedP50US, unitUS, "median time from the stamp of an event's read to the end of its write to the client"},
	{AddedP99US, unitUS, "99th percentile of that time over all events of the stream"},
	{WriteStallMS, unitMS, "longest such time of any read"},
	{ProxyQueueMS, unitMS, "request read from the client until t0"},
}

// Metrics is the table of all metrics in the order in which to print them.
func Metrics() []Definition { return slices.Clone(definitions[:]) }
