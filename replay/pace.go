package replay

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Arrivals of an open loop with a rate.
const (
	ArrivalsConstant = "constant" // equally far apart
	ArrivalsPoisson  = "poisson"  // independent of each other, as many users are; drawn from the seed
)

// latest is the last instant that is planned. A rate or a speed near 0 would bring later ones, beyond what a Duration holds:
// they would come out in the past and be sent at once.
const latest = 10 * 366 * 24 * time.Hour

// instant is a number of nanoseconds as an instant.
func instant(ns float64) time.Duration { return time.Duration(min(ns, float64(latest))) }

// constantInstants are n instants at a rate a second, the first at 0.
func constantInstants(n int, rate float64) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = instant(float64(i) / rate * float64(time.Second))
	}
	return out
}

// poissonInstants are n instants of a Poisson process with a rate a second. The gap before the first is drawn too.
func poissonInstants(n int, rate float64, seed uint64) []time.Duration {
	r := rand.New(rand.NewPCG(seed, arrivalStream))
	out, at := make([]time.Duration, n), 0.0
	for i := range out {
		at += r.ExpFloat64() / rate
		out[i] = instant(at * float64(time.Second))
	}
	return out
}

// Streams of random numbers that one seed gives.
const (
	arrivalStream = 1
	orderStream   = 2
)

// recordedInstants are the instants of the items, all of which have one, speed times as fast: 0 is all at once. No gap
// between two neighbors in time is longer than maxGap, as sent; 0 is no bound. period is how long one round of the
// workload lasts when it is repeated: to its last item and a mean gap on.
func recordedInstants(items []Item, speed float64, maxGap time.Duration) (at []time.Duration, period time.Duration) {
	at = make([]time.Duration, len(items))
	if speed == 0 || len(items) == 0 {
		return at, 0
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(items[a].At, items[b].At) })
	now, before := time.Duration(0), items[order[0]].At
	for _, i := range order {
		gap := instant(float64(items[i].At-before) / speed)
		if maxGap > 0 {
			gap = min(gap, maxGap)
		}
		now, before = min(now+gap, latest), items[i].At
		at[i] = now
	}
	if n := len(items); n > 1 {
		return at, now + now/time.Duration(n-1)
	}
	return at, 0
}
