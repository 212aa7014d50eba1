package matrix

import (
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
)

// groupSkip is why no cell of a launch can run; nil when it can. The rules are asked in the order in which a person would
// want to hear of them: what cannot be at all, what the axes exclude, and what is missing on this machine.
func (b *builder) groupSkip(p pair, a Axes, m *mapping, unmapped *Skip) *Skip {
	if unmapped != nil {
		return unmapped
	}
	for _, rule := range []func(pair, Axes, *mapping) *Skip{
		b.skipModel, b.skipMTP, b.skipMethod, b.skipTP, b.skipOffload, b.skipDevice, b.skipAddress, b.skipFiles,
	} {
		if s := rule(p, a, m); s != nil {
			return s
		}
	}
	return nil
}

func (b *builder) skipModel(p pair, _ Axes, _ *mapping) *Skip {
	switch {
	case p.model.ImageEdit:
		return skipf(SkipModality, "%s edits images, which is no part of this matrix", p.model.ID)
	case p.backend.Kind == engines.KindCPU && p.model.Size == "large":
		return skipf(SkipTooLarge, "%s is a large model, and %s runs on the processor", p.model.ID, p.backend.ID)
	case p.model.Diffusion && !p.engine.is("tensorsharp"):
		return skipf(SkipDiffusion, "%s is a diffusion model, which %s does not run", p.model.ID, p.engine.ID)
	}
	return nil
}

func (b *builder) skipMTP(p pair, a Axes, _ *mapping) *Skip {
	if !a.MTP {
		return nil
	}
	f := p.model.filesFor(p.engine.ID)
	switch {
	case !p.engine.is("tensorsharp"):
		return skipf(SkipMTP, "the MTP switch is TensorSharp's; %s has --speculative", p.engine.ID)
	case p.model.Diffusion:
		return skipf(SkipMTP, "%s is a diffusion model: there is nothing to draft", p.model.ID)
	case !p.model.MTP:
		return skipf(SkipMTP, "%s has no draft head (mtp_supported)", p.model.ID)
	case a.Method != "" && a.Method != MethodNone:
		return skipf(SkipDisagreeing, "MTP and the speculative method %s exclude each other", a.Method)
	case f.MTPDraft != "" && !b.available(p.model, f.MTPDraft):
		return skipf(SkipMTPDraft, "the draft head %s is not there", f.MTPDraft)
	}
	return nil
}

func (b *builder) skipMethod(p pair, a Axes, m *mapping) *Skip {
	if a.Method == "" || a.Method == MethodNone {
		return nil
	}
	f := p.model.filesFor(p.engine.ID)
	file := drafter(a.Method, f)
	switch {
	case p.engine.Transport == TransportConnect:
		return skipf(SkipMethod, "%s is not launched here: how it drafts is not ours to choose", p.engine.ID)
	case p.model.Diffusion:
		return skipf(SkipMethod, "%s is a diffusion model: there is nothing to draft", p.model.ID)
	case !contains(m.methods, a.Method):
		return skipf(SkipMethod, "%s has no method %s%s", p.engine.ID, a.Method, ofThese(m.methods))
	case a.Method == MethodMTP && !p.model.MTP:
		return skipf(SkipMethod, "%s has no draft head (mtp_supported)", p.model.ID)
	case needsDrafter(a.Method) && file == "":
		return skipf(SkipDrafter, "%s names no drafter for %s", p.model.ID, a.Method)
	case file != "" && !b.available(p.model, file):
		return skipf(SkipDrafter, "the drafter %s is not there", file)
	case a.Depth > 0 && !p.engine.Profile.Launch.Does(engines.AxisDraftDepth):
		return skipf(SkipMethod, "%s takes no length of drafts", p.engine.ID)
	}
	return nil
}

// ofThese lists what there is besides none.
func ofThese(methods []string) string {
	methods = slices.DeleteFunc(slices.Clone(methods), func(m string) bool { return m == MethodNone })
	if len(methods) == 0 {
		return ""
	}
	return "; it has " + strings.Join(methods, ", ")
}

