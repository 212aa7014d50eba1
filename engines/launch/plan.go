package launch

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// DefaultHost is the address engines listen on.
const DefaultHost = "127.0.0.1"

// Options are what one launch asks for. Zero values ask for nothing.
type Options struct {
	Backend  string           // id or alias of one of the engine's backends; "" lets the engine choose
	Registry *engines.Backend // a backend as a config describes it, instead
	Program  string           // instead of the profile's
	File     string           // that the program runs, instead of the profile's
	// Command replaces the profile's command line: the program and its arguments, with ${model}, ${host}, ${port} and the
	// like in them. An engine without a launch profile is launched by it, or by Program, whose arguments are then those of
	// the Registry and Extra, with the same names in them.
	Command []string
	Dir     string // working directory; "" is that of File, or ours

	Model      string // file, directory or name
	Drafter    string // model that drafts
	MMProj     string // projector
	ServedName string // id of the model in requests
	Host       string // "" is DefaultHost
	Port       int    // 0 is the engine's usual one

	Devices       []string // that it may use: the first TP of them, or all when TP is 0
	Context       int      // tokens of one request's window
	Slots         int      // requests at once
	MaxTokens     int
	Threads       int
	TP            int    // devices that one model is spread over
	SplitMode     string // how, engines.SplitTensor unless something else is said
	CPUMoE        string // layers whose experts stay on the CPU: off, a number, all
	CPUMoEThreads int
	Draft         string // method of speculative decoding: none, draft-mtp, ngram-simple ...
	DraftDepth    int    // tokens of one draft
	Device        string // the engine's own word for where it runs

	Extra    []string            // further arguments
	Env      map[string]string   // set for it
	Spelling []engines.LaunchArg // replace the profile's arguments of the same axes
	Class    string              // size class, which says how long it may take to be ready
}

// Plan makes the command line of an engine. What the engine or its backend cannot do is an error that wraps
// ErrUnsupported; what makes no sense for any engine wraps exchange.ErrUsage.
func Plan(p engines.Profile, o Options) (Spec, error) {
	l := p.Launch
	if l == nil && len(o.Command) == 0 && o.Program != "" {
		o = programCommand(o)
	}
	if len(o.Command) > 0 {
		l = commandLaunch(p, o.Command)
	}
	if l == nil {
		return Spec{}, fmt.Errorf("%s is %w by launching: connect to one that runs, name its program, or give a command for it", p.Name, ErrUnsupported)
	}
	b := builder{profile: p, launch: l, o: o, asked: map[string]string{}, values: map[string]string{}, env: map[string]string{}}
	for _, step := range []func() error{b.chooseBackend, b.readFiles, b.readSizes, b.readPlacement, b.readDrafting, b.spell, b.checkTwice} {
		if err := step(); err != nil {
			return Spec{}, err
		}
	}
	return b.spec(), nil
}

// programCommand takes the arguments of a program of which nothing is known for the user's own command line.
func programCommand(o Options) Options {
	o.Command = []string{o.Program}
	if o.Registry != nil {
		registry := *o.Registry
		o.Command, registry.Args = append(o.Command, registry.Args...), nil
		o.Registry = &registry
	}
	o.Command, o.Program, o.Extra = append(o.Command, o.Extra...), "", nil
	return o
}

// commandLaunch is a launch profile of the user's own command line.
func commandLaunch(p engines.Profile, command []string) *engines.Launch {
	own := engines.OwnLaunch(command[0], command[1:])
	if p.Launch == nil {
		return own
	}
	l := *p.Launch
	l.Program, l.File, l.Args = own.Program, "", own.Args
	return &l
}

// builder gathers the parts of a command line.
type builder struct {
	profile engines.Profile
	launch  *engines.Launch
	o       Options
	backend engines.Backend
	asked   map[string]string // axis -> what is asked for
	values  map[string]string // of ${name}
	args    []string
	groups  [][]string // the same, by group, for the axes
	extra   []string
	env     map[string]string
	argEnv  []string // of env: what was asked for, and not set by the user
	files   []string
}

func (b *builder) cannot(format string, args ...any) error {
	return fmt.Errorf("%s: %s: %w", b.profile.Name, fmt.Sprintf(format, args...), ErrUnsupported)
}

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", exchange.ErrUsage, fmt.Sprintf(format, args...))
}

// ask notes that something is asked of an axis, unless it is nothing.
func (b *builder) ask(axis, value string) {
	if value != "" {
		b.asked[axis], b.values[axis] = value, value
	}
}

// askCount is ask for a number, which 0 leaves open.
func (b *builder) askCount(axis string, n int) error {
	if n < 0 {
		return usage("%s %d is below 0", axis, n)
	}
	if n > 0 {
		b.ask(axis, strconv.Itoa(n))
	}
	return nil
}

func (b *builder) chooseBackend() error {
	switch {
	case b.o.Registry != nil:
		b.backend = *b.o.Registry
	case b.o.Backend == "":
		return nil
	default:
		found, ok := b.launch.Backend(b.o.Backend)
		if !ok {
			return b.cannot("there is no launch mapping for backend %s, only for %s", b.o.Backend, backendNames(b.launch))
		}
		b.backend = found
	}
	maps.Copy(b.values, b.backend.Values)
	b.asked[engines.AxisBackend] = b.backend.ID
	return nil
}

