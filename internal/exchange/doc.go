// Package exchange is the vocabulary that all other packages speak: one HTTP exchange with an engine as it was seen,
// the clock readings taken while it ran, and the words for what is later derived from it.
//
// It imports the standard library only and does no I/O.
//
// Invariants:
//
//   - An Exchange is sealed once, by the proxy, and never changed after. What is derived from it (an Outcome, Figures,
//     a Summary) is a pure function of it and can be computed again by newer code.
//   - A sealed Exchange holds no credential: they are masked before it leaves the proxy.
//   - Absent is not zero. A Mark that never happened, a Figure that cannot be had and a body that was not kept all say so.
//   - All stamps of one Timeline are nanoseconds since one origin, on one monotonic clock.
package exchange
