package wire

import "github.com/valyala/fastjson"

// readCompletions reads a chunk or a whole body of the legacy /v1/completions. An echoed prompt cannot be told from
// generated text here; RequestFacts.Echo says that it is there.
func readCompletions(a *answer, v *fastjson.Value, data []byte) {
	a.readOpenAI(v, data, readCompletionsChoice)
}

func readCompletionsChoice(a *answer, c *choice, v *fastjson.Value) {
	var thought []byte
	v.GetObject().Visit(func(key []byte, v *fastjson.Value) {
		switch string(key) {
		case "text":
			a.add(&c.text, KindText, text(v))
		case "reasoning_content", "reasoning":
			if b := text(v); len(b) > 0 {
				thought = b
			}
		case "finish_reason":
			a.setFinish(c, v)
		case "logprobs":
			a.countLogprobs(v.Get("tokens"))  // parallel arrays
			a.countLogprobs(v.Get("content")) // llama.cpp: entries as in chat
		case "token_ids", "tokens":
			a.countTokenIDs(v)
		}
	})
	a.add(&c.reasoning, KindReasoning, thought)
	a.mayRecur(c)
}
