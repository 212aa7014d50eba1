package matrix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// PlanOptions are what a plan depends on besides its config.
type PlanOptions struct {
	// Exists and Program tell of a file, and of a program by its path or name, whether it is there. nil takes all for there.
	Exists, Program func(name string) bool
	// Listed are what engines say that they serve, by their ids in the config; needed only for installed.
	Listed map[string][]Listed
	// Results are what there is of earlier sittings, by the names of cells; see Resume.
	Results map[string]Earlier
	Resume  Resume
	// Server looks at what a group would be measured on now; nil where that cannot be had. It is asked once a group of which
	// a result would be kept. A nil function looks at nothing.
	Server func(*Group) *Server
}

// NewPlan plans the matrix of a config: every combination of what is selected, with those that cannot run skipped. The
// error wraps exchange.ErrUsage.
func NewPlan(c *Config, o PlanOptions) (*Plan, error) {
	if o.Exists == nil {
		o.Exists = func(string) bool { return true }
	}
	if o.Program == nil {
		o.Program = func(string) bool { return true }
	}
	b := builder{c: c, o: o, plan: &Plan{Schema: PlanVersion}}
	pairs, err := b.pairs()
	if err != nil {
		return nil, fmt.Errorf("plan matrix: %w", err)
	}
	for _, pair := range pairs {
		b.launches(pair)
	}
	if len(b.plan.Groups) == 0 {
		return nil, fmt.Errorf("plan matrix: %w: nothing is selected; name engines, models and scenarios", exchange.ErrUsage)
	}
	b.seal()
	if err := b.plan.distinct(); err != nil {
		return nil, fmt.Errorf("plan matrix: %w", err)
	}
	b.plan.resume(o.Resume, o.Results, o.Server)
	b.plan.steps(c.Defaults.Order)
	return b.plan, nil
}

// builder makes the groups of a plan.
type builder struct {
	c    *Config
	o    PlanOptions
	plan *Plan
}

// pair is a model on an engine on a backend.
type pair struct {
	engine  *Engine
	backend *Backend
	model   *Model
}

// pairs are in the order of engines, backends and models. Engines that only single models are addressed at stand behind
// those of the run.
func (b *builder) pairs() ([]pair, error) {
	d := b.c.Defaults
	ids := slices.Clone(d.Engines)
	if !slices.ContainsFunc(d.Models, func(a Address) bool { return a.Engine == "" }) {
		ids = nil
	}
	for _, a := range d.Models {
		if a.Engine != "" && !contains(ids, a.Engine) {
			ids = append(ids, a.Engine)
		}
	}
	var out []pair
	for _, id := range ids {
		e := b.c.engine(id)
		models, err := b.modelsOf(e)
		if err != nil {
			return nil, err
		}
		for _, name := range d.Backends {
			for _, m := range models {
				out = append(out, pair{e, b.c.backend(name), m})
			}
		}
	}
	return out, nil
}

// modelsOf are the models that are asked of an engine.
func (b *builder) modelsOf(e *Engine) ([]*Model, error) {
	var ids []string
	for _, a := range b.c.Defaults.Models {
		switch {
		case a.Engine != e.ID && (a.Engine != "" || !contains(b.c.Defaults.Engines, e.ID)):
		case a.Model == Installed:
			installed, err := b.installed(e)
			if err != nil {
				return nil, err
			}
			ids = append(ids, installed...)
		default:
			ids = append(ids, a.Model)
		}
	}
	var out []*Model
	for _, id := range uniq(ids) {
		m := b.c.model(id)
		if m == nil {
			added := adHoc(id)
			added.Engines[e.ID] = ModelFiles{Name: id}
			m = &added
		}
		out = append(out, m)
	}
	return out, nil
}

