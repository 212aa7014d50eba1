// Package tinymodel writes a language model of a few megabytes with random weights, so that a real inference engine can
// run in tests without a download. The file is GGUF version 3, llama architecture, with a vocabulary and a chat
// template of its own.
//
// The text of such a model is gibberish, but of a useful kind: raw byte tokens and control tokens practically never
// come, so that every stream is valid UTF-8 and as long as its token limit says. Channel 0 of the residual stream is a
// constant that no block writes to, and the output matrix reads it as a bias per token.
//
// Invariants: equal configurations give equal bytes; nothing in the file comes from elsewhere.
package tinymodel
