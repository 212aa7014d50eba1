package bench

import (
	"context"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay"
	"github.com/benchproxy/benchproxy/replay/matrix"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// Place is where servers come from and where their exchanges go.
type Place interface {
	// Open makes the server of a group answer requests and begins the run of its exchanges. A *NotHere error says that its
	// cells are skipped; every other one that they fail, and the runner goes on with the next group. What was begun is ended
	// before an error is returned.
	Open(ctx context.Context, g *matrix.Group) (Sitting, error)
}

// Sitting is a server that is up, with the run that keeps its exchanges.
type Sitting interface {
	// Facts are what is known of it. They do not change.
	Facts() *Facts
	// Target is where requests are sent.
	Target() replay.Target
	// Tally is given every exchange that is stored.
	Tally() *replay.Tally
	// Gone is why the server has ended, nil while it lives. With a suspicion, since answers broke off, it gives the end of a
	// process a moment to be noticed.
	Gone(suspicion bool) error
	// Memory is what the server took since the last call, nil where that is not sampled.
	Memory() *matrix.Memory
	// Close waits for what is still to be stored, asks what became of the plan, ends the run with that, and the server.
	Close(came func() exchange.Replay) error
}

// NotHere says that a group cannot run in this place.
type NotHere struct{ Skip *matrix.Skip }

func (n *NotHere) Error() string { return n.Skip.Reason }

// Manner is how requests are spelled and spoken.
type Manner struct {
	Spelling replay.Spelling
	Changes  replay.Changes
}

// Facts are what is known of the server of a group and of how it is asked.
type Facts struct {
	Run      exchange.ID
	Model    string // to ask for
	Spelling replay.Spelling
	Changes  replay.Changes
	ToolUse  *Manner // of cells of the tool_use suite; nil: they are asked as the others
	Session  string  // header that carries one value a conversation; "" = none
	Salt     string  // of these values and of nonces
	Nonce    string  // at the beginning of every prompt: of a server that may have answered the same before; "" = none

	Materials  scenario.Materials // what the scenarios are made of, the window among them
	Identity   exchange.Identity
	Launch     string // see matrix.Record, as the next two; "" of a server that runs already
	Build      string
	ModelFiles string
	Weights    string // digest or name, "" when unknown
	Slots      *int   // requests at once, nil when unknown
	Window     *int   // tokens of one request, nil when unknown

	RequestedDevice string
	ObservedDevice  string // unknown when nothing showed it
	CPUFallback     bool

	Unlisted    bool     // the server lists models, and not the one that is asked for
	Busy        bool     // something else used the machine when the sitting began
	Crowded     bool     // it is up beside others, and their weights are more than the memory
	LoadMS      *float64 // from the launch until it was ready; nil for one that ran already
	Command     []string // secrets masked
	Log         string   // file below the results
	Environment map[string]string
}
