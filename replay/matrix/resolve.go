package matrix

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
)

// resolver makes a Config of a document.
type resolver struct {
	*binder
	in   Input
	root *node
	doc  *document
	c    *Config
}

func (r *resolver) paths() {
	p := r.doc.Paths
	r.c.Paths = Paths{
		ModelRoot: p.ModelRoot.Path, QATDir: p.QATDir.Path, Results: p.Results.Path, TensorSharpDLL: p.DLL.Path, LlamaServer: p.LlamaExe.Path,
		VLLMURL: p.VLLM, Image: p.Media.Image.Path, Audio: p.Media.Audio.Path, Video: p.Media.Video.Path, TensorSharpPort: p.TSPort,
		LlamaPort: p.LlamaPort, DiffusionSteps: p.DiffusionSteps,
	}
	r.c.Llama = Llama{Context: r.doc.Llama.Context, Args: r.doc.Llama.Args}
	r.c.ReadyS = map[string]int{"small": r.doc.Ready.Small, "medium": r.doc.Ready.Medium, "large": r.doc.Ready.Large}
	if len(r.doc.Profiles) > 0 {
		r.c.Profiles = map[string]json.RawMessage{}
		for id, raw := range r.doc.Profiles {
			r.c.Profiles[id] = json.RawMessage(raw)
		}
	}
}

// engines are those of the file, and behind them those of the catalog: the three of TensorSharp's comparison first.
func (r *resolver) engines() {
	for _, e := range r.doc.Engines {
		r.engine(e.id, e.doc, e.line, true)
	}
	rest := r.c.Catalog.Profiles()
	first := []string{"tensorsharp", "llamacpp", "vllm"}
	slices.SortStableFunc(rest, func(a, b engines.Profile) int {
		return cmp.Compare(rank(first, a.ID), rank(first, b.ID))
	})
	for _, p := range rest {
		if r.c.engine(p.ID) == nil {
			r.engine(p.ID, engineDoc{}, r.root, false)
		}
	}
}

func rank(first []string, id string) int {
	if i := slices.Index(first, id); i >= 0 {
		return i
	}
	return len(first)
}

func (r *resolver) engine(id string, d engineDoc, at *node, declared bool) {
	key := below("engines", id)
	profile, known := r.c.Catalog.Lookup(cmp.Or(d.Profile, id))
	if !known && d.Profile == "" && d.URL.URL != "" {
		profile, known = r.c.Catalog.Lookup("generic")
	}
	if !known {
		r.problem(at, key, "there is no engine %q in the catalog%s; or give it a url, or say which profile it has",
			cmp.Or(d.Profile, id), suggest(cmp.Or(d.Profile, id), profileIDs(r.c.Catalog)))
		return
	}
	if profile.Launch == nil && profile.Kind != engines.KindHosted && d.Program.Path != "" && d.Transport != TransportConnect {
		profile.Launch = engines.OwnLaunch(d.Program.Path, nil) // its args are the whole command line
	}
	e := Engine{
		ID: id, Display: cmp.Or(d.Display, profile.Name), Profile: profile, Transport: d.Transport, Backends: d.Backends, URL: d.URL.URL,
		Program: d.Program.Path, File: d.File.Path, Port: d.Port, Args: d.Args, Env: d.Env, Slots: d.Slots, Context: d.Context, Declared: declared,
		Access: Access{KeyEnv: d.KeyEnv, KeyFile: d.KeyFile.Path, Headers: d.Headers, Dialect: d.Dialect},
	}
	r.enginePlaces(&e)
	if e.Transport == "" {
		e.Transport = TransportConnect
		if e.URL == "" && profile.Launch != nil {
			e.Transport = TransportServer
		}
	}
	switch {
	case e.Transport == TransportServer && profile.Launch == nil:
		r.problem(at, key, "%s cannot be launched: its profile has no launch section; name its program, or set transport to connect and give its url", id)
	case e.Transport == TransportServer:
		e.URL = ""
	case e.URL != "" && !absoluteURL(e.URL) && !strings.HasPrefix(e.URL, "unix:/"):
		r.problem(at, key, "the url %q is not http://, https:// or unix:/socket", e.URL)
	}
	if e.Access.KeyEnv != "" && e.Access.KeyFile != "" {
		r.problem(at, key, "key_env and key_file exclude each other")
	}
	r.c.Engines = append(r.c.Engines, e)
}

