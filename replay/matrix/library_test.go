package matrix

import (
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// scenarios is the library of the scenarios that there are.
type scenarios struct{ m scenario.Materials }

func (scenarios) Names() []string {
	var out []string
	for _, e := range scenario.List() {
		out = append(out, e.Name)
	}
	return out
}

func (scenarios) Expand(names []string) []string { return scenario.Expand(names) }

func (l scenarios) Describe(name string) (Scenario, error) {
	s, err := scenario.Named(name, l.m)
	if errors.Is(err, scenario.ErrNoWindow) || errors.Is(err, scenario.ErrMaterial) {
		return Scenario{Build: name, Turns: 1}, nil
	}
	if err != nil {
		return Scenario{}, err
	}
	limit := s.MaxTokens(scenario.Options{})
	out := Scenario{
		Build: name, Description: s.Summary, Modality: s.Modality, MaxTokens: limit, Turns: s.Turns, Concurrency: s.Streams, Repeats: s.Repeats,
		Prompt: s.Prompt, Version: s.Version, Blocking: s.Blocking, Fixed: s.MaxTokens(scenario.Options{MaxTokens: limit + 1}) == limit,
	}
	if !out.Fixed && limit == 128 {
		out.MaxTokens = 0
	}
	return out, nil
}

// builtinCatalog is read once for all tests; nothing is added to it.
var builtinCatalog = sync.OnceValues(engines.Builtin)

// input is a config file as the program would read it, with variables and flags.
func input(t testing.TB, raw string, vars, flags map[string]string) Input {
	t.Helper()
	catalog, err := builtinCatalog()
	if err != nil {
		t.Fatal(err)
	}
	return Input{
		File: "bench.json", Raw: []byte(raw), Here: "/cfg", RepoRoot: "/repo", Getenv: func(name string) string { return vars[name] }, Flags: flags,
		Catalog: catalog, Library: func([]string) (Library, error) { return scenarios{}, nil },
	}
}

// load reads a config that has to be right.
func load(t testing.TB, raw string, flags map[string]string) *Config {
	t.Helper()
	c, err := Load(input(t, raw, nil, flags))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// loadFile is load of a file of testdata.
func loadFile(t testing.TB, name string, flags map[string]string) *Config {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return load(t, string(raw), flags)
}

// planOf plans a config on a machine that has everything.
func planOf(t testing.TB, c *Config) *Plan {
	t.Helper()
	p, err := NewPlan(c, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
