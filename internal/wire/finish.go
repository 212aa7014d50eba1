package wire

import "strings"

// The normalized finish reasons.
const (
	normStop     = "stop"
	normLength   = "length"
	normTools    = "tool_calls"
	normFiltered = "content_filter"
	normError    = "error"
)

// finishWords maps the finish reasons that engines send to the normalized ones. What is missing here (Ollama's load and
// unload, say) has no normalized form.
var finishWords = map[string]string{
	"stop": normStop, "eos": normStop, "word": normStop, "end_turn": normStop, "stop_sequence": normStop, "pause_turn": normStop,
	"STOP": normStop, "completed": normStop, "eos_token": normStop, "stop_str": normStop,

	"length": normLength, "limit": normLength, "max_tokens": normLength, "MAX_TOKENS": normLength,
	"max_output_tokens": normLength, "model_context_window_exceeded": normLength, "model_length": normLength,

	"tool_calls": normTools, "function_call": normTools, "tool_use": normTools,

	"content_filter": normFiltered, "refusal": normFiltered, "SAFETY": normFiltered, "RECITATION": normFiltered,
	"PROHIBITED_CONTENT": normFiltered, "BLOCKLIST": normFiltered, "SPII": normFiltered, "LANGUAGE": normFiltered,
	"MODEL_ARMOR": normFiltered, "IMAGE_SAFETY": normFiltered, "IMAGE_PROHIBITED_CONTENT": normFiltered, "IMAGE_RECITATION": normFiltered,
	blocked: normFiltered,

	"error": normError, "abort": normError, "failed": normError, "cancelled": normError, "MALFORMED_FUNCTION_CALL": normError,
	"UNEXPECTED_TOOL_CALL": normError, "TOO_MANY_TOOL_CALLS": normError, "MISSING_THOUGHT_SIGNATURE": normError, "MALFORMED_RESPONSE": normError,
}

// The words before the colon of a finish reason that is made of two fields: the status of a Responses answer with the
// reason why it is incomplete, and Gemini's refusal of a prompt with its reason.
const (
	incomplete = "incomplete"
	blocked    = "blocked"
)

// normalizeFinish maps a raw finish reason. An answer that stops with tool calls in it stopped for them, whatever the
// engine calls it.
func normalizeFinish(raw string, hasTools bool) string {
	switch word, reason, _ := strings.Cut(raw, ":"); word {
	case incomplete:
		raw = reason
	case blocked:
		raw = word
	}
	n := finishWords[raw]
	if n == normStop && hasTools {
		return normTools
	}
	return n
}
