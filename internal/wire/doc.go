// Package wire reads what crossed the wire: it takes the bytes of a response read by read, finds the frames (SSE,
// NDJSON, a JSON array, plain JSON), and lets the dialect of the request path read them into a Transcript.
//
// Invariants:
//
//   - It never fails: garbage is counted, kept by offset and skipped; what was understood before and after it stands.
//   - It is incremental: the same bytes in any split give the same Transcript, but for the read indexes of the events.
//   - It knows no clock. An event names the read that completed its dispatching line; measure turns that into a time.
//   - Frames and the gaps between them cover every byte of the input.
package wire
