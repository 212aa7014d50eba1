// Package wiretest gives tests of any package the recorded and written answers of engines: captures taken from a real
// llama-server and a real Ollama with their arrival times, and written transcripts with the values a reader must find
// in them. It is for tests only; no product code may import it.
//
// Invariants:
//
//   - The bytes are those of the files, which stand below testdata and are embedded.
//   - Nothing is skipped in silence: an unknown key, a file without an entry, an entry without a file and an empty set
//     are failures of the test that asks.
package wiretest
