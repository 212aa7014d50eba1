// Package canon gives requests their identity: the canonical form of a JSON text, the key under which equal requests
// meet, and the digest that other tools can compute too.
//
// Invariants:
//
//   - Two texts have one canonical form only when they are the same JSON value with numbers spelled alike: key order,
//     white space and the spelling of string escapes do not matter, everything else does. 1, 1.0 and "1" differ, null
//     is not absent, array order counts, no Unicode normalization takes place.
//   - The canonical form is valid JSON and its own canonical form.
//   - What has no certain meaning has no canonical form: duplicate keys, invalid UTF-8, lone surrogates, nesting
//     beyond MaxDepth. Such a body takes part in the key by its raw bytes, and the key says so.
//   - The key covers the whole request but its headers. Nothing is excluded; the scheme prefix changes if that does.
package canon
