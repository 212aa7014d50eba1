// Package web is the admin listener: health, and the read API through which other commands see a store that a running
// proxy owns. It is plain net/http and shares nothing with the measured path but the finished records.
//
// Invariants: it never writes to the store and never touches a running exchange. What it shows went through redaction
// before it was stored. It answers only requests whose Host is an address of its own listener, so that a web page that
// resolves its name to loopback cannot read recordings, and with a key only those that send it. What it holds in memory
// for readers is bounded: rows are streamed, and few exchanges are read whole at a time.
package web
