// Package sim is a scripted inference engine: a real HTTP/1.1 server, written by hand on net.Conn, whose every write
// is planned before the first byte leaves and stamped when it does. It stands in for an engine in tests, in the demo
// and wherever the truth about a stream must be known.
//
// It does three things:
//
//   - It answers like an engine, in every dialect of the table below, with text, times and token counts that follow
//     from the request and Options.
//   - It plays a given answer: a capture with its original chunk sizes and times, a body, a list of frames. A Bare
//     server does nothing else, and lets a Script relay what another server answers.
//   - It misbehaves on request: errors inside a stream, truncation, resets, stalls, odd heads, lies about keep-alive.
//
// Beside it stands Toy, an engine with a language model of a few words whose log-probabilities are scripted, for tests of
// comparisons.
//
// The path of an answer: conn reads the request; the Handler or the engine makes a Script of it (what to send, when);
// compile frames the Script and applies the Fault, giving a plan (the exact writes); play performs the plan on absolute
// instants and enters each write in the journal. Truth is a copy of the journal.
//
// # Dialects
//
//	/v1/chat/completions, /v1/completions, /v1/embeddings, /v1/models   OpenAI
//	/v1/responses                                                       OpenAI Responses
//	/v1/messages; /v1/models with an anthropic-version header           Anthropic
//	/v1beta/models, .../NAME:generateContent, :streamGenerateContent    Gemini, as SSE with alt=sse, else one array
//	/api/chat, /api/generate, /api/embed, /api/embeddings, /api/tags    Ollama
//	/completion, /completions                                           llama.cpp
//	/generate                                                           SGLang
//
// A dialect reads a request into an ask and writes an answerPlan as a stream or as one body; errors have its own shape,
// before the first byte and inside a stream. Thinking comes with Options.Reasoning, or where the request asks for it in
// the dialect's own way. Dialects that send a call's arguments as an object tell it in one event. Options.Usage says
// where chat and completions report usage; the others always report it, Responses, Messages, Gemini and Ollama not with
// UsageNone. What engines answer to probes of their identity (versions, metrics, properties) is left to a Handler.
//
// # Options in a request
//
// Config.Options are the defaults. The request header X-Sim changes them for one request and leaves the body, and so
// the recorded key, as it was:
//
//	X-Sim: ttft=200ms; decode=50; fault=reset@3
//
// The keys are listed at Options.Set. An unknown key or a bad value is a 400.
//
// # Counting tokens
//
// A prompt has as many tokens as its texts have blank-separated words, at least one. A generated token is a word with
// the blank before it, the name of a called function, or a piece of at most four bytes where the output is JSON. The
// reported usage is exact by these rules.
//
// Invariants:
//
//   - Equal requests under equal Options get equal bytes, unless Options.Varied is set.
//   - Instants are absolute: a late write does not delay the next one.
//   - A write is in the journal before its first byte leaves; its stamp is taken right before the write call.
//   - After Close no goroutine of the server is left.
//   - The package shares no HTTP code with the proxy it tests.
package sim
