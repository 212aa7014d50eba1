package engines

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Launch is how an engine is started: its command line as a list of arguments, and what its output says. ${name} in an
// argument is replaced by a value of the launch.
type Launch struct {
	Program    string            `json:"program"`
	ProgramEnv []string          `json:"program_env,omitempty"` // variables that name another program, the first set one counts
	File       string            `json:"file,omitempty"`        // what the program runs, as ${file}; it is run in the directory of that file
	FileEnv    []string          `json:"file_env,omitempty"`    // variables that name another file
	ModelFile  bool              `json:"model_file,omitempty"`  // the model is a file that has to be there; else it may be a name
	Args       []LaunchArg       `json:"args"`                  // in this order
	Env        map[string]string `json:"env,omitempty"`         // set for it
	Backends   []Backend         `json:"backends,omitempty"`    // that it can be started on, the usual one first; none: it chooses itself
	Port       int               `json:"port"`                  // usual one
	Busy       string            `json:"busy"`                  // what to do about a busy port: next or fail
	Serves     string            `json:"serves,omitempty"`      // ServesOne, or ServesRequested
	Stop       string            `json:"stop,omitempty"`        // StopTerminate, or StopInterrupt
	// WindowOfAll says that the window it is started with is shared by all slots, so that each of them gets its part.
	WindowOfAll bool            `json:"window_of_all,omitempty"`
	Devices     *DeviceEvidence `json:"devices,omitempty"` // nil: its output is not known to tell
	Version     []string        `json:"version,omitempty"` // arguments with which it prints its version and ends
	Hints       []Hint          `json:"hints,omitempty"`
	// Parts are patterns of the files that belong to its build besides the program and what that runs: relative to the
	// directory of the program, or to that of the file with ${file_dir}/ before them.
	Parts []string `json:"parts,omitempty"`
}

// What an engine does about a busy port.
const (
	BusyNext = "next" // it is started on the next free one
	BusyFail = "fail" // it is not started
)

// Which models an engine serves.
const (
	ServesOne       = ""          // the one it was started with
	ServesRequested = "requested" // those that requests name, loaded by the first one
)

// How an engine is asked to end.
const (
	StopTerminate = ""
	StopInterrupt = "interrupt"
)

