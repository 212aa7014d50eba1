package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/benchproxy/benchproxy/gates"
	"github.com/benchproxy/benchproxy/replay/matrix"
	"github.com/benchproxy/benchproxy/replay/scenario"
)

// scenarioLibrary tells the plan of a benchmark what is known of scenarios.
type scenarioLibrary struct{ materials scenario.Materials }

// openLibrary knows the built-in scenarios and those of the user's files.
func openLibrary(files []string) (matrix.Library, error) {
	own, err := ownScenarios(files)
	if err != nil {
		return nil, err
	}
	return scenarioLibrary{scenario.Materials{Own: own}}, nil
}

// ownScenarios reads files of scenarios of the user's.
func ownScenarios(files []string) ([]scenario.Scenario, error) {
	var out []scenario.Scenario
	seen := map[string]string{}
	for _, name := range files {
		f, err := os.Open(filepath.Clean(name))
		if err != nil {
			return nil, usagef("read scenarios: %v", err)
		}
		read, err := scenario.ReadOwn(f, gates.Validate)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, s := range read {
			if other, taken := seen[s.ID]; taken {
				return nil, usagef("%s and %s both have a scenario %q", other, name, s.ID)
			}
			seen[s.ID] = name
		}
		out = append(out, read...)
	}
	return out, nil
}

// Names lists the scenarios, those of the user's first.
func (l scenarioLibrary) Names() []string {
	var out []string
	for _, s := range l.materials.Own {
		out = append(out, s.ID)
	}
	for _, e := range scenario.List() {
		out = append(out, e.Name)
	}
	return out
}

// Expand puts what stands for several scenarios in its place.
func (scenarioLibrary) Expand(names []string) []string { return scenario.Expand(names) }

// Describe is what a plan has to know of a scenario. One that is sized by the window of an engine, or shows a file of the
// user's, is made when that is at hand.
func (l scenarioLibrary) Describe(name string) (matrix.Scenario, error) {
	s, err := scenario.Named(name, l.materials)
	if errors.Is(err, scenario.ErrNoWindow) || errors.Is(err, scenario.ErrMaterial) {
		return matrix.Scenario{Build: name, Turns: 1}, nil
	}
	if err != nil {
		return matrix.Scenario{}, err
	}
	out := matrix.Scenario{
		Build: name, Description: s.Summary, Modality: s.Modality, MaxTokens: s.Limit(), Turns: s.Turns, Concurrency: s.Streams, Repeats: s.Repeats,
		Prompt: s.Prompt, Version: s.Version, Digest: s.Line, Blocking: s.Blocking, Fixed: s.Fixed(),
	}
	if s.Alone {
		out.Concurrency = 1
	}
	return out, nil
}