func (b *builder) skipTP(p pair, a Axes, m *mapping) *Skip {
	pool := len(b.c.Defaults.TPDevices)
	if a.TP > 1 {
		switch {
		case p.backend.Kind == engines.KindCPU:
			return skipf(SkipTP, "%s runs on the processor: there are no devices to spread a model over", p.backend.ID)
		case p.engine.Transport == TransportConnect:
			return skipf(SkipTP, "%s is not launched here: how many devices it uses is not ours to choose", p.engine.ID)
		case !m.registry.TP:
			return skipf(SkipTP, "%s spreads no model over several devices on %s", p.engine.ID, p.backend.ID)
		case pool < a.TP:
			return skipf(SkipTPDevices, "--tp %d needs %s, and tp_devices names %d", a.TP, plural(a.TP, "device"), pool)
		}
	}
	switch {
	case a.TP < p.model.MinTP:
		return skipf(SkipMinTP, "needs --tp %d: %s does not fit on %s", p.model.MinTP, p.model.ID, plural(a.TP, "device"))
	case p.model.MaxTP > 0 && a.TP > p.model.MaxTP && p.engine.is("tensorsharp"):
		return skipf(SkipMaxTP, "%s can be cut for %s at most", p.model.ID, plural(p.model.MaxTP, "device"))
	}
	return nil
}

func (b *builder) skipOffload(p pair, a Axes, m *mapping) *Skip {
	if a.CPUMoELayers == 0 {
		return nil
	}
	switch {
	case p.backend.Kind == engines.KindCPU:
		return skipf(SkipOffload, "%s runs on the processor: all experts are in host memory already", p.backend.ID)
	case p.engine.Transport == TransportConnect:
		return skipf(SkipOffload, "%s is not launched here: where its experts are is not ours to choose", p.engine.ID)
	case !m.registry.CPUMoE:
		return skipf(SkipOffload, "%s keeps no experts in host memory on %s", p.engine.ID, p.backend.ID)
	case p.model.MoE != nil && !*p.model.MoE:
		return skipf(SkipDense, "%s has no experts to move (is_moe is false)", p.model.ID)
	case a.CPUMoEThreads > 0 && !p.engine.Profile.Launch.Does(engines.AxisCPUMoEThreads):
		return skipf(SkipOffload, "%s takes no number of threads for offloaded experts", p.engine.ID)
	}
	if pin := pinned(m, a.CPUMoEThreads > 0); pin != "" {
		return skipf(SkipPinned, "%s pins the offload itself, by %s: given twice, the engine would take one of them and the cell would be named for the other",
			p.backend.ID, pin)
	}
	return nil
}

// pinned is the argument or variable by which a backend decides on the offload itself; "" when it leaves it to the axis.
func pinned(m *mapping, threads bool) string {
	flags := []string{"--n-cpu-moe", "-ncmoe", "--cpu-moe", "-cmoe"}
	if threads {
		flags = append(flags, "--cpu-moe-threads")
	}
	for _, s := range m.spelling {
		if s.Axis == engines.AxisCPUMoE || threads && s.Axis == engines.AxisCPUMoEThreads {
			flags = append(flags, s.Args[0])
		}
	}
	for _, arg := range m.registry.Args {
		name, _, _ := strings.Cut(arg, "=")
		if contains(flags, name) {
			return arg
		}
	}
	for name := range m.registry.Env {
		upper := strings.ToUpper(name)
		if strings.Contains(upper, "CPU_MOE") && (threads || !strings.Contains(upper, "THREADS")) {
			return name
		}
	}
	return ""
}

func (b *builder) skipDevice(p pair, a Axes, _ *mapping) *Skip {
	switch {
	case a.Device == "":
		return nil
	case p.engine.Transport == TransportConnect:
		return skipf(SkipDevice, "%s is not launched here: where it runs is not ours to choose", p.engine.ID)
	case !p.engine.Profile.Launch.Does(engines.AxisDevice):
		return skipf(SkipDevice, "%s cannot be told on which device to run", p.engine.ID)
	}
	return nil
}

