package measure

// SetRule is what a tool means by a figure, and why its number is another one than ours for the same bytes.
type SetRule struct {
	Figure  string `json:"figure"`
	Formula string `json:"formula"`
	Differs string `json:"differs"` // "" when it is our definition
}

const (
	endOfStream = "its window ends with the stream, behind usage and the end marker; ours with the last token"
	itsOwnCount = "it counts with its own tokenizer where usage is missing; that is not run here"
)

var tensorSharpRules = [...]SetRule{
	{TTFTMS, "first text, reasoning or tool call - send", ""},
	{PrefillTPS, "prompt_tokens / TTFT", "it prints the rate of cached prompts and buffered streams too, where ours is absent"},
	{DecodeTPS, "the engine's own rate where it is given, else (n - 1) / (last - first)", "the engine's clock replaces the client's; ours keeps them apart"},
	{SetDecodeStream, "(n - 1) / (last - first)", ""},
	{CompletionTokens, "usage, else pieces of text and reasoning", "0 counts as missing, and a piece that holds both counts twice"},
	{TotalWallMS, "end of the stream - send", ""},
}

var loomRules = [...]SetRule{
	{TTFTMS, "first text, reasoning or tool call - send", ""},
	{PrefillTPS, "prompt_tokens / TTFT; of llama.cpp its own rate", "llama.cpp's clock leaves out HTTP and tokenization"},
	{DecodeTPS, "(n - 1) / (total - TTFT); of llama.cpp its own rate", endOfStream},
	{CompletionTokens, "usage", ""},
	{TotalWallMS, "end of the stream - send", ""},
}

var benchRigRules = [...]SetRule{
	{TTFTMS, "first text or reasoning - send", "tool calls do not start it"},
	{PrefillTPS, "the engine's own rate", "the client's clock has no part in it"},
	{DecodeTPS, "n / (end - first), over 1 ms at least; of Ollama its own rate", "the first token is counted though its time is not in the window, which ends with the stream"},
	{CompletionTokens, "usage, else parsed events", ""},
	{TotalWallMS, "end of the stream - send", ""},
}

var toolEvalRules = [...]SetRule{
	{TTFTMS, "response head - send", "the head is no token: engines send it before, during or after the prefill"},
	{DecodeTPS, "(n - 1) / (end - first text or tool call)", "reasoning does not start the window, and without token ids it ends with the stream"},
	{SetEffectiveTPS, "(n - 1) / (end - first text or tool call)", endOfStream},
	{CompletionTokens, "usage", ""},
	{TotalWallMS, "end of the stream - send", ""},
}

var vllmRules = [...]SetRule{
	{TTFTMS, "first event with an entry in choices - send", "an event that names only the role counts, which may be sent before the prompt is read"},
	{SetITLMS, "gaps between events with an entry in choices (their mean here)", "an event is taken for a token: with several tokens an event the gaps are as many times too long, and the event that finishes counts as one"},
	{TPOTMS, "(latency - TTFT) / (n - 1)", "its TTFT may be that of the role, and its latency ends behind the usage"},
	{CompletionTokens, "usage of an event without choices", itsOwnCount},
	{TotalWallMS, "last event before the end marker - send", "ours ends with the body"},
}

var aiperfRules = [...]SetRule{
	{TTFTMS, "first content of any kind - send", ""},
	{AnswerTTFTMS, "first content of the answer - send (TTFO)", ""},
	{SetITLMS, "(latency - TTFT) / (n - 1)", "the same as our tpot_ms under another name"},
	{DecodeTPS, "1 / ITL, the rate of one user", ""},
	{CompletionTokens, "usage when told so", itsOwnCount},
	{TotalWallMS, "last content - send", "ours ends with the body"},
}

var guideLLMRules = [...]SetRule{
	{TTFTMS, "first content of any kind - send", ""},
	{AnswerTTFTMS, "first content of the answer - send (TTFOT)", ""},
	{SetITLMS, "(last - first) / (n - 1)", "the same as our tpot_ms under another name"},
	{TPOTMS, "(last - send) / n", "the wait for the first token is in it"},
	{CompletionTokens, "usage", itsOwnCount},
	{TotalWallMS, "end of the stream - send", ""},
}

var inferencePerfRules = [...]SetRule{
	{TTFTMS, "first text of the answer - send", "reasoning and tool calls do not start it"},
	{SetITLMS, "gaps between the tokens of its tokenizer (their mean here)", "tokens of one event have one stamp, so its median gap is near 0"},
	{TPOTMS, "(latency - TTFT) / (n - 1)", endOfStream},
	{SetNTPOTMS, "latency / n", "the wait for the first token is in it"},
	{CompletionTokens, "its own tokenizer, or usage when told so", itsOwnCount},
	{TotalWallMS, "end of the stream - send", ""},
}

var otelRules = [...]SetRule{
	{TTFTMS, "first chunk - send (time to first chunk)", "any chunk counts, whatever it holds"},
	{SetITLMS, "gaps between chunks (time per output chunk, their mean here)", "a chunk is taken for a token"},
	{TPOTMS, "(duration - first chunk) / (n - 1)", endOfStream},
	{CompletionTokens, "usage", ""},
	{TotalWallMS, "end of the stream - send", ""},
}

// OwnRules are our definitions of the figures that sets of other tools have, for the table that shows all beside each other.
func OwnRules() []SetRule {
	var out []SetRule
	for _, name := range []string{TTFTMS, AnswerTTFTMS, PrefillTPS, DecodeTPS, TPOTMS, CompletionTokens, TotalWallMS} {
		for _, d := range definitions {
			if d.Name == name {
				out = append(out, SetRule{Figure: d.Name, Formula: d.Text})
			}
		}
	}
	return out
}
