package matrix

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
)

func (r *resolver) models() {
	for _, e := range r.doc.Models {
		d, key := e.doc, below("models", e.id)
		m := Model{
			ID: e.id, Display: cmp.Or(d.Display, e.id), Family: d.Family, Size: d.Size, Diffusion: d.Diffusion, Steps: d.Steps, MTP: d.MTP, MoE: d.MoE,
			MinTP: d.MinTP, MaxTP: d.MaxTP, ImageEdit: d.ImageEdit, Modalities: uniq(append([]string{"text"}, d.Modalities...)),
			Files: ModelFiles{Weights: d.GGUF.Path, Projector: d.MMProj.Path, MTPDraft: d.MTPDraft.Path, Drafter: d.Drafter.Path},
		}
		if r.c.Paths.DiffusionSteps > 0 {
			m.Steps = r.c.Paths.DiffusionSteps
		}
		if d.MaxTP > 0 && d.MaxTP < d.MinTP {
			r.problem(e.line, key, "max_tp %d is below min_tp %d", d.MaxTP, d.MinTP)
		}
		for _, word := range d.Modalities {
			if known := []string{"text", "image", "audio", "video"}; !contains(known, word) {
				r.problem(e.line, key+".modalities", "there is no modality %q%s", word, suggest(word, known))
			}
		}
		source := d.Source
		if source == (sourceDoc{}) {
			source = d.HF
		}
		m.Sources = sources(source, "", []pathDoc{d.GGUF, d.MMProj, d.MTPDraft, d.Drafter})
		r.modelOn(&m, e, source)
		r.c.Models = append(r.c.Models, m)
	}
}

// modelOn takes what an entry says of single engines. Files that it does not name there are those of the entry.
func (r *resolver) modelOn(m *Model, e entry[modelDoc], source sourceDoc) {
	m.Engines = map[string]ModelFiles{}
	for _, name := range slices.Sorted(maps.Keys(e.doc.Engines)) {
		on := e.doc.Engines[name]
		id, known := r.engineID(name)
		if !known {
			r.problem(e.line.get("engines").get(name), below("models", e.id)+".engines", "there is no engine %q%s", name, suggest(name, engineIDs(r.c)))
			continue
		}
		if isFile(on.Name) && on.GGUF.Path == "" && r.takesFiles(id) {
			on.GGUF.Path, on.Name = r.place(e.line, below("models", e.id)+".gguf", on.Name), ""
		}
		f := m.Files
		f.Name = on.Name
		f.Weights = cmp.Or(on.GGUF.Path, f.Weights)
		f.Projector = cmp.Or(on.MMProj.Path, f.Projector)
		f.MTPDraft = cmp.Or(on.MTPDraft.Path, f.MTPDraft)
		f.Drafter = cmp.Or(on.Drafter.Path, f.Drafter)
		m.Engines[id] = f
		if on.Source != (sourceDoc{}) {
			source = on.Source
		}
		m.Sources = append(m.Sources, sources(source, id, []pathDoc{on.GGUF, on.MMProj, on.MTPDraft, on.Drafter})...)
	}
}

// takesFiles reports whether an engine is started with the file of a model.
func (r *resolver) takesFiles(id string) bool {
	e := r.c.engine(id)
	return e != nil && e.Profile.Launch != nil && e.Profile.Launch.ModelFile
}

// isFile reports whether the name of a model is a path.
func isFile(name string) bool { return strings.EqualFold(path.Ext(name), ".gguf") || isAbs(name) }

// roles are what the files of a model are, in the order in which sources takes them.
func roles() []string { return []string{"gguf", "mmproj", "mtp_draft", "drafter"} }

// sources says of each file where it can be had.
func sources(s sourceDoc, engine string, files []pathDoc) []FileSource {
	var out []FileSource
	for i, role := range roles() {
		if f := files[i]; f.Path != "" {
			out = append(out, FileSource{
				Role: role, Engine: engine, Path: f.Path, Repo: cmp.Or(s.HFRepo, s.Repo, s.HF), Revision: s.Revision, Base: cmp.Or(s.BaseURL, s.URL), URL: f.URL,
			})
		}
	}
	return out
}

// filesFor are the files and the name of a model for an engine.
func (m *Model) filesFor(engine string) ModelFiles {
	if f, own := m.Engines[engine]; own {
		return f
	}
	return m.Files
}

// sourceOf finds where a file of the model can be had; ok is false where nobody says.
func (m *Model) sourceOf(path string) (FileSource, bool) {
	for _, s := range m.Sources {
		if s.Path == path && s.Known() {
			return s, true
		}
	}
	return FileSource{}, false
}
