package launch

import (
	"fmt"
	"time"
)

// State is where an engine is in its life.
type State string

// States, in their order. Exited and Failed are final.
const (
	Starting State = "starting"
	Loading  State = "loading"
	Ready    State = "ready"
	Stopping State = "stopping"
	Exited   State = "exited" // as it was asked to
	Failed   State = "failed"
)

// Final reports whether nothing follows.
func (s State) Final() bool { return s == Exited || s == Failed }

// Status is what is known of an engine at one moment.
type Status struct {
	State  State     `json:"state"`
	Reason string    `json:"reason,omitempty"` // one line: why it is in this state
	Hint   string    `json:"hint,omitempty"`   // what its failure may mean, and what to do
	Since  time.Time `json:"since"`
	// Exit is the exit code; nil while it runs, when a signal ended it, and of an engine that somebody else runs.
	Exit   *int   `json:"exit"`
	Signal string `json:"signal,omitempty"` // that ended it
	// Device is where it runs, as the evidence shows: cuda, rocm, vulkan, metal, cpu ...; nil without evidence.
	Device   *string  `json:"device"`
	Evidence string   `json:"evidence,omitempty"` // the line that showed it
	Notes    []string `json:"notes,omitempty"`    // what its output said that a reader of its numbers should know
}

// String is the state with its reason.
func (s Status) String() string {
	if s.Reason == "" {
		return string(s.State)
	}
	return fmt.Sprintf("%s: %s", s.State, s.Reason)
}
