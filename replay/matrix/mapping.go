package matrix

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
)

// mapping is how an engine runs on a backend: the backend in the words of a launch, and what the config spells otherwise.
type mapping struct {
	registry engines.Backend
	spelling []engines.LaunchArg
	program  string
	word     string // the engine's own for the backend
	split    string // how several devices share a model
	methods  []string
}

// mapping finds out how e runs on b, or why it does not. What the config leaves open is inferred: a backend that can spread
// a model over devices, and one that can keep experts in host memory.
func (c *Config) mapping(e *Engine, b *Backend) (mapping, *Skip) {
	d, stated := b.mappings[e.ID]
	if skip := c.unmapped(e, b, d, stated); skip != nil {
		return mapping{}, skip
	}
	if e.Transport == TransportConnect {
		return mapping{registry: engines.Backend{ID: b.ID, Kind: b.Kind}, word: d.Backend}, nil
	}
	known, found := profileBackend(e, b, d)
	m := mapping{program: d.ServerExe.Path, word: d.Backend, registry: engines.Backend{
		ID: b.ID, Aliases: b.Aliases, Kind: b.Kind, Values: maps.Clone(known.Values), Visible: cmp.Or(b.DevicesEnv, known.Visible),
		Args: slices.Concat(c.engineArgs(e), known.Args, d.Args), Env: merged(known.Env, e.Env, d.Env), Devices: known.Devices,
	}}
	if m.registry.Values == nil {
		m.registry.Values = map[string]string{}
	}
	m.words(e, b, d)
	gpu := b.Kind == engines.KindGPU
	l := e.Profile.Launch
	m.registry.TP = gpu && l.Does(engines.AxisSplitMode) && (!found && len(l.Backends) == 0 || known.TP)
	switch {
	case d.TP != nil:
		m.registry.TP = *d.TP && gpu
	case e.is("tensorsharp"):
		m.registry.TP = gpu && contains([]string{"cuda", "ggml_cuda", "ggml_vulkan"}, m.word)
	case e.is("llamacpp"):
		m.registry.TP = gpu && m.registry.Values["ngl"] != "0"
	}
	m.registry.CPUMoE = gpu && l.Does(engines.AxisCPUMoE)
	if d.Offload != nil {
		m.registry.CPUMoE = *d.Offload && gpu
	}
	m.spell(e, d)
	m.methods = d.Methods
	if len(m.methods) == 0 {
		m.methods = profileMethods(l)
	}
	return m, nil
}

// unmapped is why an engine does not run on a backend, or is not compared there; nil when it does.
func (c *Config) unmapped(e *Engine, b *Backend, d mappingDoc, stated bool) *Skip {
	off := d.notCompared || d.Comparable != nil && !*d.Comparable
	switch {
	case len(e.Backends) > 0 && !contains(e.Backends, b.ID) && !contains(e.Backends, b.Kind):
		return skipf(SkipRestricted, "the config keeps %s to %s", e.ID, strings.Join(e.Backends, ", "))
	case e.Transport == TransportServer && off:
		return skipf(SkipNoMapping, "%s has no launch mapping for %s", e.ID, b.ID)
	case e.Transport == TransportServer && stated:
		return nil
	case e.Transport == TransportServer:
		if _, found := profileBackend(e, b, d); seedEngine(e) || !found && len(e.Profile.Launch.Backends) > 0 {
			return skipf(SkipNoMapping, "%s has no launch mapping for %s", e.ID, b.ID)
		}
		return nil
	case off, !stated && e.is("vllm"):
		return skipf(SkipNotComparable, "numbers of the running %s are not comparable with the column %s", e.ID, b.ID)
	case stated || len(e.Backends) > 0 || len(c.Defaults.Backends) == 1:
		return nil
	}
	return skipf(SkipNotComparable, "the running %s belongs to one backend: say \"%s\": true in the entry of that backend, or select one backend", e.ID, e.ID)
}

// seedEngine reports whether the entry of a backend has to mention an engine: so the files of the older tool have it.
func seedEngine(e *Engine) bool { return e.is("tensorsharp") || e.is("llamacpp") || e.is("vllm") }

// profileBackend is what the engine's profile knows of a backend: by the engine's own word, by the ids and aliases of the
// config, or by the family of its devices. A profile whose engine chooses by itself has it, too.
func profileBackend(e *Engine, b *Backend, d mappingDoc) (engines.Backend, bool) {
	names := slices.Concat([]string{d.Backend, b.ID, strings.TrimPrefix(b.ID, "ggml_")}, b.Aliases)
	if family, known := deviceFamilies()[b.DevicesEnv]; known {
		names = append(names, family)
	}
	if b.Kind == engines.KindCPU {
		names = append(names, engines.KindCPU)
	} else {
		names = append(names, "auto")
	}
	for _, name := range names {
		if found, ok := e.Profile.Launch.Backend(name); ok && name != "" && found.Kind == b.Kind {
			return found, true
		}
	}
	return engines.Backend{}, false
}

