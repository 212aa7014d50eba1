package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/internal/clock"
)

// launchFlags say how an engine is started.
func launchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "model", Usage: "model `FILE`, or the name by which the engine knows it"},
		&cli.StringFlag{Name: "backend", Usage: "`BACKEND` of the engine: ggml_cuda, ggml_vulkan, ggml_cpu ... (default: the engine chooses)"},
		&cli.StringFlag{Name: "binary", Usage: "`FILE` to run instead of the engine's usual program; of an engine that runs in another (dotnet, python), the file that it runs"},
		&cli.StringFlag{Name: "engine-host", Value: launch.DefaultHost, Usage: "`ADDR` the engine listens on"},
		&cli.StringFlag{Name: "engine-port", Usage: "`PORT` the engine listens on, or any for a free one (default: its usual one)"},
		&cli.StringFlag{Name: "devices", Usage: "`IDS` of the devices it may see, with commas between them"},
		&cli.UintFlag{Name: "context", Usage: "`TOKENS` that prompt and answer of one request may have"},
		&cli.UintFlag{Name: "slots", Usage: "`N` requests run at once"},
		&cli.UintFlag{Name: "threads", Usage: "`N` threads of the CPU"},
		&cli.UintFlag{Name: "tp", Usage: "spread the model over `N` devices"},
		&cli.StringFlag{Name: "split-mode", Usage: "`MODE` of spreading it: tensor, layer (default: tensor)"},
		&cli.StringFlag{Name: "n-cpu-moe", Usage: "`LAYERS` whose experts stay on the CPU: off, a number, all"},
		&cli.UintFlag{Name: "cpu-moe-threads", Usage: "`N` threads for them"},
		&cli.StringFlag{Name: "draft", Usage: "`METHOD` of speculative decoding: none, draft-mtp, draft-dflash, ngram-simple, ngram-mod ..."},
		&cli.StringFlag{Name: "draft-model", Usage: "model `FILE` that drafts"},
		&cli.UintFlag{Name: "draft-depth", Usage: "`TOKENS` of one draft"},
		&cli.StringFlag{Name: "mmproj", Usage: "`FILE` of the projector of images and sound"},
		&cli.StringSliceFlag{Name: "engine-arg", Usage: "further `ARG` of the engine's command line; repeatable"},
		&cli.StringSliceFlag{Name: "engine-env", Usage: "`NAME=VALUE` set for the engine; repeatable"},
		&cli.StringFlag{Name: "engine-command", Usage: "`COMMAND` instead of what is known of the engine: words between blanks, with ${model}, ${host} and ${port} in them; no shell reads it"},
		&cli.StringFlag{Name: "engine-log", Usage: "`FILE` for its output (default: one below the data directory)"},
		&cli.StringFlag{Name: "size", Value: launch.Medium, Usage: "`CLASS` of the model, which bounds the time of its start: small 10 minutes, medium 15, large 20"},
		&cli.DurationFlag{Name: "ready-timeout", Usage: "`DURATION` its start may take, instead of --size"},
		&cli.DurationFlag{Name: "stop-grace", Value: 20 * time.Second, Usage: "`DURATION` it may take to end before it is killed"},
		&cli.StringFlag{Name: "group", Usage: "`NAME` of the devices it needs alone: a second engine of the same group is refused while this one runs"},
		&cli.BoolFlag{Name: "reap", Usage: "first end what a run that was killed has left"},
	}
}

// launchedID is the engine that a command is to start; "" when it is to start none.
func launchedID(c *cli.Context) string {
	if c.Command.Name == launchName {
		return c.Args().First()
	}
	return c.String("engine")
}

// launchedUpstream is the upstream of an engine that is not started yet.
func launchedUpstream(c *cli.Context, id string) ([]upstream, error) {
	if len(c.StringSlice("upstream")) > 0 {
		return nil, usagef("--upstream names an engine that runs, and %s is to be started; choose one", id)
	}
	return []upstream{{name: id, url: "http://" + launch.DefaultHost}}, nil
}

// launchSettings reads how the engine is started. Nothing is started yet.
func (p *program) launchSettings(c *cli.Context, s *captureSettings) error {
	id := launchedID(c)
	profile, ok := s.catalog.Lookup(id)
	if !ok {
		return usagef("there is no engine %q; 'benchproxy engines ls' lists them", id)
	}
	up := &s.upstreams[0]
	if up.name = profile.ID; up.label == "" && profile.ID != genericID {
		up.label = profile.ID // we know what we start
	}
	var err error
	if s.daemon, err = p.daemonSettings(c, profile); err != nil || s.daemon != nil {
		up.model = c.String("model")
		return err
	}
	o, err := p.launchOptions(c, profile)
	if err != nil {
		return err
	}
	spec, err := p.launchSpec(c, profile, o)
	if err != nil {
		return err
	}
	if l := profile.Launch; l != nil && l.Serves == engines.ServesRequested {
		up.model = c.String("model") // it is not loaded yet, and others may be listed beside it
	}
	if s.device == "" {
		s.device = spec.Asked
	}
	s.launch = &spec
	return nil
}

