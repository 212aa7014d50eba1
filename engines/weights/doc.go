// Package weights tells which model a local file holds, so that a result can be tied to its weights and not to a name.
//
// It reads the metadata of a GGUF file, of all its shards when it is split, and the sha256 of its bytes. Of one file that
// is the digest under which Ollama keeps it and which model hubs state, so that a file and an engine's own word compare.
//
// Invariants:
//
//   - Files are opened for reading only and are closed when a call returns.
//   - A file that is broken gives an error, never a panic and never half of its metadata.
//   - What a file does not state is nil or empty; the type of its tensors is not guessed from its name here.
package weights
