package matrix

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func (r *resolver) library() {
	for _, f := range r.doc.Own {
		r.c.Own = append(r.c.Own, f.Path)
	}
	r.c.library = noLibrary{}
	if r.in.Library == nil {
		return
	}
	l, err := r.in.Library(r.c.Own)
	if err != nil {
		r.problem(or(r.root.get("scenario_files"), r.root), "scenario_files", "%v", err)
		return
	}
	r.c.library = l
}

// noLibrary is the library of a config that is only read: every name that the file declares is taken.
type noLibrary struct{}

func (noLibrary) Names() []string                { return []string{"prefill_<N>[k]"} }
func (noLibrary) Expand(names []string) []string { return names }
func (noLibrary) Describe(name string) (Scenario, error) {
	if n, ok := PrefillTarget(name); ok {
		return Scenario{Build: name, MaxTokens: 8, Fixed: true, Turns: 1, Prompt: n}, nil
	}
	return Scenario{}, fmt.Errorf("%w: there is no scenario %q", exchange.ErrUsage, name)
}

// PrefillTarget is the number of tokens that a scenario prefill_<N> or prefill_<N>k asks for.
func PrefillTarget(id string) (int, bool) {
	text, ok := strings.CutPrefix(id, "prefill_")
	if !ok {
		return 0, false
	}
	unit := 1
	if t, thousands := strings.CutSuffix(text, "k"); thousands {
		text, unit = t, 1024
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1<<30 || strconv.Itoa(n) != text {
		return 0, false
	}
	return n * unit, true
}

// scenarios are those that the file declares.
func (r *resolver) scenarios() {
	for _, e := range r.doc.Scenarios {
		d := e.doc
		s, err := r.describe(e.id)
		if err != nil && d.Kind != "" && d.Kind != e.id {
			s, err = r.describe(d.Kind)
		}
		if err != nil && !errors.Is(err, exchange.ErrUsage) {
			r.problem(e.line, below("scenarios", e.id), "%v", err)
			continue
		}
		s.ID, s.Kind, s.Edit = e.id, d.Kind, d.Edit
		s.Description = or(d.Description, s.Description)
		s.Modality = or(d.Modality, or(s.Modality, "text"))
		if s.Fixed && d.MaxTokens > 0 && d.MaxTokens != s.MaxTokens {
			r.warnings = append(r.warnings, fmt.Sprintf("scenario %s: its limit of %d tokens is part of what it measures; max_tokens %d does not hold", e.id, s.MaxTokens, d.MaxTokens))
			d.MaxTokens = 0
		}
		s.MaxTokens = or(d.MaxTokens, s.MaxTokens)
		s.Concurrency = or(d.Concurrency, s.Concurrency)
		s.Context = d.Context
		r.c.Scenarios = append(r.c.Scenarios, s)
	}
}

func (r *resolver) describe(id string) (Scenario, error) {
	s, err := r.c.library.Describe(id)
	s.ID = id
	s.Modality = or(s.Modality, "text")
	return s, err
}

func or[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

// defaults are what the run measures.
func (r *resolver) defaults() {
	d := r.doc.Defaults
	r.c.Defaults = Defaults{
		Thinking: d.Thinking, MTP: d.MTP, TP: d.TP, TPDevices: d.TPDevices, Offload: d.Offload, Threads: d.Threads, Methods: uniq(d.Methods), Depths: d.Depths,
		Devices: uniq(d.Devices), Concurrency: d.Concurrency, Context: d.Context, MaxTokens: d.MaxTokens, ThinkingMax: d.ThinkingMax, Warmup: d.Warmup, Repeats: d.Repeats,
		ServerMax: d.ServerMax, Order: d.Order, Download: d.Download,
	}
	r.axes()
	r.baseline()
	r.chooseScenarios()
	r.chooseBackends()
	r.chooseEngines()
	r.chooseModels()
}

// axes checks what the axes say together.
func (r *resolver) axes() {
	d, at := &r.c.Defaults, r.root.get("defaults")
	for _, axis := range []struct {
		key   string
		empty bool
	}{
		{"thinking", len(d.Thinking) == 0}, {"mtp_modes", len(d.MTP) == 0}, {"tp_degrees", len(d.TP) == 0}, {"cpu_moe_layers", len(d.Offload) == 0},
		{"cpu_moe_threads", len(d.Threads) == 0}, {"concurrency", len(d.Concurrency) == 0}, {"draft_depths", len(d.Depths) == 0},
	} {
		if axis.empty {
			r.problem(at.get(axis.key), below("defaults", axis.key), "the list is empty")
		}
	}
	for _, m := range d.Methods {
		if !contains(Methods(), m) {
			r.problem(at.get("speculative"), "defaults.speculative", "there is no method %q%s", m, suggest(m, Methods()))
		}
	}
	offloads := slices.ContainsFunc(d.Offload, func(layers int) bool { return layers != 0 })
	if slices.ContainsFunc(d.Threads, func(n int) bool { return n != 0 }) && !offloads {
		r.problem(at.get("cpu_moe_threads"), "defaults.cpu_moe_threads", "threads are for offloaded layers, and none are selected: name some with --n-cpu-moe")
	}
	drafts := slices.ContainsFunc(d.Methods, func(m string) bool { return m != MethodNone })
	if slices.ContainsFunc(d.Depths, func(n int) bool { return n != 0 }) && !drafts {
		r.problem(at.get("draft_depths"), "defaults.draft_depths", "a depth is for a method that drafts, and none is selected: name one with --speculative")
	}
}

// baseline is what the file itself says, before flags.
func (r *resolver) baseline() {
	root := r.root
	if _, flagged := r.in.Flags["thinking"]; flagged {
		file := r.in
		file.Flags = nil
		if below, err := layers(file); err == nil {
			root = below
		}
	}
	var first switchList
	first.bindNode(&binder{}, root.get("defaults").get("thinking"), "")
	if len(first) > 0 {
		r.c.Baseline.Thinking = first[0]
	}
}

func (r *resolver) chooseScenarios() {
	key := "defaults.scenarios"
	names := r.c.library.Expand(uniq(r.doc.Defaults.Scenarios))
	if len(names) == 0 {
		for i := range r.c.Scenarios {
			names = append(names, r.c.Scenarios[i].ID)
		}
		r.silent(key, names)
	}
	for _, id := range names {
		if r.c.scenario(id) == nil {
			s, err := r.describe(id)
			if errors.Is(err, exchange.ErrUsage) {
				r.problem(r.at("scenarios"), key, "there is no scenario %q%s", id, suggest(id, r.scenarioNames()))
				continue
			}
			if err != nil {
				r.problem(r.at("scenarios"), key, "%s: %v", id, err)
				continue
			}
			r.c.Scenarios = append(r.c.Scenarios, s)
		}
		r.c.Defaults.Scenarios = append(r.c.Defaults.Scenarios, id)
	}
}

// silent notes what is selected where the config says nothing: all that the file declares.
func (r *resolver) silent(key string, names []string) {
	r.note(&node{from: origin{source: SourceBuiltin}}, key, strings.Join(names, ","))
}

// at is the node of a default, or the section when it has none.
func (r *resolver) at(name string) *node {
	d := r.root.get("defaults")
	if n := d.get(name); n != nil {
		return n
	}
	return d
}

func (r *resolver) scenarioNames() []string {
	var out []string
	for i := range r.c.Scenarios {
		out = append(out, r.c.Scenarios[i].ID)
	}
	return uniq(append(out, r.c.library.Names()...))
}

func (r *resolver) chooseBackends() {
	names := r.doc.Defaults.Backends
	if len(names) == 0 {
		names = r.fileIDs("backends")
	}
	if len(names) == 0 {
		names = []string{"ggml_cuda"}
	}
	if len(r.doc.Defaults.Backends) == 0 {
		r.silent("defaults.backends", names)
	}
	var words []string
	for i := range r.c.Backends {
		words = append(append(words, r.c.Backends[i].ID), r.c.Backends[i].Aliases...)
	}
	var ids []string
	for _, name := range names {
		b, known := r.c.Backend(name)
		if !known {
			r.problem(r.at("backends"), "defaults.backends", "there is no backend %q%s", name, suggest(name, words))
			continue
		}
		ids = append(ids, b.ID)
	}
	r.c.Defaults.Backends = uniq(ids)
}

func (r *resolver) chooseEngines() {
	names := r.doc.Defaults.Engines
	if len(names) == 0 {
		for i := range r.c.Engines {
			if r.c.Engines[i].Declared {
				names = append(names, r.c.Engines[i].ID)
			}
		}
		r.silent("defaults.engines", names)
	}
	var ids []string
	for _, name := range names {
		id, known := r.engineID(name)
		if !known {
			r.problem(r.at("engines"), "defaults.engines", "there is no engine %q%s", name, suggest(name, engineIDs(r.c)))
			continue
		}
		ids = append(ids, id)
	}
	r.c.Defaults.Engines = uniq(ids)
}

// warn tells of what is accepted and may not be meant.
func (r *resolver) warn() {
	for _, id := range r.c.Defaults.Backends {
		b := r.c.backend(id)
		for _, engine := range slices.Sorted(maps.Keys(b.mappings)) {
			d := b.mappings[engine]
			if d.ServerExe.Env != "" && d.ServerExe.Path == "" {
				r.warnings = append(r.warnings, fmt.Sprintf("backend %s: no build of %s of its own is named (%s); the usual one is taken, and has to be one for it",
					id, engine, d.ServerExe.Env))
			}
		}
	}
	for i := range r.c.Scenarios {
		if s := &r.c.Scenarios[i]; s.Build == "" && contains(r.c.Defaults.Scenarios, s.ID) {
			r.warnings = append(r.warnings, fmt.Sprintf("scenario %s: there is nothing of that name or kind to ask; its cells are skipped", s.ID))
		}
	}
}
