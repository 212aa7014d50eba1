package engines

import (
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Devices by what they are to a comparison of speeds.
var (
	gpuAsked = []string{"gpu", "cuda", "metal", "rocm", "vulkan"}
	cpuSeen  = []string{"cpu", "generic-cpu"}
)

// CPUFallback reports whether a GPU was asked for and the engine says that it runs on the CPU. Without a word of the
// engine's it is false: nothing is known.
func CPUFallback(requested, observed *string) bool {
	return requested != nil && observed != nil &&
		slices.Contains(gpuAsked, strings.ToLower(*requested)) && slices.Contains(cpuSeen, strings.ToLower(*observed))
}

// DeviceOf sums up the observed devices of several readings: the first that is known, and whether any fell back.
func DeviceOf(ds []exchange.Deployment) (observed *string, fallback bool) {
	for _, d := range ds {
		if observed == nil {
			observed = d.ObservedDevice
		}
		fallback = fallback || d.CPUFallback
	}
	return observed, fallback
}

// place notes what was asked for beside what was seen.
func place(d *exchange.Deployment, requested string) {
	if requested != "" {
		d.RequestedDevice = &requested
	}
	d.CPUFallback = CPUFallback(d.RequestedDevice, d.ObservedDevice)
}

// deviceName is a device as an engine states it, in lower case; "unknown" and "auto" state none.
func deviceName(v any) *string {
	s := mapText(v, strings.ToLower)
	if s == nil || slices.Contains([]string{"unknown", "auto", "none", "null"}, *s) {
		return nil
	}
	return s
}
