package matrix

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func TestHalfBudget(t *testing.T) {
	n := func(v int) *int { return &v }
	for _, c := range []struct {
		tokens  *int
		limit   int
		attempt int
		want    Sample
	}{
		{n(150), 300, 0, SampleCounts}, {n(149), 300, 0, SampleAgain}, {n(149), 300, 1, SampleNone}, {n(0), 4, 0, SampleAgain}, {n(2), 3, 1, SampleCounts},
		{n(1), 3, 1, SampleNone}, {nil, 300, 1, SampleCounts},
	} {
		if got := HalfBudget(c.tokens, c.limit, c.attempt); got != c.want {
			t.Errorf("%v of %d in attempt %d: %s, want %s", c.tokens, c.limit, c.attempt, got, c.want)
		}
	}
}

// TestWarmup holds that a group is warmed up with the shape of its first timed request.
func TestWarmup(t *testing.T) {
	p := planOf(t, load(t, twoEngines, map[string]string{"order": OrderTogether, "repeats": "2", "warmup": "3"}))
	for _, g := range p.Steps[0].Groups {
		cell, n, ok := p.Groups[g].Warmup(p.Steps[0].Turns, g)
		if !ok || n != 3 || cell.Scenario != "text_short" || cell.Engine != p.Groups[g].Engine {
			t.Errorf("%+v %d %t", cell, n, ok)
		}
	}
	if _, _, ok := p.Groups[0].Warmup(nil, 0); ok {
		t.Error("a group without turns is warmed up")
	}
	p = planOf(t, load(t, twoEngines, map[string]string{"warmup": "0"}))
	if _, _, ok := p.Groups[0].Warmup(p.Steps[0].Turns, 0); ok {
		t.Error("no warm-up is sent one")
	}
}

// TestNonces holds that engines are asked the same, and that no two requests to one server begin alike.
func TestNonces(t *testing.T) {
	p := planOf(t, load(t, twoEngines, map[string]string{"concurrency": "1,2", "thinking": "both"}))
	seen := map[string]bool{}
	for i := range p.Groups[0].Cells {
		a, b := &p.Groups[0].Cells[i], &p.Groups[1].Cells[i]
		for _, asked := range []Asked{{}, {Repeat: 1}, {Index: 1}, {Attempt: 1}, {Warmup: true}, {Repeat: 1, Index: 1}} {
			nonce := a.Nonce("salt", asked)
			if nonce != b.Nonce("salt", asked) || nonce == a.Nonce("pepper", asked) || len(nonce) != 16 {
				t.Errorf("%s: nonces of two engines, or of two sittings", a.Name)
			}
			if seen[nonce] {
				t.Errorf("%s: %+v begins like another request", a.Name, asked)
			}
			seen[nonce] = true
		}
	}
}

func TestWindows(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		flags  map[string]string
		window int
		slots  int
	}{
		"the configured context": {`{"llama": {"context_size": 24576}, "models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {}}}`, nil, 24576, 1},
		"parts of it":            {`{"llama": {"context_size": 24577}, "models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {}}}`, map[string]string{"concurrency": "1,8"}, 3073, 8},
		"long prompts at once": {`{"models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {}}}`,
			map[string]string{"concurrency": "4", "scenarios": "text_short,prefill_16k"}, 21427, 4},
		"a scenario's own concurrency": {`{"models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {}}}`, map[string]string{"scenarios": "steady_6"}, 1664, 6},
		"as stated": {`{"models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {"slots": 2, "context": 1000}}}`,
			map[string]string{"scenarios": "prefill_16k"}, 1000, 2},
		"as the flag states": {`{"models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {"context": 1000}}}`, map[string]string{"context-size": "34000"}, 34000, 1},
		"as the scenario states": {`{"models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {}}, "scenarios": {"text_short": {"context": 50000}}}`,
			nil, 50000, 1},
		"an engine that cuts prompts": {`{"models": {"m": {"engines": {"ollama": "m"}}}, "engines": {"ollama": {}}}`,
			map[string]string{"scenarios": "prefill_8k"}, 10777, 1},
		"an engine that knows itself": {`{"models": {"m": {"engines": {"sglang": "m"}}}, "engines": {"sglang": {}}}`, map[string]string{"scenarios": "prefill_8k"}, 0, 1},
	} {
		flags := map[string]string{"backends": "ggml_cuda", "scenarios": "text_short"}
		for k, v := range c.flags {
			flags[k] = v
		}
		l := planOf(t, load(t, c.config, flags)).Groups[0].Launch
		if l.Window != c.window || l.Slots != c.slots {
			t.Errorf("%s: a window of %d for %d slots, want %d for %d", name, l.Window, l.Slots, c.window, c.slots)
		}
	}
}

