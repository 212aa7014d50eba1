// Package wire reads what crossed the wire: it takes the bytes of a response read by read, finds the frames (SSE,
// NDJSON, a JSON array, plain JSON), and lets the dialect of the request path read them into a Transcript.
//
// The path of a byte: Parser.Feed (parser.go) hands it to the Framer (frame.go), whose splitter (sse.go, lines.go,
// values.go) finds the end of an event; Parser.takeFrame gives the event's JSON to the dialect of the path (dialects.go:
// each in a file of its own), which adds what it says to the answer (answer.go, tools.go, usage.go, failure.go,
// extras.go), or, where the event is like the one before, adds what is new in it (alike.go); Snapshot and Finish make a
// Transcript of the answer (transcript.go, finish.go, timings.go). A body under a content coding is decoded in between
// (coding.go).
//
// Tokens (tokens.go, tokens_dialects.go) reads a body once more for its token ids and log-probabilities, which few want.
//
// Beside it, and on demand only, AddUsage (addusage.go) asks for the usage of a stream, and UsageFilter (usagefilter.go,
// usagejudge.go) takes the event that reports it out of the bytes again. They change no byte that they do not name.
//
// Invariants:
//
//   - It never fails: garbage is counted, kept by offset and skipped; what was understood before and after it stands.
//   - It is incremental: the same bytes in any split give the same Transcript, but for the read indexes of the events.
//   - It knows no clock. An event names the read that completed its dispatching line; measure turns that into a time.
//   - Frames and the gaps between them cover every byte of the input.
//   - Time and memory grow with the input and no faster, whatever the input is; what a coding unpacks is bounded.
package wire
