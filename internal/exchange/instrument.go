package exchange

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Host is the machine that measures, as far as it can be told. What cannot be told is null.
type Host struct {
	Name        *string  `json:"name"`
	OS          string   `json:"os"`
	Arch        string   `json:"arch"`
	Kernel      *string  `json:"kernel"` // release
	CPU         *string  `json:"cpu"`    // model
	Cores       int      `json:"cores"`  // logical processors this process may use
	MaxProcs    int      `json:"gomaxprocs"`
	Governor    *string  `json:"governor"`    // of the first processor's frequency
	Clocksource *string  `json:"clocksource"` // of the kernel
	Virtual     *bool    `json:"virtual"`     // a virtual machine
	Load1       *float64 `json:"load1"`       // load average of the last minute, before anything was started
}

// Fingerprint names the machine in the state that matters to its clocks: everything of h but the load. A machine that got
// another kernel or governor is another instrument.
func (h Host) Fingerprint() string {
	h.Load1 = nil
	b, err := json.Marshal(h)
	if err != nil { // strings and numbers always marshal
		return ""
	}
	return fmt.Sprintf("host1:%x", sha256.Sum256(b))[:len("host1:")+16]
}

// The loads under which an instrument is measured.
const (
	LoadIdle = "idle" // nothing else runs
	LoadBusy = "busy" // every core is kept busy by other processes
)

// NoiseFloor is the time below which a difference of two measurements says nothing, at one number of streams.
type NoiseFloor struct {
	Load    string   `json:"load"` // LoadIdle or LoadBusy
	Streams int      `json:"streams"`
	US      *float64 `json:"us"`               // microseconds; null when it cannot be had
	Reason  Reason   `json:"reason,omitempty"` // why it is null
}

// Instrument is what a selftest found about the machine that a run was measured on.
type Instrument struct {
	ID      ID           `json:"id"`      // of the selftest
	Time    time.Time    `json:"time"`    // when it began, UTC
	AgeS    *float64     `json:"age_s"`   // seconds from then to the start of the run; null outside a run
	Harness string       `json:"harness"` // version of benchproxy that made it
	Host    Host         `json:"host"`
	Noise   []NoiseFloor `json:"noise"` // by load and streams
}

// Floors are the noise floors under a load that are known, by ascending number of streams.
func (i *Instrument) Floors(load string) []NoiseFloor {
	var out []NoiseFloor
	for _, n := range i.Noise {
		if n.Load == load && n.US != nil {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b NoiseFloor) int { return a.Streams - b.Streams })
	return out
}

// At is the instrument as a run that starts at that instant carries it.
func (i Instrument) At(start time.Time) *Instrument {
	age := start.Sub(i.Time).Seconds()
	i.AgeS = &age
	return &i
}
