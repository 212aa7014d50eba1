// Package redact holds the one list of secrets: what the store, logs, telemetry, the admin pages and exports must never
// show, and how it is masked.
//
// Invariants:
//
//   - Masking is idempotent: masked text masks to itself.
//   - Names stay, values go: the name of a header, cookie, query parameter or flag and the scheme of an authorization
//     are kept, so that a record still says which kind of credential was used.
//   - Input is never changed in place. When there is nothing to mask, the input itself is returned.
//   - Names are compared without case. A doubtful name counts as secret: a lost value is cheaper than a leaked one.
//   - Bodies are not touched: they are the record.
package redact