func TestPrefillTargets(t *testing.T) {
	for _, id := range []string{"prefill_", "prefill_0", "prefill_08", "prefill_-1", "prefill_1kk", "prefill_k", "prefil_1", "prefill_99999999999", "Prefill_1"} {
		if n, ok := PrefillTarget(id); ok {
			t.Errorf("%s asks for %d", id, n)
		}
	}
}

func TestThinking(t *testing.T) {
	names := func(raw string, flags map[string]string) (out []string) {
		p := planOf(t, load(t, raw, flags))
		for i := range p.Groups[0].Cells {
			c := &p.Groups[0].Cells[i]
			out = append(out, c.Name, map[bool]string{true: "thinks", false: ""}[c.Thinking])
		}
		return out
	}
	thinks := strings.Replace(twoEngines, `"defaults": {`, `"defaults": {"thinking": true, `, 1)
	for name, c := range map[string]struct {
		raw, flag string
		want      []string
	}{
		"off":               {twoEngines, "", []string{"a__gpu__m__text_short", ""}},
		"on, by the file":   {thinks, "", []string{"a__gpu__m__text_short", "thinks"}},
		"on, by the flag":   {twoEngines, "on", []string{"a__gpu__m__text_short__think", "thinks"}},
		"off, by the flag":  {thinks, "off", []string{"a__gpu__m__text_short__nothink", ""}},
		"both, by the flag": {twoEngines, "both", []string{"a__gpu__m__text_short", "", "a__gpu__m__text_short__think", "thinks"}},
	} {
		flags := map[string]string{"scenarios": "text_short"}
		if c.flag != "" {
			flags["thinking"] = c.flag
		}
		if diff := cmp.Diff(c.want, names(c.raw, flags)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	p := planOf(t, load(t, twoEngines, map[string]string{"thinking": "both", "scenarios": "text_short,prefill_1k", "max-tokens": "64"}))
	var limits []int
	for i := range p.Groups[0].Cells {
		limits = append(limits, p.Groups[0].Cells[i].MaxTokens)
	}
	if diff := cmp.Diff([]int{64, 2048, 8, 8}, limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestReadInput(t *testing.T) {
	dir := t.TempDir()
	repo := filepath.Join(dir, "repo")
	for _, d := range []string{filepath.Join(repo, ".git"), filepath.Join(repo, "a", "b")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(repo, "a", "b", "c.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := ReadInput(file, "elsewhere")
	if err != nil || in.Here != filepath.Dir(file) || in.RepoRoot != repo || string(in.Raw) != "{}" {
		t.Errorf("%+v %v", in, err)
	}
	in, err = ReadInput("", dir)
	if err != nil || in.Here != dir || in.RepoRoot != dir || in.Raw != nil {
		t.Errorf("%+v %v", in, err)
	}
	if _, err := ReadInput(filepath.Join(dir, "gone.json"), dir); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("%v", err)
	}
}

// TestPlaces holds how paths of a config become paths of a machine.
func TestPlaces(t *testing.T) {
	c := load(t, `{"paths": {"model_root": "models", "llama_server_exe": "llama-server", "tensorsharp_server_dll": "bin/Host.dll", "results_dir": "/abs"},
		"engines": {"llamacpp": {"program": "./build/llama-server"}}, "models": {"m": {"gguf": "${model_root}/m.gguf", "mmproj": "C:\\p.gguf"}}}`,
		map[string]string{"scenarios": "text_short", "results": "here/results"})
	for _, pair := range [][2]string{
		{c.Paths.ModelRoot, "/cfg/models"}, {c.Paths.LlamaServer, "llama-server"}, {c.Paths.TensorSharpDLL, "/cfg/bin/Host.dll"}, {c.Paths.Results, "here/results"},
		{c.engine("llamacpp").Program, "/cfg/build/llama-server"}, {c.Models[0].Files.Weights, "/cfg/models/m.gguf"}, {c.Models[0].Files.Projector, `C:\p.gguf`},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s, want %s", pair[0], pair[1])
		}
	}
}

func TestCheck(t *testing.T) {
	c := load(t, `{"engines": {"llamacpp": {"env": {"A=B": "x"}}}, "backends": {"ggml_cuda": {"llamacpp": {"env": {"C": "a\u0000b"}}}},
		"models": {"here": {"gguf": "/here.gguf"}, "gone": {"gguf": "/gone.gguf"}, "unselected": {"gguf": "/gone.gguf"}},
		"defaults": {"models": ["here", "gone"], "scenarios": ["text_short"]}}`, nil)
	got := c.Check(func(f string) bool { return f == "/here.gguf" })
	want := []string{
		`backend ggml_cuda, llamacpp: "C" is no variable that an environment can hold`, `engine llamacpp: "A=B" is no variable that an environment can hold`,
		"model gone: its gguf /gone.gguf is not there, and nothing says where it can be had: give the entry a source, or the file a url",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	c := load(t, `{"models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {}}, "scenarios": {"odd": {}, "prefill_1k": {"max_tokens": 99}}}`,
		map[string]string{"backends": "ggml_vulkan"})
	for i, want := range []string{"scenario prefill_1k: its limit of 8 tokens", "backend ggml_vulkan: no build of llamacpp of its own is named (BENCH_LLAMA_SERVER_VULKAN)", "scenario odd: there is nothing"} {
		if i >= len(c.Warnings) || !strings.HasPrefix(c.Warnings[i], want) {
			t.Errorf("%q, want %q", c.Warnings, want)
		}
	}
}

func TestLines(t *testing.T) {
	p := planOf(t, load(t, twoEngines, map[string]string{
		"engines": "a", "scenarios": "text_short", "mtp": "off,on", "n-cpu-moe": "8,all", "cpu-moe-threads": "1", "speculative": "ngram-mod", "draft-depth": "3", "repeats": "2",
	}))
	want := [][]string{
		{"DO", "ENGINE", "BACKEND", "MODEL", "SCENARIO", "MTP", "CPU MOE", "DRAFTS", "CONC", "TOKENS", "REPEATS", "WHY"},
		{"run", "a", "gpu", "m", "text_short", "off", "8, 1 thread", "ngram-mod of 3", "1", "128", "2", ""},
		{"run", "a", "gpu", "m", "text_short", "off", "all, 1 thread", "ngram-mod of 3", "1", "128", "2", ""},
		{"skip", "a", "gpu", "m", "text_short", "on", "8, 1 thread", "ngram-mod of 3", "1", "128", "2", "the MTP switch is TensorSharp's; a has --speculative"},
		{"skip", "a", "gpu", "m", "text_short", "on", "all, 1 thread", "ngram-mod of 3", "1", "128", "2", "the MTP switch is TensorSharp's; a has --speculative"},
	}
	if diff := cmp.Diff(want, p.Lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := p.Summary(); !strings.HasSuffix(s, "4 cells, 2 to run in 2 starts (4 timed request sets), 2 skipped") {
		t.Error(s)
	}
}

func TestPlansOfNothing(t *testing.T) {
	c := load(t, `{}`, nil)
	if _, err := NewPlan(c, PlanOptions{}); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("%v", err)
	}
	if _, err := Load(input(t, `{}`, nil, map[string]string{"nonsense": "1"})); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("%v", err)
	}
	in := input(t, `{}`, nil, nil)
	in.Library = func([]string) (Library, error) { return nil, errors.New("no such file") }
	if _, err := Load(in); !errors.Is(err, exchange.ErrUsage) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("%v", err)
	}
	twice := &Plan{Groups: []Group{{Cells: []Cell{{Name: "A"}, {Name: "a"}}}}}
	if err := twice.distinct(); !errors.Is(err, exchange.ErrUsage) {
		t.Errorf("%v", err)
	}
}

// TestConfigsWithoutALibrary holds that a config can be read where no scenario can be built.
func TestConfigsWithoutALibrary(t *testing.T) {
	in := input(t, `{"models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {}}, "scenarios": {"any": {}, "prefill_2k": {}}}`, nil, nil)
	in.Library = nil
	c, err := Load(in)
	if err != nil || c.scenario("any").Build != "" || c.scenario("prefill_2k").MaxTokens != 8 {
		t.Errorf("%+v %v", c, err)
	}
}