// installed are the models of the registry whose files are there, for an engine that takes files, and what it lists, for
// every other.
func (b *builder) installed(e *Engine) ([]string, error) {
	if l := e.Profile.Launch; l != nil && l.ModelFile && e.Transport == TransportServer {
		var out []string
		for i := range b.c.Models {
			m := &b.c.Models[i]
			if f := m.filesFor(e.ID); f.Weights != "" && b.o.Exists(f.Weights) {
				out = append(out, m.ID)
			}
		}
		return out, nil
	}
	listed, known := b.o.Listed[e.ID]
	if !known {
		return nil, fmt.Errorf("%w: what is installed on %s is not known: it does not answer, or was not asked", exchange.ErrUnreachable, e.ID)
	}
	names := InstalledOf(e.Profile, listed, b.c.Catalog.Profiles())
	for i, name := range names {
		own := find(b.c.Models, func(m *Model) bool { f, on := m.Engines[e.ID]; return on && f.Name == name })
		if own != nil {
			names[i] = own.ID
		}
	}
	return names, nil
}

// launches makes the groups of a pair: one for each point of the axes that a launch decides on.
func (b *builder) launches(p pair) {
	d := b.c.Defaults
	for _, mtp := range d.MTP {
		for _, tp := range d.TP {
			for _, offload := range offloadPoints(d.Offload, d.Threads) {
				for _, draft := range draftPoints(d.Methods, d.Depths) {
					for _, device := range orNone(d.Devices) {
						b.launch(p, Axes{
							Engine: p.engine.ID, Backend: p.backend.ID, Model: p.model.ID, MTP: mtp, TP: tp, CPUMoELayers: offload[0],
							CPUMoEThreads: offload[1], Method: draft.method, Depth: draft.depth, Device: device,
						})
					}
				}
			}
		}
	}
}

// offloadPoints are the pairs of layers and threads. Without offloaded layers no thread works on them, so that point is
// one however many numbers of threads there are; all layers come last.
func offloadPoints(layers, threads []int) [][2]int {
	var out [][2]int
	for _, all := range []bool{false, true} {
		for _, n := range layers {
			switch {
			case (n == AllLayers) != all:
			case n == 0:
				out = append(out, [2]int{0, 0})
			default:
				for _, t := range threads {
					out = append(out, [2]int{n, t})
				}
			}
		}
	}
	return out
}

type draftPoint struct {
	method string
	depth  int
}

// draftPoints are the pairs of method and depth. Without drafts there is no depth.
func draftPoints(methods []string, depths []int) []draftPoint {
	var out []draftPoint
	for _, m := range orNone(methods) {
		if m == "" || m == MethodNone {
			out = append(out, draftPoint{method: m})
			continue
		}
		for _, depth := range depths {
			out = append(out, draftPoint{m, depth})
		}
	}
	return out
}

// orNone is a list, or the one empty word of an axis that is not used.
func orNone(words []string) []string {
	if len(words) == 0 {
		return []string{""}
	}
	return words
}

// launch makes one group with its cells.
func (b *builder) launch(p pair, axes Axes) {
	m, unmapped := b.c.mapping(p.engine, p.backend)
	g := Group{Axes: axes, Name: axes.GroupName()}
	skip := b.groupSkip(p, axes, &m, unmapped)
	for _, id := range b.c.Defaults.Scenarios {
		s := b.c.scenario(id)
		for _, thinking := range b.c.Defaults.Thinking {
			for _, n := range concurrencies(s, b.c.Defaults.Concurrency) {
				g.Cells = append(g.Cells, b.cell(p, axes, s, thinking, n))
			}
		}
	}
	for i := range g.Cells {
		cell := &g.Cells[i]
		if cell.Skip = skip; cell.Skip == nil {
			cell.Skip = b.cellSkip(p, cell)
		}
		if cell.Do = DoRun; cell.Skip != nil {
			cell.Do = DoSkip
		}
	}
	g.Launch = b.launchOf(p, axes, &m, g.Cells)
	b.plan.Groups = append(b.plan.Groups, g)
}

func concurrencies(s *Scenario, all []int) []int {
	if s.Concurrency > 0 {
		return []int{s.Concurrency}
	}
	return all
}