// launchSpec plans the start of an engine with all that stands around it.
func (p *program) launchSpec(c *cli.Context, profile engines.Profile, o launch.Options) (launch.Spec, error) {
	if !slices.Contains([]string{launch.Small, launch.Medium, launch.Large}, o.Class) {
		return launch.Spec{}, usagef("--size is small, medium or large, not %q", o.Class)
	}
	spec, err := launch.Plan(profile, o)
	if err != nil {
		return spec, usagef("%v", err)
	}
	spec.Environ, spec.Group = p.Environ(), c.String("group")
	spec.Warn = func(text string) { note(p.Stderr, "%s", text) }
	spec.Times.Grace = c.Duration("stop-grace")
	if c.IsSet("ready-timeout") {
		spec.Times.Ready = c.Duration("ready-timeout")
	}
	p.launchFiles(c, &spec)
	return spec, nil
}

// launchFiles chooses where the engine is noted, and where its output goes.
func (p *program) launchFiles(c *cli.Context, spec *launch.Spec) {
	spec.LogFile = c.String("engine-log")
	dir, ok := p.dataDir()
	if !ok {
		return // without a home directory nothing is noted
	}
	spec.StateDir = filepath.Join(dir, "engines")
	if spec.LogFile == "" {
		name := fmt.Sprintf("%s-%s-%d.log", spec.Engine.ID, clock.Now().Format("20060102-150405.000"), os.Getpid())
		spec.LogFile = filepath.Join(spec.StateDir, "logs", name)
	}
}

// launchOptions reads the flags.
func (p *program) launchOptions(c *cli.Context, profile engines.Profile) (launch.Options, error) {
	n := func(name string) int { return int(c.Uint(name)) }
	o := launch.Options{
		Backend: c.String("backend"), Model: c.String("model"), Drafter: c.String("draft-model"), MMProj: c.String("mmproj"), Host: c.String("engine-host"),
		Context: n("context"), Slots: n("slots"), Threads: n("threads"), TP: n("tp"), SplitMode: c.String("split-mode"), CPUMoE: c.String("n-cpu-moe"),
		CPUMoEThreads: n("cpu-moe-threads"), Draft: c.String("draft"), DraftDepth: n("draft-depth"), Class: c.String("size"),
		Extra: c.StringSlice("engine-arg"), Command: strings.Fields(c.String("engine-command")),
	}
	if c.Command.Name == launchName {
		o.Extra = append(o.Extra, p.rest...)
	}
	var err error
	if o.Port, err = enginePort(c.String("engine-port")); err != nil {
		return o, err
	}
	if v := c.String("devices"); v != "" {
		o.Devices = strings.Split(v, ",")
	}
	if o.Env, err = engineEnv(c, "engine-env"); err != nil {
		return o, err
	}
	p.launchProgram(c.String("binary"), profile, &o)
	return o, nil
}

// engineEnv reads a flag of variables.
func engineEnv(c *cli.Context, flag string) (map[string]string, error) {
	env := map[string]string{}
	for _, v := range c.StringSlice(flag) {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, usagef("--%s %q is not NAME=VALUE", flag, v)
		}
		env[name] = value
	}
	return env, nil
}

// enginePort reads --engine-port; 0 is the engine's usual port.
func enginePort(s string) (int, error) {
	switch s {
	case "":
		return 0, nil
	case "any":
		return launch.AnyPort, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 65535 {
		return 0, usagef("--engine-port is from 1 to 65535, or any; not %q", s)
	}
	return n, nil
}

// launchProgram chooses what is run: the binary that a flag names, else what a variable does that other tools of the field read, too.
func (p *program) launchProgram(binary string, profile engines.Profile, o *launch.Options) {
	l := profile.Launch
	if l == nil {
		o.Program = binary
		return
	}
	named, file := binary, p.firstOf(l.FileEnv)
	if b, ok := l.Backend(o.Backend); ok && named == "" && b.ProgramEnv != "" {
		named = p.Getenv(b.ProgramEnv)
	}
	if named == "" {
		named = p.firstOf(l.ProgramEnv)
	}
	if l.File != "" && binary != "" && filepath.Ext(named) == filepath.Ext(l.File) {
		named, file = "", named
	}
	o.Program, o.File = named, file
	if named == "" && profile.ID == simID {
		o.Program = ownProgram()
	}
}

// firstOf is the value of the first variable that has one.
func (p *program) firstOf(names []string) string {
	for _, n := range names {
		if v := p.Getenv(n); v != "" {
			return v
		}
	}
	return ""
}

// genericID is the profile of an engine that is not known.
const genericID = "generic"

// simID is the engine that is this program itself.
const simID = "sim"

// ownProgram is the file of this program; "" leaves it to PATH.
func ownProgram() string {
	path, err := os.Executable()
	name := filepath.Base(path)
	if err != nil || !strings.HasPrefix(name, "benchproxy") || strings.HasSuffix(name, ".test") {
		return ""
	}
	return path
}

// weightFlags are the files whose digests a run records: what --weights names, else the model that is started.
func weightFlags(c *cli.Context, spec *launch.Spec) []string {
	named := c.StringSlice("weights")
	if len(named) == 0 && spec != nil && strings.EqualFold(filepath.Ext(spec.Model), ".gguf") {
		if _, err := os.Stat(spec.Model); err == nil { // else the start tells that it is not there
			return []string{spec.Model}
		}
	}
	return named
}
