// Package stat turns samples into the few statistics a report may print, and says why the others are missing.
//
// It knows nothing of exchanges or metrics: it takes numbers and gives numbers.
//
// Invariants:
//
//   - A percentile is null below its sample floor; the median is printed for any sample, with n, minimum and maximum.
//   - An interval states the confidence it really reaches, which is at least the one asked for; where the sample is too
//     small for it there is no interval, never a narrower one.
//   - What is drawn at random is drawn from a fixed seed: the same sample gives the same result.
//   - Nothing assumes a distribution. No statistic depends on the order of the sample.
//   - Values that are not finite never enter a statistic; leaving them out is a warning.
package stat
