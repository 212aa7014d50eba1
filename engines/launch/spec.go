package launch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

// ErrUnsupported is wrapped by the errors of Plan that say what an engine, or a backend of it, cannot do. The text is the
// reason for which a cell of a matrix is skipped.
var ErrUnsupported = errors.New("not supported")

// ErrMissing is wrapped by the error of a start whose program, directory or file is not there. It is an exchange.ErrUsage.
var ErrMissing = fmt.Errorf("%w: not there", exchange.ErrUsage)

// Spec says what is started and how it is watched. Plan makes one; it is not changed by Start.
type Spec struct {
	Engine  engines.Profile
	Backend engines.Backend // the zero value: the engine chooses
	Program string
	File    string   // that the program runs, "" for none; of its identity
	Scripts []string // further files of its identity: what a user's own command names
	Args    []string // ${host} and ${port} in them are filled in at the start
	Env     []string // NAME=VALUE, set over Environ; filled in as Args are
	ArgEnv  []string // names of Env that stand in the place of arguments
	Environ []string // environment to inherit; keep it nil for none. Variables of this program (BENCHPROXY_...) are left out
	Dir     string   // "" = ours
	Files   []string // that have to be there
	Model   string   // file or name
	Host    string   // address to listen on
	Port    int      // to listen on; AnyPort takes a free one
	Busy    string   // engines.BusyNext or engines.BusyFail
	Devices []string // ids of the devices it may see; nil: all
	Asked   string   // device that was asked for: cuda, vulkan, cpu ...; "" = none

	// Group names the devices it needs for itself: a second engine of the same group is refused while this one lives, in
	// any process that uses the same StateDir. "" needs none.
	Group    string
	StateDir string // where running engines are noted, "" notes nothing
	LogFile  string // "" keeps the output in memory only
	LogMax   int64  // bytes of LogFile; 0 is DefaultLogMax

	Headers []exchange.Header // of ready checks and of load and unload calls
	Times   Times             // zero fields are the defaults
	Warn    func(text string) `json:"-"` // told of leftovers and the like; nil: nobody is
}

// AnyPort as a port takes a free one.
const AnyPort = -1

// DefaultLogMax is how much of an engine's output is kept in its file.
const DefaultLogMax = 64 << 20

// Times bound what is waited for.
type Times struct {
	Ready    time.Duration // from the start to the first successful ready check
	Probe    time.Duration // one ready check
	Every    time.Duration // between ready checks
	Grace    time.Duration // from the signal to the kill
	Kill     time.Duration // from the kill to giving up
	PortFree time.Duration // until the port is free after the end
	Load     time.Duration // loading or unloading a model by request
}

// Size classes of models, which say how long a start may take.
const (
	Small  = "small"
	Medium = "medium"
	Large  = "large"
)

// readyTimes are the times of the classes.
var readyTimes = map[string]time.Duration{Small: 10 * time.Minute, Medium: 15 * time.Minute, Large: 20 * time.Minute}

// ReadyTime is how long the start of a model of a size class may take. An unknown class is medium.
func ReadyTime(class string) time.Duration {
	if d, ok := readyTimes[class]; ok {
		return d
	}
	return readyTimes[Medium]
}

// withDefaults fills in what is zero.
func (t Times) withDefaults() Times {
	for _, f := range []struct {
		at *time.Duration
		is time.Duration
	}{
		{&t.Ready, ReadyTime(Medium)}, {&t.Probe, 3 * time.Second}, {&t.Every, time.Second}, {&t.Grace, 20 * time.Second},
		{&t.Kill, 10 * time.Second}, {&t.PortFree, 30 * time.Second}, {&t.Load, ReadyTime(Medium)},
	} {
		if *f.at <= 0 {
			*f.at = f.is
		}
	}
	return t
}

// Command is the command line that it comes to on a port, with the variables set for it before it, as a shell would take
// it, secrets masked. Port 0 is one that is still to be found.
func (s *Spec) Command(port int) string {
	argv := append([]string{s.Program}, fillAll(s.Args, s.Host, port)...)
	return shellLine(redact.Args(slices.Concat(fillAll(s.Env, s.Host, port), argv)))
}

func (s *Spec) warn(text string) {
	if s.Warn != nil {
		s.Warn(text)
	}
}
