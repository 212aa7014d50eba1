// Package web is the admin listener: health, the read API through which other commands see a store that a running proxy
// owns, and the pages that show a browser what runs now and what was recorded. It is plain net/http and shares nothing with
// the measured path but the finished records and what running exchanges have published.
//
// A Server answers; a Live (live.go) follows what runs; the rows of a run are listed from an index in memory (index.go),
// which is made when a run is first looked at; page_*.go, search.go, sparks.go and templates/ are the pages; api.go has the
// lists of the read API, and client.go is its other end.
//
// Invariants:
//
//   - It never writes to the store and never touches a running exchange. There is no request that changes anything.
//   - What it shows went through redaction before it was stored, or goes through it in proxy.Session.Live.
//   - It answers only requests whose Host is an address of its own listener, so that a web page that resolves its name to
//     loopback cannot read recordings; none that a page of another site makes; and with a key only those that send it.
//   - Nothing recorded becomes markup: templates escape it, and visible (text.go) names each character that would not show or
//     would steer the rest. The only script and style are its own files (policy).
//   - What it holds in memory for readers is bounded: rows are streamed, come by pages or are kept short, few exchanges are
//     read whole at a time, texts are cut with a way to the whole, and what costs much is done for who asks for it.
//   - Where something is measured, what goes through a whole run takes one core at most.
package web
