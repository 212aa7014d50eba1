package wire

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
	"PROHIBITED_CONTENT": normFiltered, "BLOCKLIST": normFiltered, "SPII": normFiltered,

	"error": normError, "abort": normError, "failed": normError, "MALFORMED_FUNCTION_CALL": normError,
}

// normalizeFinish maps a raw finish reason. An answer that stops with tool calls in it stopped for them, whatever the
// engine calls it.
func normalizeFinish(raw string, hasTools bool) string {
	n := finishWords[raw]
	if n == normStop && hasTools {
		return normTools
	}
	return n
}