func (b *builder) cell(p pair, axes Axes, s *Scenario, thinking bool, concurrency int) Cell {
	word := ""
	if thinking != b.c.Baseline.Thinking {
		word = map[bool]string{true: "think", false: "nothink"}[thinking]
	}
	limit := or(s.MaxTokens, b.c.Defaults.MaxTokens)
	if thinking && !s.Fixed {
		limit = max(limit, b.c.Defaults.ThinkingMax)
	}
	return Cell{
		Axes: axes, Scenario: s.ID, Concurrency: concurrency, Thinking: thinking, MaxTokens: limit,
		Stream: !s.Blocking && !p.model.Diffusion, Repeats: max(b.c.Defaults.Repeats, s.Repeats), Warmup: b.c.Defaults.Warmup,
		Build: s.Build, Version: s.Version, Name: axes.CellName(s.ID, concurrency, word),
	}
}

// launchOf says what the server of a group is started with, for the cells that are to run on it.
func (b *builder) launchOf(p pair, axes Axes, m *mapping, cells []Cell) Launch {
	e := p.engine
	files := p.model.filesFor(e.ID)
	l := Launch{
		Profile: e.Profile.ID, Transport: e.Transport, URL: e.URL, Access: e.Access, Model: files, Class: p.model.Size,
		ReadyS: b.c.ReadyS[p.model.Size], Registry: m.registry, Steps: diffusionSteps(p.model),
	}
	if e.Transport == TransportConnect {
		return l
	}
	l.Program, l.File, l.Port = or(m.program, e.Program), e.File, e.Port
	l.Spelling = m.spelling
	l.Devices = b.devices(axes.TP)
	l.CPUMoE = ""
	if axes.CPUMoELayers != 0 {
		l.CPUMoE = layersWord(axes.CPUMoELayers)
	}
	if axes.TP > 1 {
		l.SplitMode = m.split
	}
	l.Draft, l.Drafter = axes.Method, drafter(axes.Method, files)
	if axes.MTP {
		l.Draft, l.Drafter = MethodMTP, files.MTPDraft
	}
	l.Slots = b.slots(e, cells)
	l.Window = b.window(e, cells, l.Slots)
	l.MaxTokens = b.serverMax(cells)
	l.LogFile = "logs/" + axes.GroupName() + ".log"
	return l
}

func diffusionSteps(m *Model) int {
	if m.Diffusion {
		return m.Steps
	}
	return 0
}

// drafter is the file that drafts by a method.
func drafter(method string, f ModelFiles) string {
	switch {
	case needsDrafter(method):
		return f.Drafter
	case method == MethodMTP:
		return f.MTPDraft
	}
	return ""
}

// devices are the first ones of the pool. Without a pool nothing is pinned.
func (b *builder) devices(tp int) []string {
	pool := b.c.Defaults.TPDevices
	return slices.Clone(pool[:min(tp, len(pool))])
}

// slots are as many requests as run together, unless the config says otherwise.
func (b *builder) slots(e *Engine, cells []Cell) int {
	if l := e.Profile.Launch; !l.Does(engines.AxisSlots) {
		return 0
	}
	n := 1
	for i := range cells {
		if cells[i].Do == DoRun {
			n = max(n, cells[i].Concurrency)
		}
	}
	return or(e.Slots, n)
}

// serverMax is the bound that a server puts on answers: at least what the cells ask for.
func (b *builder) serverMax(cells []Cell) int {
	n := b.c.Defaults.ServerMax
	for i := range cells {
		if cells[i].Do == DoRun {
			n = max(n, cells[i].MaxTokens)
		}
	}
	return n
}

// distinct refuses a plan in which two cells would write one file, on systems too that do not tell case.
func (p *Plan) distinct() error {
	seen := map[string]string{}
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			name := p.Groups[i].Cells[j].Name
			if other, taken := seen[strings.ToLower(name)]; taken {
				return fmt.Errorf("%w: the cells %s and %s would write the same file; give the entries ids that differ by more than case", exchange.ErrUsage, other, name)
			}
			seen[strings.ToLower(name)] = name
		}
	}
	return nil
}

// plural counts things in words.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + one + "s"
}
