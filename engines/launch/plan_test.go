package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/strict"
)

// planVector is a launch and the command line that comes of it.
type planVector struct {
	Name     string              `json:"name"`
	Options  Options             `json:"options"`
	Registry *engines.Backend    `json:"registry"` // see Options
	Spelling []engines.LaunchArg `json:"spelling"`
	Argv     []string            `json:"argv"` // one word each, or several between blanks
	Env      []string            `json:"env"`
	Dir      string              `json:"dir"`
	Asked    string              `json:"asked"`
	Refused  string              `json:"refused"` // a part of the reason, instead of a command line
	Usage    bool                `json:"usage"`   // it is refused as a wrong use, not as unsupported
}

// TestPlans holds the command line of every engine, backend and axis against testdata/plans/ENGINE.json.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no vectors: %v", err)
	}
	launched := map[string]bool{}
	for _, file := range files {
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		launched[id] = true
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var vectors []planVector
		if err := strict.Decode(raw, &vectors, ""); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(vectors) == 0 {
			t.Errorf("%s holds nothing", file)
		}
		for _, v := range vectors {
			t.Run(id+"/"+v.Name, func(t *testing.T) { v.check(t, profile(t, id)) })
		}
	}
	catalog, err := engines.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range catalog.Profiles() {
		if p.Launch != nil && !launched[p.ID] {
			t.Errorf("%s is launched, and has no vectors", p.ID)
		}
	}
}

func (v planVector) check(t *testing.T, p engines.Profile) {
	v.Options.Registry, v.Options.Spelling = v.Registry, v.Spelling
	s, err := Plan(p, v.Options)
	if v.Refused != "" {
		kind := ErrUnsupported
		if v.Usage {
			kind = exchange.ErrUsage
		}
		if err == nil || !strings.Contains(err.Error(), v.Refused) || !errors.Is(err, kind) {
			t.Errorf("got %v, want %v with %q", err, kind, v.Refused)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, w := range v.Argv {
		want = append(want, strings.Fields(w)...)
	}
	if diff := cmp.Diff(want, append([]string{s.Program}, s.Args...)); diff != "" {
		t.Errorf("command line (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(v.Env, s.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if s.Dir != v.Dir || v.Asked != "" && s.Asked != v.Asked {
		t.Errorf("directory %q, device %q", s.Dir, s.Asked)
	}
}

// TestEveryBackendHasAPlan holds that no backend of a profile is a dead entry.
func TestEveryBackendHasAPlan(t *testing.T) {
	catalog, err := engines.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range catalog.Profiles() {
		if p.Launch == nil {
			if _, err := Plan(p, Options{Model: "m"}); !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s without a launch profile: %v", p.ID, err)
			}
			continue
		}
		seen := map[string]string{}
		for _, b := range p.Launch.Backends {
			s, err := Plan(p, Options{Backend: b.ID, Model: "/m/x.gguf", Devices: []string{"2"}})
			if err != nil {
				t.Errorf("%s on %s: %v", p.ID, b.ID, err)
				continue
			}
			seen[strings.Join(append(s.Args, s.Env...), " ")] = b.ID
			if s.Asked == "" || s.Host != DefaultHost || s.Port != p.Launch.Port {
				t.Errorf("%s on %s: %+v", p.ID, b.ID, s)
			}
		}
	}
}

func TestCommandTemplate(t *testing.T) {
	p := profile(t, "generic")
	o := Options{Command: []string{"my-engine", "--weights", "${model}", "--listen", "${host}:${port}", "--window", "${context}"}, Model: "w.bin", Context: 100, Extra: []string{"-v"}}
	s, err := Plan(p, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--weights", "w.bin", "--listen", "${host}:${port}", "--window", "100", "-v"}
	if diff := cmp.Diff(want, s.Args); diff != "" || s.Program != "my-engine" {
		t.Errorf("%s (-want +got):\n%s", s.Program, diff)
	}
	o.Slots = 4
	if _, err := Plan(p, o); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "slots 4") {
		t.Errorf("an axis the command does not take: %v", err)
	}
	o.Slots, o.Context = 0, 0
	if _, err := Plan(p, o); !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), "a value for context") {
		t.Errorf("a name without a value: %v", err)
	}
}

func TestReadyTimes(t *testing.T) {
	for class, minutes := range map[string]float64{Small: 10, Medium: 15, Large: 20, "": 15, "huge": 15} {
		if got := ReadyTime(class).Minutes(); got != minutes {
			t.Errorf("%q takes %v minutes, want %v", class, got, minutes)
		}
	}
}
