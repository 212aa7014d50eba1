// Package clock is the one place that reads time.
//
// Everything else in the module asks this package, so a reader can see which clock a number came from, and a lint rule
// can hold that no other package calls time.Now, time.Since or time.Until. Timers and durations are not readings and
// stay in package time.
//
// Invariants: an Origin never goes back: offsets are taken on the monotonic clock, whatever happens to the wall clock.
// Inside a testing/synctest bubble both clocks are the bubble's fake clock, which is how timing logic is tested.
package clock