func backendNames(l *engines.Launch) string {
	var names []string
	for _, b := range l.Backends {
		names = append(names, b.ID)
	}
	return cmp.Or(strings.Join(names, ", "), "what it chooses itself")
}

func (b *builder) readFiles() error {
	o := b.o
	if b.launch.ModelFile && o.Model == "" && len(o.Command) == 0 {
		return usage("%s is started with a model file; name one", b.profile.Name)
	}
	b.ask(engines.AxisModel, o.Model)
	b.ask(engines.AxisMMProj, o.MMProj)
	b.ask(engines.AxisServedName, o.ServedName)
	for name, file := range map[string]string{"model": o.Model, engines.AxisDraftModel: o.Drafter} {
		if file != "" {
			b.values[name], b.values[name+"_dir"], b.values[name+"_name"] = file, filepath.Dir(file), filepath.Base(file)
		}
	}
	if b.launch.ModelFile {
		for _, f := range []string{o.Model, o.Drafter, o.MMProj} {
			if f != "" {
				b.files = append(b.files, f)
			}
		}
	}
	b.values["file"] = cmp.Or(o.File, b.launch.File)
	return nil
}

func (b *builder) readSizes() error {
	o := b.o
	window := o.Context
	if b.launch.WindowOfAll && o.Slots > 1 {
		window *= o.Slots
	}
	for _, f := range []struct {
		axis string
		n    int
	}{
		{engines.AxisContext, window}, {engines.AxisSlots, o.Slots}, {engines.AxisMaxTokens, o.MaxTokens}, {engines.AxisThreads, o.Threads},
	} {
		if err := b.askCount(f.axis, f.n); err != nil {
			return err
		}
	}
	b.ask(engines.AxisDevice, o.Device)
	return nil
}

func (b *builder) readPlacement() error {
	o := b.o
	switch {
	case o.TP < 0:
		return usage("%d devices are below 0", o.TP)
	case o.SplitMode != "" && o.TP < 2:
		return usage("a split mode needs several devices to split over")
	case o.TP > 1 && b.backend.Kind == engines.KindCPU:
		return b.cannot("%s is a CPU backend, there is nothing to split over", b.backend.ID)
	case o.TP > 1 && b.asked[engines.AxisBackend] != "" && !b.backend.TP:
		return b.cannot("the backend %s spreads no model over devices", b.backend.ID)
	case o.TP > 1 && len(o.Devices) > 0 && len(o.Devices) < o.TP:
		return b.cannot("%d devices are asked for, and %d are named", o.TP, len(o.Devices))
	case o.TP > 1:
		b.values["tp"] = strconv.Itoa(o.TP)
		b.ask(engines.AxisSplitMode, cmp.Or(o.SplitMode, engines.SplitTensor))
	}
	return b.readOffload()
}

func (b *builder) readOffload() error {
	layers, err := cpuMoE(b.o.CPUMoE)
	if err != nil {
		return err
	}
	switch {
	case layers == "" && b.o.CPUMoEThreads != 0:
		return usage("threads for experts on the CPU need experts on the CPU")
	case layers == "":
		return nil
	case b.backend.Kind == engines.KindCPU:
		return b.cannot("%s is a CPU backend, its experts are on the CPU already", b.backend.ID)
	case b.asked[engines.AxisBackend] != "" && !b.backend.CPUMoE:
		return b.cannot("the backend %s keeps no experts on the CPU", b.backend.ID)
	}
	b.ask(engines.AxisCPUMoE, layers)
	return b.askCount(engines.AxisCPUMoEThreads, b.o.CPUMoEThreads)
}

// cpuMoE reads the layers whose experts stay on the CPU: "" for none, a number, or all.
func cpuMoE(s string) (string, error) {
	if s == "" || s == "off" {
		return "", nil
	}
	if s == engines.CPUMoEAll {
		return s, nil
	}
	n, err := strconv.Atoi(s)
	switch {
	case err != nil || n < 0:
		return "", usage("experts on the CPU are off, a number of layers, or all; not %q", s)
	case n == 0:
		return "", nil
	}
	return strconv.Itoa(n), nil
}

func (b *builder) readDrafting() error {
	o := b.o
	method := o.Draft
	if method == "none" {
		method = ""
	}
	if method == "" {
		if o.Drafter != "" || o.DraftDepth != 0 {
			return usage("a drafter and the length of drafts need a method of drafting")
		}
		return nil
	}
	b.ask(engines.AxisDraft, method)
	if o.Drafter != "" {
		b.asked[engines.AxisDraftModel] = o.Drafter
	}
	return b.askCount(engines.AxisDraftDepth, o.DraftDepth)
}

