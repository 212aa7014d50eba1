package matrix

import (
	"fmt"
	"slices"
	"strings"
)

// Check tells what of a config would stop a run, or would make one that is not the one meant, besides what Load refuses:
// files of the selected models that are not there and that nobody says where to have, keys of the environment that cannot
// be set, and engines that nothing can be asked of. exists tells whether a file is there.
func (c *Config) Check(exists func(path string) bool) []string {
	var out []string
	for i := range c.Models {
		m := &c.Models[i]
		if !m.ImageEdit && c.selects(m.ID) {
			out = append(out, c.checkModel(m, exists)...)
		}
	}
	for i := range c.Engines {
		out = append(out, badNames("engine "+c.Engines[i].ID, c.Engines[i].Env)...)
	}
	for i := range c.Backends {
		for id, m := range c.Backends[i].mappings {
			out = append(out, badNames("backend "+c.Backends[i].ID+", "+id, m.Env)...)
		}
	}
	slices.Sort(out)
	return out
}

func (c *Config) selects(model string) bool {
	return slices.ContainsFunc(c.Defaults.Models, func(a Address) bool { return a.Model == model })
}

func (c *Config) checkModel(m *Model, exists func(string) bool) []string {
	var out []string
	for _, s := range m.Sources {
		if !s.Known() && !exists(s.Path) {
			out = append(out, fmt.Sprintf("model %s: its %s %s is not there, and nothing says where it can be had: give the entry a source, or the file a url", m.ID, s.Role, s.Path))
		}
	}
	return out
}

// badNames are the variables that no environment can hold.
func badNames(of string, env map[string]string) []string {
	var out []string
	for name, value := range env {
		if name == "" || isComment(name) || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			out = append(out, fmt.Sprintf("%s: %q is no variable that an environment can hold", of, name))
		}
	}
	return out
}
