// Package sim is a scripted inference engine: a real HTTP/1.1 server, written by hand on net.Conn, whose every write
// is planned before the first byte leaves and stamped when it does. It stands in for an engine in tests, in the demo
// and wherever the truth about a stream must be known.
//
// It does three things:
//
//   - It answers /v1/chat/completions, /v1/completions, /v1/models and /health like an engine, with text, times and
//     token counts that follow from the request and Options.
//   - It plays a given answer: a capture with its original chunk sizes and times, a body, a list of frames.
//   - It misbehaves on request: errors inside a stream, truncation, resets, stalls, odd heads, lies about keep-alive.
//
// The path of an answer: conn reads the request; the Handler or the engine makes a Script of it (what to send, when);
// compile frames the Script and applies the Fault, giving a plan (the exact writes); play performs the plan on absolute
// instants and enters each write in the journal. Truth is a copy of the journal.
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
// the blank before it, or a piece of at most four bytes where the output is JSON. The reported usage is exact by
// these rules.
//
// Invariants:
//
//   - Equal requests under equal Options get equal bytes, unless Options.Varied is set.
//   - Instants are absolute: a late write does not delay the next one.
//   - A write is in the journal before its first byte leaves; its stamp is taken right before the write call.
//   - After Close no goroutine of the server is left.
//   - The package shares no HTTP code with the proxy it tests.
package sim
