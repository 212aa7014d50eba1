package matrix

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

//go:embed builtin.json
var builtinFile []byte

// Input is what a config is resolved from.
type Input struct {
	File     string // name of the file, for messages; "" = there is none
	Raw      []byte // its content
	Here     string // directory of the file: ${here}
	RepoRoot string // directory of the repository that it is in: ${repo_root}
	Getenv   func(string) string
	Flags    map[string]string // name of a flag, see Flags -> its text
	Catalog  *engines.Catalog  // of engines, without the profiles of the file
	// Library knows the scenarios, the user's in files among them.
	Library func(files []string) (Library, error)
}

// ReadInput reads a config file and finds out where it is. An empty path reads nothing: ${here} is dir then.
func ReadInput(path, dir string) (Input, error) {
	in := Input{File: path, Here: dir}
	if path != "" {
		raw, err := readConfig(filepath.Clean(path))
		if err != nil {
			return in, fmt.Errorf("read config: %w: %w", exchange.ErrUsage, err)
		}
		if in.Here, err = filepath.Abs(filepath.Dir(path)); err != nil {
			return in, fmt.Errorf("read config: %w", err)
		}
		in.Raw = raw
	}
	in.RepoRoot = repoRoot(in.Here)
	return in, nil
}

// mostConfig is how long a config may be, in bytes.
const mostConfig = 16 << 20

// readConfig reads a file. What is none, a pipe or a device, could give bytes without end, or none at all.
func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", path)
	case info.Size() > mostConfig:
		return nil, fmt.Errorf("%s has %d bytes, and a config has at most %d", path, info.Size(), mostConfig)
	}
	return os.ReadFile(path)
}

// repoRoot is the nearest directory above that holds a repository; dir itself when there is none.
func repoRoot(dir string) string {
	for d := dir; ; {
		if _, err := os.Stat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		up := filepath.Dir(d)
		if up == d {
			return dir
		}
		d = up
	}
}

// Load resolves a config. The error wraps exchange.ErrUsage and tells of everything that is wrong, with the lines.
func Load(in Input) (*Config, error) {
	if in.Getenv == nil {
		in.Getenv = func(string) string { return "" }
	}
	root, err := layers(in)
	if err != nil {
		return nil, fmt.Errorf("read config: %w: %w", exchange.ErrUsage, err)
	}
	b := &binder{getenv: in.Getenv, vars: map[string]string{"here": in.Here, "repo_root": in.RepoRoot}, here: in.Here}
	catalog, err := withProfiles(b, in.Catalog, root)
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	b.engines = engineWords(catalog, root.get("engines"))
	var doc document
	b.bind(root, reflect.ValueOf(&doc).Elem(), "")
	if err := b.err(); err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	r := resolver{binder: b, in: in, root: root, doc: &doc, c: &Config{File: in.File, Catalog: catalog}}
	for _, step := range []func(){r.paths, r.engines, r.backends, r.models, r.library, r.scenarios, r.defaults, r.warn} {
		step()
	}
	if err := b.err(); err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	r.c.Settings, r.c.Warnings = b.settings, b.warnings
	return r.c, nil
}

// layers is the built-in config with the file, the environment and the flags laid over it.
func layers(in Input) (*node, error) {
	root, err := parseNode(builtinFile, origin{source: SourceBuiltin})
	if err != nil {
		return nil, err
	}
	if in.File != "" || len(in.Raw) > 0 {
		file, err := parseNode(in.Raw, origin{source: SourceFile, name: in.File})
		if err != nil {
			return nil, err
		}
		if file.kind != objectNode {
			return nil, fmt.Errorf("%s is %s and has to be an object", file.at(), file.kind)
		}
		modernize(file, root)
		root = merge(root, file, registryKeys)
	}
	for _, v := range variables() {
		if text := in.Getenv(v.name); text != "" {
			put(root, v.key, &node{kind: stringNode, text: text, from: origin{SourceEnv, v.name}})
		}
	}
	for _, f := range Flags() {
		if text, given := in.Flags[f.Name]; given {
			put(root, f.key, &node{kind: stringNode, text: text, from: origin{SourceFlag, "--" + f.Name}})
		}
	}
	for name := range in.Flags {
		if !slices.ContainsFunc(Flags(), func(f Flag) bool { return f.Name == name }) {
			return nil, fmt.Errorf("there is no flag --%s of a config", name)
		}
	}
	return root, nil
}

// put sets the value at a dotted key.
func put(root *node, key string, value *node) {
	parts := strings.Split(key, ".")
	for _, p := range parts[:len(parts)-1] {
		root = root.member(p)
	}
	root.set(parts[len(parts)-1], value)
}

