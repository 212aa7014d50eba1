// Package strict reads JSON that people write: it refuses what the program would pass over.
//
// Plain takes comments and trailing commas out of a text, Decode reads it.
//
// Invariants:
//
//   - A key that the type does not have is an error which names the place and the keys that there are. Keys compare with
//     case.
//   - Exactly one JSON value is read.
//   - A json.RawMessage, and a type that reads itself, is taken as it stands: whoever reads it checks it.
package strict