// LaunchArg is a group of arguments and variables that belong together.
type LaunchArg struct {
	Axis string            `json:"axis,omitempty"` // it is added when this is asked for; "" = always
	Is   string            `json:"is,omitempty"`   // it is added when exactly this is asked for
	For  []string          `json:"for,omitempty"`  // it is added only with a method of drafting like one of these: names, or patterns with *
	Args []string          `json:"args,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
}

// Axes that a LaunchArg can belong to. A profile without arguments for one says that the engine cannot do it.
const (
	AxisExtra         = "extra"   // where further arguments of the backend and the user go
	AxisModel         = "model"   // the model file, or a name
	AxisBackend       = "backend" // values of the backend
	AxisContext       = "context" // tokens of one request's window
	AxisSlots         = "slots"   // requests at once
	AxisMaxTokens     = "max_tokens"
	AxisThreads       = "threads"
	AxisMMProj        = "mmproj"     // projector of images and sound
	AxisSplitMode     = "split_mode" // how a model is spread over ${tp} devices, when there are several: SplitTensor, SplitLayer
	AxisCPUMoE        = "cpu_moe"    // layers whose experts stay on the CPU, or CPUMoEAll
	AxisCPUMoEThreads = "cpu_moe_threads"
	AxisDraft         = "draft"       // method of speculative decoding
	AxisDraftModel    = "draft_model" // file that drafts
	AxisDraftDepth    = "draft_depth" // tokens of one draft
	AxisDevice        = "device"      // an engine's own word for where it runs
	AxisServedName    = "served_name" // the model's id in requests
)

// CPUMoEAll keeps the experts of every layer on the CPU.
const CPUMoEAll = "all"

// Ways of spreading a model over devices. Only the first is tensor parallelism.
const (
	SplitTensor = "tensor"
	SplitLayer  = "layer"
)

// launchAxes are all axes.
var launchAxes = []string{
	AxisExtra, AxisModel, AxisBackend, AxisContext, AxisSlots, AxisMaxTokens, AxisThreads, AxisMMProj, AxisSplitMode,
	AxisCPUMoE, AxisCPUMoEThreads, AxisDraft, AxisDraftModel, AxisDraftDepth, AxisDevice, AxisServedName,
}

// LaunchAxes are the axes that arguments can belong to.
func LaunchAxes() []string { return slices.Clone(launchAxes) }

// Backend is one way of computing that an engine can be started with.
type Backend struct {
	ID         string            `json:"id"`
	Aliases    []string          `json:"aliases,omitempty"`
	Kind       string            `json:"kind"`                  // KindGPU or KindCPU
	Values     map[string]string `json:"values,omitempty"`      // of ${name} in the arguments
	Args       []string          `json:"args,omitempty"`        // further ones
	Env        map[string]string `json:"env,omitempty"`         // set for it; {tp} in a value is the number of devices
	Visible    string            `json:"visible,omitempty"`     // variable that limits the devices it sees
	ProgramEnv string            `json:"program_env,omitempty"` // variable that names a build of the program for it
	TP         bool              `json:"tp,omitempty"`          // it spreads a model over several devices
	CPUMoE     bool              `json:"cpu_moe,omitempty"`     // it can keep experts on the CPU
	Devices    []string          `json:"devices,omitempty"`     // names of devices in evidence that are its own; none: any GPU
}

// Kinds of backend.
const (
	KindGPU = "gpu"
	KindCPU = "cpu"
)

// DeviceEvidence says what an engine tells about the devices it runs on. A device is what DeviceLine names.
type DeviceEvidence struct {
	List []string     `json:"list,omitempty"` // arguments with which it lists its devices and ends
	Seen []DeviceLine `json:"seen,omitempty"` // lines of that list or of the output of a start, the strongest first
}

// DeviceLine is a line that shows a device.
type DeviceLine struct {
	Match  string `json:"match"`  // regular expression
	Device string `json:"device"` // cuda, rocm, vulkan, metal, cpu ...; $1 is what the expression's first group matched, in lower case
}

// Hint explains a failure, or something that a start succeeded in spite of.
type Hint struct {
	When string   `json:"when"`           // HintExit, HintTimeout, HintReady or HintAny
	Exit []int    `json:"exit,omitempty"` // with one of these exit codes
	Log  []string `json:"log,omitempty"`  // one of these texts is in the output, without case
	Say  string   `json:"say"`            // a phrase without a final stop: what it means and what to do
}

// When a hint is looked for.
const (
	HintExit    = "exit"    // it ended by itself
	HintTimeout = "timeout" // it was not ready in time
	HintReady   = "ready"   // it can answer
	HintAny     = "any"     // it ended, or was not ready in time
)

// OwnLaunch is the launch of a program of which nothing is known but the user's own command line: arguments with
// ${model}, ${host}, ${port} and the like in them.
func OwnLaunch(program string, args []string) *Launch {
	l := &Launch{Program: program, Port: 8000, Busy: BusyNext}
	if len(args) > 0 {
		l.Args = append(l.Args, LaunchArg{Args: args})
	}
	l.Args = append(l.Args, LaunchArg{Axis: AxisExtra})
	return l
}

// Backend finds a backend by its id or an alias: exactly, else without case.
func (l *Launch) Backend(name string) (Backend, bool) {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, b := range l.Backends {
			if same(b.ID, name) || slices.ContainsFunc(b.Aliases, func(a string) bool { return same(a, name) }) {
				return b, true
			}
		}
	}
	return Backend{}, false
}

// Does reports whether the engine has arguments for an axis.
func (l *Launch) Does(axis string) bool {
	return slices.ContainsFunc(l.Args, func(a LaunchArg) bool { return a.Axis == axis })
}

func (l *Launch) check() error {
	switch {
	case l.Program == "" || l.Port < 1 || l.Port > 65535 || l.Busy != BusyNext && l.Busy != BusyFail:
		return fmt.Errorf("launch needs a program, a port, and what to do when it is busy: next or fail")
	case l.Serves != ServesOne && l.Serves != ServesRequested:
		return fmt.Errorf("launch: there is no %q to serve", l.Serves)
	case l.Stop != StopTerminate && l.Stop != StopInterrupt:
		return fmt.Errorf("launch: there is no way to stop called %q", l.Stop)
	}
	for _, part := range []func() error{l.checkArgs, l.checkBackends, l.checkEvidence} {
		if err := part(); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	return nil
}

func (l *Launch) checkArgs() error {
	for _, a := range l.Args {
		switch {
		case a.Axis != "" && !slices.Contains(launchAxes, a.Axis):
			return fmt.Errorf("there is no axis %q; there are %s", a.Axis, strings.Join(launchAxes, ", "))
		case a.Is != "" && a.Axis == "":
			return fmt.Errorf("an argument that is added for %q needs an axis", a.Is)
		case len(a.Args) == 0 && len(a.Env) == 0 && a.Axis != AxisExtra:
			return fmt.Errorf("the arguments of axis %q are none", a.Axis)
		}
	}
	return nil
}

func (l *Launch) checkBackends() error {
	seen := map[string]string{}
	for _, b := range l.Backends {
		if b.ID == "" || b.Kind != KindGPU && b.Kind != KindCPU {
			return fmt.Errorf("backend %q needs an id, and the kind gpu or cpu", b.ID)
		}
		for _, name := range append([]string{b.ID}, b.Aliases...) {
			key := strings.ToLower(name)
			if other, taken := seen[key]; taken {
				return fmt.Errorf("the backends %s and %s are both called %q", other, b.ID, name)
			}
			seen[key] = b.ID
		}
	}
	return nil
}

func (l *Launch) checkEvidence() error {
	for _, pattern := range l.Parts {
		if _, err := path.Match(pattern, ""); err != nil || path.IsAbs(pattern) || pattern == "" {
			return fmt.Errorf("%q is no pattern of files beside the program", pattern)
		}
	}
	if l.Devices != nil {
		for _, d := range l.Devices.Seen {
			if _, err := regexp.Compile(d.Match); err != nil || d.Match == "" || d.Device == "" {
				return fmt.Errorf("a line that shows device %q has no usable expression: %q", d.Device, d.Match)
			}
		}
	}
	for _, h := range l.Hints {
		if !slices.Contains([]string{HintExit, HintTimeout, HintReady, HintAny}, h.When) || h.Say == "" || slices.Contains(h.Log, "") {
			return fmt.Errorf("a hint needs a time (exit, timeout, ready, any), a text to say, and no empty text to look for")
		}
	}
	return nil
}
