package gates

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// totalVariation is half the sum of the differences between the shares of outcomes and their probabilities, from 0 to 1.
func totalVariation(counts []int, probs []float64) float64 {
	n := 0
	for _, c := range counts {
		n += c
	}
	sum := 0.0
	for i, c := range counts {
		sum += math.Abs(float64(c)/float64(n) - probs[i])
	}
	return sum / 2
}

// The simulation of noise. Its random numbers are the same each time, so a verdict is.
const (
	noiseSamples = 20_000
	noiseSeed    = 0x6e6f697365 // the letters of "noise"
	minFalseFail = 20.0 / noiseSamples
)

// noiseBar is the (1 - falseFail) quantile of the total variation between probabilities and samples of n draws from them.
// Probabilities that do not sum up to 1 are scaled to do so.
func noiseBar(probs []float64, n int, falseFail float64) float64 {
	cumulative := make([]float64, len(probs))
	sum := 0.0
	for i, p := range probs {
		sum += p
		cumulative[i] = sum
	}
	rng := rand.New(rand.NewPCG(noiseSeed, noiseSeed))
	scaled := make([]float64, len(probs))
	for i := range probs {
		scaled[i] = probs[i] / sum
	}
	distances := make([]float64, noiseSamples)
	counts := make([]int, len(probs))
	for i := range distances {
		clear(counts)
		for range n {
			at := rng.Float64() * sum
			k := 0
			for k < len(cumulative)-1 && cumulative[k] <= at {
				k++
			}
			counts[k]++
		}
		distances[i] = totalVariation(counts, scaled)
	}
	slices.Sort(distances)
	above := int(falseFail * noiseSamples) // so many of the samples may lie beyond the bar
	return distances[max(0, noiseSamples-1-above)]
}

// rawFields are the fields of a request by the names that it uses.
func rawFields(x *exchange.Exchange) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(x.Request.Body.Bytes(), &fields) // a request that is no object has none
	return fields
}
