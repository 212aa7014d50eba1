// Package proxy is the measured path: a reverse proxy in front of one engine, and the client that it and the replay
// drivers share. It moves bytes, stamps them and seals the record of each exchange; it never looks into a body. A Rewrite,
// which only the user's demand brings in (rewrite.go), does so from outside.
//
// A byte's way: Server.handle takes the request, flight.begin sends it and reads the response head, flight.stream
// (stream.go, the hot path) passes the body on read by read, flight.seal closes the record and hands it to the Sink.
//
// Invariants:
//
//   - A request reaches the engine at most once. Nothing is retried; a connection that may be stale is found out
//     before it is used, and what goes wrong after is an error the client and the record see.
//   - Between a read from the engine and the write to the client there is no lock, channel, parser, compression or disk.
//   - The response body reaches the client byte for byte. A body that ends early ends early for the client too. What a
//     Rewrite changes of this is in the interventions; the record holds the client's request and the engine's answer.
//   - Tracing costs it the ids of two spans and a header, which a Tracer decides before t0. Without one no header of a
//     trace is touched. Spans are made of the sealed exchange, by others.
//   - Every header that is added, dropped or changed is an Intervention of the record.
//   - When the client is gone the engine's connection is closed at once.
//   - Memory is bounded: by a cap on each recorded body, on the reads of an exchange, and by one budget over all that
//     runs. Past a bound the stream goes on and the record says what it lost.
//   - Recording never touches the stream: a Sink that refuses is counted.
//
// Requests that never become an exchange with the engine are counted, not recorded: a missing key (401), malformed
// HTTP (400, 408, 431), a body over the limit (413) and a refusal under memory pressure (503).
package proxy