// spell turns what is asked for into arguments, in the profile's order.
func (b *builder) spell() error {
	b.extra = slices.Concat(b.backend.Args, b.o.Extra)
	maps.Copy(b.env, b.launch.Env)
	spelled := map[string]bool{}
	list := respelled(b.launch.Args, b.o.Spelling)
	for _, a := range list {
		if a.Axis == engines.AxisExtra {
			b.args = append(b.args, b.extra...)
			spelled[a.Axis] = true
			continue
		}
		if !b.wanted(a, list) {
			continue
		}
		spelled[a.Axis] = true
		if err := b.add(a); err != nil {
			return err
		}
	}
	if !spelled[engines.AxisExtra] {
		b.args = append(b.args, b.extra...)
	}
	return b.unspelled(spelled)
}

// respelled is the list with the arguments of an axis replaced by others, in the place of the first.
func respelled(list, others []engines.LaunchArg) []engines.LaunchArg {
	var out []engines.LaunchArg
	done := map[string]bool{}
	of := func(axis string) (same []engines.LaunchArg) {
		for _, a := range others {
			if a.Axis == axis {
				same = append(same, a)
			}
		}
		return same
	}
	for _, a := range list {
		replaced := of(a.Axis)
		switch {
		case a.Axis == "" || len(replaced) == 0:
			out = append(out, a)
		case !done[a.Axis]:
			done[a.Axis] = true
			out = append(out, replaced...)
		}
	}
	for _, a := range others {
		if !done[a.Axis] {
			out = append(out, a)
		}
	}
	return out
}

// wanted reports whether a group is for what is asked for. One for any value stands back when another names the value.
func (b *builder) wanted(a engines.LaunchArg, list []engines.LaunchArg) bool {
	if a.Axis == "" {
		return true
	}
	value, asked := b.asked[a.Axis]
	switch {
	case !asked || a.Is != "" && a.Is != value:
		return false
	case len(a.For) > 0 && !slices.ContainsFunc(a.For, b.drafts):
		return false
	}
	return a.Is != "" || !slices.ContainsFunc(list, func(other engines.LaunchArg) bool { return other.Axis == a.Axis && other.Is == value })
}

// drafts reports whether the method of drafting is like a pattern.
func (b *builder) drafts(pattern string) bool {
	ok, err := path.Match(pattern, b.asked[engines.AxisDraft])
	return ok && err == nil
}

func (b *builder) add(a engines.LaunchArg) error {
	group := make([]string, len(a.Args))
	for i, arg := range a.Args {
		var err error
		if group[i], err = b.fill(arg); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		value, err := b.fill(a.Env[name])
		if err != nil {
			return err
		}
		b.env[name] = value
		if a.Axis != "" {
			b.argEnv = append(b.argEnv, name)
		}
	}
	b.args = append(b.args, group...)
	b.groups = append(b.groups, group)
	return nil
}

// placeholder matches ${name}.
var placeholder = regexp.MustCompile(`\$\{([a-z_]+)\}`)

// fill replaces the names in an argument. Host and port are known only at the start.
func (b *builder) fill(arg string) (string, error) {
	var missing []string
	out := placeholder.ReplaceAllStringFunc(arg, func(m string) string {
		name := m[2 : len(m)-1]
		if name == "host" || name == "port" {
			return m
		}
		value, ok := b.values[name]
		if !ok {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return "", usage("%s needs a value for %s, in %q", b.profile.Name, strings.Join(missing, " and "), arg)
	}
	return out, nil
}

// unspelled refuses what was asked for and came into no argument.
func (b *builder) unspelled(spelled map[string]bool) error {
	for _, axis := range slices.Sorted(maps.Keys(b.asked)) {
		quiet := []string{engines.AxisBackend, engines.AxisModel, engines.AxisServedName}
		if spelled[axis] || slices.Contains(quiet, axis) || len(b.o.Command) > 0 && b.inCommand(axis) {
			continue
		}
		if axis == engines.AxisMaxTokens {
			continue // requests bound their answers, too
		}
		return b.cannot("it has no argument for %s %s", strings.ReplaceAll(axis, "_", " "), b.asked[axis])
	}
	return nil
}

// inCommand reports whether the user's own command line takes the value of an axis.
func (b *builder) inCommand(axis string) bool {
	name := axis
	if axis == engines.AxisSplitMode {
		name = "tp"
	}
	return slices.ContainsFunc(b.o.Command, func(a string) bool { return strings.Contains(a, "${"+name+"}") })
}

// checkTwice refuses a flag that two parts of the command line give: an engine would take one of them, and the run would be
// labeled with the other.
func (b *builder) checkTwice() error {
	given := map[string]bool{}
	for _, a := range b.extra {
		if f, ok := flagName(a); ok {
			given[f] = true
		}
	}
	for _, group := range b.groups {
		mine := map[string]bool{}
		for _, a := range group {
			f, ok := flagName(a)
			if !ok {
				continue
			}
			if given[f] {
				return b.cannot("%s is given twice, by the launch and by what it is pinned to or by another option", f)
			}
			mine[f] = true
		}
		maps.Copy(given, mine)
	}
	return nil
}

// flagName is the name of a flag, without its value.
func flagName(arg string) (string, bool) {
	if len(arg) < 2 || arg[0] != '-' || arg[1] >= '0' && arg[1] <= '9' {
		return "", false
	}
	name, _, _ := strings.Cut(arg, "=")
	return name, true
}
