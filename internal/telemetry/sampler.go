package telemetry

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Sampler decides which traces are exported, by nothing but their ids: the same trace gets the same answer from everyone
// that samples by the same share. Whatever it says, an exchange is measured and recorded.
type Sampler struct {
	parent bool   // a trace that came from elsewhere keeps the decision made there
	bound  uint64 // ids whose last 63 bits are below it are taken
}

// allTraces is the bound that takes every id.
const allTraces = 1 << 63

// sampler reads OTEL_TRACES_SAMPLER and its argument.
func (e *environment) sampler() Sampler {
	name := strings.ToLower(e.get("OTEL_TRACES_SAMPLER"))
	kind, parent := strings.CutPrefix(name, "parentbased_")
	switch kind {
	case "":
		return Sampler{parent: true, bound: allTraces}
	case "always_on":
		return Sampler{parent: parent, bound: allTraces}
	case "always_off":
		return Sampler{parent: parent}
	case "traceidratio":
		return Sampler{parent: parent, bound: e.share()}
	}
	e.note("OTEL_TRACES_SAMPLER %q is not known here; it is parentbased_always_on", name)
	return Sampler{parent: true, bound: allTraces}
}

// share is the argument of a sampler by share, as a bound on ids.
func (e *environment) share() uint64 {
	v := e.get("OTEL_TRACES_SAMPLER_ARG")
	if v == "" {
		return allTraces
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1 {
		e.note("OTEL_TRACES_SAMPLER_ARG %q is not from 0 to 1; it is 1", v)
		return allTraces
	}
	return uint64(f * allTraces)
}

// takes reports whether a trace is exported. parent is its span before this one, zero for none.
func (s Sampler) takes(trace exchange.TraceID, parent exchange.SpanContext) bool {
	if s.parent && parent.Valid() {
		return parent.Sampled
	}
	return binary.BigEndian.Uint64(trace[8:])>>1 < s.bound
}

// newTraceID is a random id. It names and does not protect, so a fast source serves.
func newTraceID() (id exchange.TraceID) {
	for id == (exchange.TraceID{}) {
		binary.BigEndian.PutUint64(id[:8], rand.Uint64())
		binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id exchange.SpanID) {
	for id == (exchange.SpanID{}) {
		binary.BigEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
