// Package e2e tests what no single package can: a scripted engine, the proxy, the recorder, the reader of the wire and
// the metrics, put together as the record command does it, over real sockets on loopback. It holds tests only.
//
// Invariants of its tests:
//
//   - What is compared with is the truth: the engine's own account of every write, and the bytes that it was given.
//   - Bytes, order, counts, texts, outcomes and reasons are compared exactly. A time has a bound that its test states; it
//     is never earlier than the engine's write.
//   - Where a figure needs a stream that the machine did not hold up, the test plays it again, a stated number of times;
//     what does not depend on the machine is held on every play.
//   - Every store is checked as a whole after its test, and no goroutine or exchange is left running.
package e2e