// enginePlaces takes what the section paths says of the three engines that have their places there.
func (r *resolver) enginePlaces(e *Engine) {
	p := r.c.Paths
	switch {
	case e.is("tensorsharp"):
		e.File = cmp.Or(e.File, p.TensorSharpDLL)
		e.Port = cmp.Or(e.Port, p.TensorSharpPort)
	case e.is("llamacpp"):
		e.Program = cmp.Or(e.Program, p.LlamaServer)
		e.Port = cmp.Or(e.Port, p.LlamaPort)
	case e.is("vllm") && e.Transport != TransportServer:
		e.URL = cmp.Or(e.URL, p.VLLMURL)
	}
}

func profileIDs(c *engines.Catalog) []string {
	var out []string
	for _, p := range c.Profiles() {
		out = append(out, p.ID)
	}
	return out
}

// engineID is the id of the config for a word that a backend or a model uses as a key.
func (r *resolver) engineID(name string) (string, bool) {
	if e := r.c.engine(name); e != nil {
		return e.ID, true
	}
	for i := range r.c.Engines {
		e := &r.c.Engines[i]
		if strings.EqualFold(e.ID, name) {
			return e.ID, true
		}
	}
	p, known := r.c.Catalog.Lookup(name)
	if !known {
		return "", false
	}
	for i := range r.c.Engines {
		if r.c.Engines[i].ID == p.ID {
			return p.ID, true
		}
	}
	return "", false
}

func engineIDs(c *Config) []string {
	var out []string
	for i := range c.Engines {
		out = append(out, c.Engines[i].ID)
	}
	return out
}

func (r *resolver) backends() {
	declared := r.fileIDs("backends")
	for _, e := range r.doc.Backends {
		b := Backend{
			ID: e.id, Display: cmp.Or(e.doc.Display, e.id), Kind: e.doc.Kind, Aliases: e.doc.Aliases, DevicesEnv: e.doc.DevicesEnv,
			Declared: contains(declared, e.id), mappings: map[string]mappingDoc{},
		}
		for name, m := range e.doc.mappings {
			id, known := r.engineID(name)
			if !known {
				continue // it was a problem of the engine
			}
			if _, twice := b.mappings[id]; twice {
				r.problem(e.line, below("backends", e.id), "two keys mean the engine %s", id)
			}
			b.mappings[id] = m
		}
		r.c.Backends = append(r.c.Backends, b)
	}
	r.aliases()
	r.restrictions()
}

// fileIDs are the entries of a registry that the file mentions.
func (r *resolver) fileIDs(registry string) []string {
	var out []string
	n := r.root.get(registry)
	for _, id := range n.ids() {
		if n.get(id).from.source == SourceFile {
			out = append(out, id)
		}
	}
	return out
}

// aliases takes from built-in backends the names that the file gives to others, and refuses a name that is given twice.
func (r *resolver) aliases() {
	owner := map[string]string{}
	for _, declared := range []bool{true, false} {
		for i := range r.c.Backends {
			b := &r.c.Backends[i]
			if b.Declared != declared {
				continue
			}
			var kept []string
			for _, a := range b.Aliases {
				other := owner[strings.ToLower(a)]
				named := find(r.c.Backends, func(o *Backend) bool { return strings.EqualFold(o.ID, a) && o.ID != b.ID })
				switch {
				case other == "" && named == nil:
					owner[strings.ToLower(a)] = b.ID
					kept = append(kept, a)
				case declared:
					r.problem(r.root.get("backends").get(b.ID), below("backends", b.ID), "the alias %q is another backend's name", a)
				}
			}
			b.Aliases = kept
		}
	}
}

// restrictions checks the backends that engines are kept to.
func (r *resolver) restrictions() {
	words := append(backendIDs(r.c), engines.KindGPU, engines.KindCPU)
	for i := range r.c.Engines {
		e := &r.c.Engines[i]
		for j, name := range e.Backends {
			if contains(words, name) {
				continue
			}
			if b, known := r.c.Backend(name); known {
				e.Backends[j] = b.ID
				continue
			}
			r.problem(r.root.get("engines").get(e.ID), below("engines", e.ID)+".backends", "there is no backend %q%s", name, suggest(name, words))
		}
	}
}

func backendIDs(c *Config) []string {
	var out []string
	for i := range c.Backends {
		out = append(out, c.Backends[i].ID)
	}
	return out
}

// Backend finds a backend: by its id exactly, else without case, else by an alias.
func (c *Config) Backend(name string) (*Backend, bool) {
	for _, is := range []func(*Backend) bool{
		func(b *Backend) bool { return b.ID == name },
		func(b *Backend) bool { return strings.EqualFold(b.ID, name) },
		func(b *Backend) bool {
			return slices.ContainsFunc(b.Aliases, func(a string) bool { return strings.EqualFold(a, name) })
		},
	} {
		if b := find(c.Backends, is); b != nil {
			return b, true
		}
	}
	return nil, false
}
