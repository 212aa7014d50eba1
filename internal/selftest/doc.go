// Package selftest measures the measuring: it drives a scripted engine directly and through the proxy, under several
// loads, and derives what the proxy adds, how far its stamps are off, and below which difference its numbers are noise.
//
// Run is the whole of it: a series of plays (play.go), each a number of streams in closed loop, direct and proxied in
// turns; the engine's journal and the proxy's records are held against what the driver saw (truth.go, samples.go), and
// report.go makes cells and noise floors of the samples. rate.go looks for the highest event rate without a stall.
//
// Invariants:
//
//   - The driver is the client that replay uses, so its stamps are the kernel's where there are any. What is compared is
//     the way of the bytes alone: the time the engine took is taken out of every sample.
//   - A difference is paired: each round plays direct and proxied next to each other, and the interval is of the
//     differences of the rounds.
//   - A statistic below its sample floor is null, with the reason. Nothing is assumed where nothing was measured.
//   - It starts no process and touches no file: the caller hands in addresses and the ways to load the cores, to wait
//     for the proxy and to read its records.
package selftest