// deviceFamilies are the words for devices by the variables that limit them.
func deviceFamilies() map[string]string {
	return map[string]string{
		"CUDA_VISIBLE_DEVICES": "cuda", "GGML_VK_VISIBLE_DEVICES": "vulkan", "HIP_VISIBLE_DEVICES": "rocm", "ROCR_VISIBLE_DEVICES": "rocm",
	}
}

// engineArgs are the arguments of all launches of an engine.
func (c *Config) engineArgs(e *Engine) []string {
	if e.is("llamacpp") {
		return slices.Concat(c.Llama.Args, e.Args)
	}
	return e.Args
}

// words puts the engine's own words for the backend among the values of the command line.
func (m *mapping) words(e *Engine, b *Backend, d mappingDoc) {
	values := m.registry.Values
	if e.is("tensorsharp") {
		m.word = cmp.Or(m.word, values["backend"], b.ID)
	}
	if m.word != "" {
		values["backend"] = m.word
	}
	if d.NGL != nil {
		values["ngl"] = strconv.Itoa(*d.NGL)
	} else if e.is("llamacpp") && values["ngl"] == "" {
		values["ngl"] = map[string]string{engines.KindGPU: "999", engines.KindCPU: "0"}[b.Kind]
	}
}

// spell takes the arguments that the config gives for several devices and for offloaded experts.
func (m *mapping) spell(e *Engine, d mappingDoc) {
	m.split = engines.SplitTensor
	args := slices.Clone(d.TPArgs)
	if d.TPArg != "" {
		args = append([]string{d.TPArg, "{tp}"}, args...)
	}
	if len(args) > 0 {
		m.split = splitOf(args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "{tp}", "${tp}")
		}
		m.spelling = append(m.spelling, engines.LaunchArg{Axis: engines.AxisSplitMode, Args: args})
	}
	if d.OffloadArg != "" || d.OffloadAll != "" {
		m.spelling = append(m.spelling, offloadArgs(e.Profile.Launch, d)...)
	}
	if d.ThreadsArg != "" {
		m.spelling = append(m.spelling, engines.LaunchArg{Axis: engines.AxisCPUMoEThreads, Args: []string{d.ThreadsArg, "${cpu_moe_threads}"}})
	}
}

// splitOf is how arguments spread a model: whole layers on each device are no tensor parallelism.
func splitOf(args []string) string {
	for _, a := range args {
		switch word := strings.ToLower(a); {
		case strings.Contains(word, "layer"), strings.Contains(word, "pipeline"), word == "--pp-size":
			return engines.SplitLayer
		case word == "row", strings.HasSuffix(word, "=row"):
			return "row"
		}
	}
	return engines.SplitTensor
}

// offloadArgs are both spellings of the offload axis; the one that the config leaves out is the profile's.
func offloadArgs(l *engines.Launch, d mappingDoc) []engines.LaunchArg {
	var some, all *engines.LaunchArg
	for i := range l.Args {
		switch a := &l.Args[i]; {
		case a.Axis == engines.AxisCPUMoE && a.Is == engines.CPUMoEAll:
			all = a
		case a.Axis == engines.AxisCPUMoE:
			some = a
		}
	}
	if d.OffloadAll != "" {
		all = &engines.LaunchArg{Axis: engines.AxisCPUMoE, Is: engines.CPUMoEAll, Args: []string{d.OffloadAll}}
	}
	if d.OffloadArg != "" {
		some = &engines.LaunchArg{Axis: engines.AxisCPUMoE, Args: []string{d.OffloadArg, "${cpu_moe}"}}
	}
	var out []engines.LaunchArg
	for _, a := range []*engines.LaunchArg{all, some} {
		if a != nil {
			out = append(out, *a)
		}
	}
	return out
}

// profileMethods are the methods of speculative decoding that a profile has arguments for. One that passes the word on has
// all of them.
func profileMethods(l *engines.Launch) []string {
	var out []string
	for _, a := range l.Args {
		switch {
		case a.Axis != engines.AxisDraft:
		case a.Is == "":
			return Methods()
		default:
			out = append(out, a.Is)
		}
	}
	return out
}

// merged is the last value of each name.
func merged(all ...map[string]string) map[string]string {
	var out map[string]string
	for _, m := range all {
		for name, value := range m {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = value
		}
	}
	return out
}