// modernize turns the older form of backends, a list of ids with maps beside it, into a registry.
func modernize(file, builtin *node) {
	list := file.get("backends")
	if list == nil || list.kind != arrayNode {
		return
	}
	from := func(maps, id string) *node {
		own, standard := file.get("maps").get(maps), builtin.get("maps").get(maps)
		if own != nil {
			return own.get(id)
		}
		return standard.get(id)
	}
	registry := &node{kind: objectNode, from: list.from, line: list.line}
	for _, item := range list.items {
		id := item.text
		entry := &node{kind: objectNode, from: item.from, line: item.line}
		word := func(kind nodeKind, text string) *node {
			return &node{kind: kind, text: text, from: item.from, line: item.line}
		}
		kind := engines.KindGPU
		if strings.EqualFold(id, engines.KindCPU) {
			kind = engines.KindCPU
		}
		entry.set("kind", word(stringNode, kind))
		if n := from("tensorsharp_backend", id); n != nil {
			entry.set("tensorsharp", n)
		}
		if n := from("llama_ngl", id); n != nil {
			entry.set("llamacpp", n)
		}
		entry.set("vllm", word(boolNode, fmt.Sprint(kind == engines.KindGPU)))
		registry.set(id, entry)
	}
	file.set("backends", registry)
}

// withProfiles is the catalog with the profiles of the file laid over it.
func withProfiles(b *binder, catalog *engines.Catalog, root *node) (*engines.Catalog, error) {
	profiles := root.get("profiles")
	if profiles == nil {
		return catalog, nil
	}
	fresh, err := engines.Builtin()
	if err != nil {
		return nil, err
	}
	for _, id := range profiles.ids() {
		var raw rawDoc
		raw.bindNode(b, profiles.get(id), below("profiles", id))
		if err := fresh.Override(id, []byte(raw)); err != nil {
			return nil, err
		}
	}
	b.settings = nil // they are read again with the rest
	return fresh, nil
}

// engineWords are the ids and aliases of engines that may stand as keys.
func engineWords(catalog *engines.Catalog, registry *node) []string {
	out := registry.ids()
	for _, p := range catalog.Profiles() {
		out = append(append(out, p.ID), p.Aliases...)
	}
	return uniq(out)
}

// placeholders are the keys whose values may stand in paths.
var placeholders = map[string]string{"paths.model_root": "model_root", "paths.gemma4_qat_dir": "gemma4_qat_dir"}

var placeholder = regexp.MustCompile(`\$\{([^}]*)\}`)

// place is a path of the config as a path of this machine. Names of programs, which have no separator, and what was not
// written in the file, stay as they are.
func (b *binder) place(n *node, key, path string) string {
	if !n.from.written() {
		return path
	}
	out := placeholder.ReplaceAllStringFunc(path, func(m string) string {
		value, known := b.vars[m[2:len(m)-1]]
		if !known {
			b.problem(n, key, "%s", unknownPlace(key, m))
		}
		return value
	})
	if out == "" || isAbs(out) || isProgram(key) && !strings.ContainsAny(out, `/\`) {
		return out
	}
	return filepath.Join(b.here, out)
}

// unknownPlace is why a placeholder in the value of a key stands for nothing.
func unknownPlace(key, m string) string {
	for of, name := range placeholders {
		switch {
		case m != "${"+name+"}":
		case of == key:
			return fmt.Sprintf("%s stands for the value of this very key, and cannot be a part of it", m)
		default:
			return fmt.Sprintf("%s stands for %s, which the config does not set, or not before this key", m, of)
		}
	}
	return "there is no " + m + suggest(m, []string{"${here}", "${repo_root}", "${model_root}", "${gemma4_qat_dir}"})
}

// isProgram reports whether a path at a key may be a name that is looked up among the programs of the machine.
func isProgram(key string) bool {
	return strings.HasSuffix(key, "_exe") || strings.HasSuffix(key, ".program")
}

var driveLetter = regexp.MustCompile(`^[A-Za-z]:[\\/]`)

// isAbs also knows the paths of another system, which a config may hold for it.
func isAbs(path string) bool {
	return filepath.IsAbs(path) || strings.HasPrefix(path, "/") || driveLetter.MatchString(path)
}

// variable is an environment variable; "" for no name.
func (b *binder) variable(name string) string {
	if name == "" {
		return ""
	}
	return b.getenv(name)
}

func absoluteURL(s string) bool {
	return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://")
}
