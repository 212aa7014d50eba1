// Package rig starts benchproxy's programs as processes of their own, talks HTTP to them over plain connections with a
// stamp on every read, and reads from the system what they cost.
//
// Invariants:
//
//   - A started process ends at the latest with Close; on Linux also when the program that started it dies.
//   - The client does nothing between a read and its stamp, and asks the system for memory only while an answer grows.
//   - A body counts as whole only when its framing said so.
package rig
