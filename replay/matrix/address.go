package matrix

import (
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
)

// Installed stands for every model that an engine lists, minus those that it only passes on to another.
const Installed = "installed"

// chooseModels reads the models of the run: ids, engine:model, and installed.
func (r *resolver) chooseModels() {
	names := r.doc.Defaults.Models
	if len(names) == 0 {
		for i := range r.c.Models {
			names = append(names, r.c.Models[i].ID)
		}
		r.silent("defaults.models", names)
	}
	var out []Address
	for _, name := range names {
		a, ok := r.address(name)
		if !ok {
			r.problem(r.at("models"), "defaults.models", "there is no model %q%s; or name one of an engine's as ENGINE:MODEL", name, suggest(name, modelIDs(r.c)))
			continue
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	free := slices.ContainsFunc(out, func(a Address) bool { return a.Engine == "" })
	if free && len(r.c.Defaults.Engines) == 0 {
		r.problem(r.at("engines"), "defaults.engines", "no engine is selected")
	}
	r.c.Defaults.Models = out
}

// address is what one word of the models means. A model of an engine that the registry does not have is added to it.
func (r *resolver) address(name string) (Address, bool) {
	if name == Installed || r.c.model(name) != nil {
		return Address{Model: name}, true
	}
	prefix, rest, cut := strings.Cut(name, ":")
	if !cut || rest == "" {
		return Address{}, false
	}
	engine, known := r.engineID(prefix)
	if !known {
		return Address{}, false
	}
	if rest == Installed || r.c.model(rest) != nil {
		return Address{Engine: engine, Model: rest}, true
	}
	m := adHoc(rest)
	if r.takesFiles(engine) {
		if !isFile(rest) {
			return Address{}, false
		}
		m.Files.Weights = rest
	} else {
		m.Engines[engine] = ModelFiles{Name: rest}
	}
	r.c.Models = append(r.c.Models, m)
	return Address{Engine: engine, Model: m.ID}, true
}

// adHoc is a model of which nothing is known but its name.
func adHoc(name string) Model {
	return Model{ID: name, Display: name, Modalities: []string{"text"}, Size: "medium", Engines: map[string]ModelFiles{}, MinTP: 1}
}

func modelIDs(c *Config) []string {
	var out []string
	for i := range c.Models {
		out = append(out, c.Models[i].ID)
	}
	return out
}

// Listed is an entry of what an engine says that it serves.
type Listed struct {
	ID      string
	OwnedBy string
}

// InstalledOf are the models of a listing that are the engine's own: those that a front only passes on to another engine
// are measured there, and left out unless somebody names them.
func InstalledOf(p engines.Profile, listed []Listed, all []engines.Profile) []string {
	var out []string
	for _, l := range listed {
		if p.Kind != engines.KindFront || !passedOn(p, l, all) {
			out = append(out, l.ID)
		}
	}
	return uniq(out)
}

// passedOn reports whether an entry of a front's listing is a model of another engine, one with a server of its own.
func passedOn(front engines.Profile, l Listed, all []engines.Profile) bool {
	for _, p := range all {
		if p.ID == front.ID || p.Launch == nil {
			continue
		}
		for _, prefix := range p.Recognize.Prefixes {
			if strings.HasPrefix(l.ID, prefix) {
				return true
			}
		}
		for _, owner := range p.Recognize.Behind {
			if strings.EqualFold(l.OwnedBy, owner) {
				return true
			}
		}
	}
	return false
}