func (b *builder) skipAddress(p pair, _ Axes, _ *mapping) *Skip {
	f := p.model.filesFor(p.engine.ID)
	switch {
	case p.engine.Transport == TransportConnect && p.engine.URL == "" && p.engine.Profile.Daemon == nil: // its daemon's file says where
		return skipf(SkipNoURL, "%s is not launched here, and the config has no url for it", p.engine.ID)
	case f.Name == "" && servesMany(p.engine):
		return skipf(SkipNoName, "%s is asked for a model by name, and %s has none for it: say it in its entry, under engines", p.engine.ID, p.model.ID)
	}
	return nil
}

// servesMany reports whether requests choose the model.
func servesMany(e *Engine) bool {
	if l := e.Profile.Launch; l != nil {
		return l.Serves == engines.ServesRequested
	}
	return e.Profile.Kind == engines.KindHosted || e.Profile.Kind == engines.KindFront
}

func (b *builder) skipFiles(p pair, _ Axes, m *mapping) *Skip {
	e := p.engine
	if e.Transport == TransportConnect {
		return nil
	}
	l := e.Profile.Launch
	f := p.model.filesFor(e.ID)
	program := or(or(m.program, e.Program), l.Program)
	file := or(e.File, l.File)
	switch {
	case l.ModelFile && f.Weights == "":
		return skipf(SkipModelFile, "%s names no file of its weights", p.model.ID)
	case l.ModelFile && !b.available(p.model, f.Weights):
		return skipf(SkipModelFile, "the model file %s is not there", f.Weights)
	case f.Projector != "" && l.ModelFile && !b.available(p.model, f.Projector):
		return skipf(SkipModelFile, "the projector %s is not there", f.Projector)
	case !b.o.Program(program):
		return skipf(SkipBinary, "the program %s is not there", program)
	case file != "" && !b.o.Exists(file):
		return skipf(SkipBinary, "%s is not there", file)
	}
	return nil
}

// available reports whether a file is there, or is fetched before the run.
func (b *builder) available(m *Model, file string) bool {
	if b.o.Exists(file) {
		return true
	}
	_, known := m.sourceOf(file)
	return known && b.c.Defaults.Download != DownloadNever
}

// cellSkip is why one cell of a launch that can run cannot; nil when it can.
func (b *builder) cellSkip(p pair, c *Cell) *Skip {
	s := b.c.scenario(c.Scenario)
	media := s.Modality != "text"
	switch {
	case s.Edit:
		return skipf(SkipModality, "%s edits images, which is no part of this matrix", s.ID)
	case s.Build == "":
		return NoMessages("there is nothing to ask for the scenario " + s.ID)
	case media && !contains(p.model.Modalities, s.Modality):
		return skipf(SkipModality, "%s takes no %s", p.model.ID, s.Modality)
	case p.engine.is("llamacpp") && s.Modality == "video":
		return skipf(SkipModality, "llama.cpp takes no video")
	case p.engine.is("vllm") && media:
		return skipf(SkipModality, "%s is asked in text only", p.engine.ID)
	case p.model.Diffusion && !forDiffusion(s):
		return skipf(SkipDiffusion, "%s is a diffusion model: it is asked text, multi_turn and code_edit only", p.model.ID)
	case media && p.engine.is("llamacpp") && p.engine.Transport == TransportServer && p.model.filesFor(p.engine.ID).Projector == "":
		return skipf(SkipModality, "llama.cpp takes no %s without a projector, and %s names none", s.Modality, p.model.ID)
	}
	return b.assetSkip(s)
}

// forDiffusion reports whether a scenario can be asked of a model that carries no tools, takes no format and streams nothing.
func forDiffusion(s *Scenario) bool {
	asks := []string{"text_short", "text_long", "multi_turn", "code_edit", "diffusion_text", "text"}
	return contains(asks, s.ID) || contains(asks, s.Build) || s.Kind == "text" && s.Modality == "text"
}

// assetSkip is why what a scenario shows or plays cannot be had: the config names a file that is not there.
func (b *builder) assetSkip(s *Scenario) *Skip {
	file := map[string]string{"image": b.c.Paths.Image, "audio": b.c.Paths.Audio, "video": b.c.Paths.Video}[s.Modality]
	if file != "" && !b.o.Exists(file) {
		return skipf(SkipAsset, "the %s %s is not there", s.Modality, file)
	}
	return nil
}
