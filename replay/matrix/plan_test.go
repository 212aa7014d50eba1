package matrix

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/benchproxy/benchproxy/engines/launch"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// commandLine is what package launch makes of a group.
func commandLine(t *testing.T, g *Group) ([]string, []string) {
	t.Helper()
	catalog, err := builtinCatalog()
	if err != nil {
		t.Fatal(err)
	}
	profile, known := catalog.Lookup(g.Launch.Profile)
	if !known {
		t.Fatalf("there is no profile %s", g.Launch.Profile)
	}
	l := g.Launch
	spec, err := launch.Plan(profile, launch.Options{
		Registry: &l.Registry, Program: l.Program, File: l.File, Model: or(l.Model.Weights, l.Model.Name), MMProj: l.Model.Projector, Port: l.Port,
		Devices: l.Devices, Context: l.Window, Slots: l.Slots, MaxTokens: l.MaxTokens, TP: g.TP, SplitMode: l.SplitMode, CPUMoE: l.CPUMoE,
		CPUMoEThreads: g.CPUMoEThreads, Draft: l.Draft, Drafter: l.Drafter, DraftDepth: g.Depth, Device: g.Device, Spelling: l.Spelling, Class: l.Class,
	})
	if err != nil {
		t.Fatalf("%s: %v", g.Name, err)
	}
	return append([]string{spec.Program}, spec.Args...), spec.Env
}

// TestCommandLines holds what the groups of a config come to when they are launched.
func TestCommandLines(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		flags map[string]string
		group string
		args  string
		env   string
	}{
		"TensorSharp": {"main.json", nil, "tensorsharp__ggml_cuda__dense-12b",
			"dotnet /repo/Host/bin/Host.dll --model D:/models/qat/dense-12b.gguf --backend ggml_cuda --host ${host} --port ${port} --no-multi-agent --max-tokens 512 --mmproj D:/models/qat/mmproj.gguf",
			"TS_ONE=1"},
		"TensorSharp on Vulkan": {"main.json", map[string]string{"backends": "ggml_vulkan"}, "tensorsharp__ggml_vulkan__blocks",
			"dotnet /repo/Host/bin/Host.dll --model D:/models/blocks.gguf --backend ggml_vulkan --host ${host} --port ${port} --no-multi-agent --gpu-device 1 --max-tokens 512", ""},
		"its draft head": {"main.json", map[string]string{"mtp": "on"}, "tensorsharp__ggml_cuda__dense-12b__mtp",
			"dotnet /repo/Host/bin/Host.dll --model D:/models/qat/dense-12b.gguf --backend ggml_cuda --host ${host} --port ${port} --no-multi-agent --max-tokens 512 --mmproj D:/models/qat/mmproj.gguf --spec --draft-model D:/models/draft.gguf",
			"TS_ONE=1"},
		"a draft head in the weights": {"main.json", map[string]string{"mtp": "on"}, "tensorsharp__ggml_cuda__moe-35b__mtp",
			"dotnet /repo/Host/bin/Host.dll --model D:/models/moe-35b.gguf --backend ggml_cuda --host ${host} --port ${port} --no-multi-agent --max-tokens 512 --spec", "TS_ONE=1"},
		"llama.cpp": {"main.json", nil, "llamacpp__ggml_cuda__dense-12b",
			"D:/llama/build-cuda/bin/llama-server.exe -m D:/models/qat/dense-12b.gguf -ngl 999 --host ${host} --port ${port} -c 24576 --jinja --mmproj D:/models/qat/mmproj.gguf -np 1",
			"NCCL_P2P_DISABLE=1"},
		"llama.cpp on the processor": {"main.json", map[string]string{"concurrency": "1,4"}, "llamacpp__ggml_cpu__dense-12b",
			"D:/llama/build-cuda/bin/llama-server.exe -m D:/models/qat/dense-12b.gguf -ngl 0 --host ${host} --port ${port} -c 24576 --jinja --mmproj D:/models/qat/mmproj.gguf -np 4", ""},
		"another build": {"main.json", map[string]string{"backends": "ggml_vulkan", "scenarios": "prefill_64k"}, "llamacpp__ggml_vulkan__dense-12b",
			"D:/llama/build-vulkan/llama-server.exe -m D:/models/qat/dense-12b.gguf -ngl 999 --host ${host} --port ${port} -c 85324 --jinja --mmproj D:/models/qat/mmproj.gguf -np 1", ""},
		"the longest of the sweep": {"prefill.json", nil, "llamacpp__ggml_cuda__m-4b",
			"llama-server -m /data/models/m-4b.gguf -ngl 999 --host ${host} --port ${port} -c 170521 --jinja -np 1", ""},
		"two devices of TensorSharp": {"multigpu.json", nil, "tensorsharp__ggml_cuda__small-9b__tp2",
			"dotnet /opt/ts/Host.dll --model /data/models/small-9b.gguf --backend ggml_cuda --host ${host} --port ${port} --no-multi-agent --max-tokens 512 --tp 2",
			"CUDA_VISIBLE_DEVICES=0,1"},
		"one device of four": {"multigpu.json", nil, "llamacpp__ggml_cuda__small-9b",
			"/opt/llama/llama-server -m /data/models/small-9b.gguf -ngl 999 --host ${host} --port ${port} -c 8192 --jinja -np 1",
			"CUDA_VISIBLE_DEVICES=0 NCCL_P2P_DISABLE=1"},
		"four devices of llama.cpp": {"multigpu.json", nil, "llamacpp__ggml_cuda__huge-200b__tp4",
			"/opt/llama/llama-server -m /data/models/huge-00001-of-00005.gguf -ngl 999 --host ${host} --port ${port} -c 8192 --jinja --split-mode tensor -np 1",
			"CUDA_VISIBLE_DEVICES=0,1,2,3 NCCL_P2P_DISABLE=1"},
		"layers on four devices": {"multigpu.json", map[string]string{"backends": "ggml_cuda_split"}, "llamacpp__ggml_cuda_split__huge-200b__tp4",
			"/opt/llama/llama-server -m /data/models/huge-00001-of-00005.gguf -ngl 999 --host ${host} --port ${port} -c 8192 --jinja --split-mode layer -np 1",
			"CUDA_VISIBLE_DEVICES=0,1,2,3"},
		"layers on two devices of TensorSharp": {"multigpu.json", map[string]string{"backends": "ggml_cuda_split"}, "tensorsharp__ggml_cuda_split__small-9b__tp2",
			"dotnet /opt/ts/Host.dll --model /data/models/small-9b.gguf --backend ggml_cuda --host ${host} --port ${port} --no-multi-agent --max-tokens 512 --layer-split 2",
			"CUDA_VISIBLE_DEVICES=0,1 TS_NGPU=2"},
		"some layers in host memory": {"main.json", map[string]string{"n-cpu-moe": "8", "cpu-moe-threads": "48"}, "llamacpp__ggml_cuda__moe-35b__ncmoe8t48",
			"D:/llama/build-cuda/bin/llama-server.exe -m D:/models/moe-35b.gguf -ngl 999 --host ${host} --port ${port} -c 24576 --jinja --n-cpu-moe 8 --threads 48 -np 1",
			"NCCL_P2P_DISABLE=1"},
		"all layers in host memory": {"main.json", map[string]string{"n-cpu-moe": "all"}, "llamacpp__ggml_cuda__moe-35b__ncmoeall",
			"D:/llama/build-cuda/bin/llama-server.exe -m D:/models/moe-35b.gguf -ngl 999 --host ${host} --port ${port} -c 24576 --jinja --cpu-moe -np 1", "NCCL_P2P_DISABLE=1"},
		"all layers of TensorSharp": {"main.json", map[string]string{"n-cpu-moe": "all", "cpu-moe-threads": "8"}, "tensorsharp__ggml_cuda__moe-35b__ncmoeallt8",
			"dotnet /repo/Host/bin/Host.dll --model D:/models/moe-35b.gguf --backend ggml_cuda --host ${host} --port ${port} --no-multi-agent --max-tokens 512 --n-cpu-moe all --cpu-moe-threads 8",
			"TS_ONE=1"},
		"drafts": {"main.json", map[string]string{"speculative": "ngram-mod", "draft-depth": "4"}, "llamacpp__ggml_cuda__moe-35b__ngram-mod-d4",
			"D:/llama/build-cuda/bin/llama-server.exe -m D:/models/moe-35b.gguf -ngl 999 --host ${host} --port ${port} -c 24576 --jinja -np 1 --spec-type ngram-mod --spec-ngram-mod-n-max 4",
			"NCCL_P2P_DISABLE=1"},
	} {
		p := planOf(t, loadFile(t, "configs/"+c.file, c.flags))
		g := find(p.Groups, func(g *Group) bool { return g.Name == c.group })
		if g == nil {
			t.Errorf("%s: there is no group %s", name, c.group)
			continue
		}
		if g.Runs() == 0 {
			t.Errorf("%s: it does not run: %+v", name, g.Cells[0].Skip)
			continue
		}
		args, env := commandLine(t, g)
		if diff := cmp.Diff(strings.Fields(c.args), args); diff != "" {
			t.Errorf("%s: arguments (-want +got):\n%s", name, diff)
		}
		if got := strings.Join(env, " "); got != c.env {
			t.Errorf("%s: environment %q, want %q", name, got, c.env)
		}
	}
}

// TestSpellingsOfTheConfig holds that arguments which the config gives replace the engine's own.
func TestSpellingsOfTheConfig(t *testing.T) {
	c := load(t, `{"models": {"m": {"gguf": "/m.gguf"}}, "engines": {"llamacpp": {"extra_args": ["--engine-arg"]}},
		"backends": {"b": {"visible_devices_env": "V", "llamacpp": {"cpu_moe_arg": "--some", "cpu_moe_threads_arg": "--hands", "extra_args": ["--backend-arg"],
			"tp_extra_args": ["-sm", "row"]}}},
		"defaults": {"backends": ["b"], "scenarios": ["text_short"], "tp_degrees": [2], "tp_devices": ["x", "y"], "cpu_moe_layers": [3, "all"], "cpu_moe_threads": [5]}}`, nil)
	p := planOf(t, c)
	want := []string{
		"--jinja --engine-arg --backend-arg -sm row --some 3 --hands 5", "--jinja --engine-arg --backend-arg -sm row --cpu-moe --hands 5",
	}
	for i := range p.Groups {
		args, env := commandLine(t, &p.Groups[i])
		if line := strings.Join(args, " "); !strings.Contains(line, want[i]) {
			t.Errorf("%s has no %s", line, want[i])
		}
		if !slices.Contains(env, "V=x,y") || p.Groups[i].Launch.SplitMode != "row" {
			t.Errorf("%q %+v", env, p.Groups[i].Launch)
		}
	}
}

// TestEveryCombinationIsPlanned counts the cells of a matrix with all axes.
func TestEveryCombinationIsPlanned(t *testing.T) {
	p := planOf(t, loadFile(t, "configs/main.json", map[string]string{
		"models": "dense-12b,moe-35b", "backends": "ggml_cuda,ggml_cpu", "mtp": "both", "tp": "1,2", "tp-devices": "0,1", "n-cpu-moe": "off,8,all",
		"cpu-moe-threads": "0,48", "concurrency": "1,4", "thinking": "both", "speculative": "none,ngram-mod", "draft-depth": "0,4", "devices": "cpu",
		"scenarios": "text_short,prefill_1k,steady_4",
	}))
	engineCount, backends, models, mtp, tp, offload, drafts, devices := 3, 2, 2, 2, 2, 5, 3, 1
	groups := engineCount * backends * models * mtp * tp * offload * drafts * devices
	cells := groups * 2 * (2 + 2 + 1) // thinking; concurrency, of which steady_4 has one
	n := p.Counts()
	if len(p.Groups) != groups || n.Cells != cells || n.Run+n.Skip != cells {
		t.Errorf("%d groups and %+v, want %d and %d", len(p.Groups), n, groups, cells)
	}
	names := map[string]bool{}
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			names[p.Groups[i].Cells[j].Name] = true
		}
	}
	if len(names) != cells {
		t.Errorf("%d names for %d cells", len(names), cells)
	}
}

func TestAddresses(t *testing.T) {
	const raw = `{"models": {"own": {"gguf": "/own.gguf", "engines": {"ollama": "own:4b"}}, "with:colon": {"gguf": "/x.gguf"}},
		"engines": {"prism": {"url": "http://p:1"}, "ollama": {"url": "http://o:1"}}, "defaults": {"backends": ["ggml_cuda"], "scenarios": ["text_short"]}}`
	for models, want := range map[string]string{
		"ollama:qwen2.5-coder:7b,prism:phi-4-mini": "ollama qwen2.5-coder:7b, prism phi-4-mini",
		"prism:ollama:qwen:3b":                     "prism ollama:qwen:3b",
		"prism-local:phi":                          "prism phi",
		"ollama:own,llamacpp:own":                  "ollama own:4b, llamacpp /own.gguf",
		"llamacpp:/dir/x.gguf":                     "llamacpp /dir/x.gguf",
		"with:colon,ollama:own":                    "prism skip, ollama skip, ollama own:4b",
	} {
		p := planOf(t, load(t, raw, map[string]string{"models": models}))
		var got []string
		for i := range p.Groups {
			l := p.Groups[i].Launch.Model
			what := or(l.Name, l.Weights)
			if p.Groups[i].Runs() == 0 {
				what = "skip"
			}
			got = append(got, p.Groups[i].Engine+" "+what)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s, want %s", models, s, want)
		}
	}
	for _, models := range []string{"qwen2.5:7b", "llamacpp:qwen", "ollama:"} {
		if _, err := Load(input(t, raw, nil, map[string]string{"models": models})); !errors.Is(err, exchange.ErrUsage) {
			t.Errorf("%s: %v", models, err)
		}
	}
}

func TestInstalled(t *testing.T) {
	const raw = `{"models": {"a": {"gguf": "/a.gguf"}, "b": {"gguf": "/b.gguf", "engines": {"prism": "phi-4-mini"}}}, "engines": {"llamacpp": {}, "prism": {"url": "http://p:1"}},
		"defaults": {"backends": ["ggml_cuda"], "scenarios": ["text_short"], "models": ["installed"]}}`
	c := load(t, raw, nil)
	if _, err := NewPlan(c, PlanOptions{}); !errors.Is(err, exchange.ErrUnreachable) {
		t.Errorf("what Prism has is known without asking: %v", err)
	}
	p, err := NewPlan(c, PlanOptions{
		Exists: func(f string) bool { return f == "/b.gguf" },
		Listed: map[string][]Listed{"prism": {{"phi-4-mini", "onnxruntime-genai"}, {"ollama:qwen:3b", "ollama"}, {"big", "library"}, {"other", "Ollama"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range p.Groups {
		got = append(got, fmt.Sprintf("%s %s %s", p.Groups[i].Engine, p.Groups[i].Model, p.Groups[i].Launch.Model.Name))
	}
	if diff := cmp.Diff([]string{"llamacpp b ", "prism b phi-4-mini", "prism big big"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHash holds what a plan's hash is of: what is measured, and no place of a machine.
func TestHash(t *testing.T) {
	plan := func(raw string, flags map[string]string) *Plan { return planOf(t, load(t, raw, flags)) }
	const raw = `{"paths": {"model_root": "/a", "llama_server_exe": "/bin/one", "results_dir": "/r", "llama_port": 5001}, "models": {"m": {"gguf": "${model_root}/m.gguf"}},
		"engines": {"llamacpp": {}}, "defaults": {"scenarios": ["text_short", "prefill_1k"], "backends": ["ggml_cuda"]}}`
	base := plan(raw, nil)
	if again := plan(raw, nil); again.Hash != base.Hash || !strings.HasPrefix(base.Hash, PlanScheme) {
		t.Errorf("%s and %s", base.Hash, again.Hash)
	}
	moved := plan(strings.NewReplacer("/a", "/b", "/bin/one", "/opt/two", "5001", "6001", `"/r"`, `"/s"`).Replace(raw), nil)
	if moved.Hash != base.Hash {
		t.Error("a place of the machine is in the hash")
	}
	if moved.Groups[0].Cells[0].Definition == base.Groups[0].Cells[0].Definition {
		t.Error("another build of the engine is the same cell")
	}
	for name, other := range map[string]*Plan{
		"tokens": plan(raw, map[string]string{"max-tokens": "64"}), "repeats": plan(raw, map[string]string{"repeats": "3"}), "thinking": plan(raw, map[string]string{"thinking": "on"}),
		"scenarios": plan(raw, map[string]string{"scenarios": "text_short"}), "weights": plan(strings.Replace(raw, "/m.gguf", "/n.gguf", 1), nil),
		"arguments": plan(strings.Replace(raw, `"llamacpp": {}`, `"llamacpp": {"extra_args": ["-fa"]}`, 1), nil), "concurrency": plan(raw, map[string]string{"concurrency": "2"}),
		"variables": plan(strings.Replace(raw, `"llamacpp": {}`, `"llamacpp": {"env": {"A": "b"}}`, 1), nil), "warm-up": plan(raw, map[string]string{"warmup": "0"}),
		"the profile": plan(strings.Replace(raw, `"models"`, `"profiles": {"llamacpp": {"notes": ["x"]}}, "models"`, 1), nil),
	} {
		if other.Hash == base.Hash {
			t.Errorf("%s are not in the hash", name)
		}
	}
	// partial runs add up: what else is selected is no part of a cell
	alone := plan(raw, map[string]string{"scenarios": "text_short"})
	wider := plan(raw, map[string]string{"concurrency": "1,8"})
	for _, p := range []*Plan{alone, wider} {
		if p.Groups[0].Cells[0].Definition != base.Groups[0].Cells[0].Definition {
			t.Error("other cells of a sitting are in the definition of a cell")
		}
	}
}

// TestSkipsAreToldOnce holds that the skipped cells of one reason stand in one row, none is lost, and the planned ones stand
// apart from them.
func TestSkipsAreToldOnce(t *testing.T) {
	p := planOf(t, load(t, twoEngines, map[string]string{"engines": "a,b", "scenarios": "text_short,prefill_1k,json_mode,agentic", "mtp": "off,on", "concurrency": "1,2"}))
	n, rows := p.Counts(), p.Skips()
	want := [][]string{
		{"SKIP", "ENGINE", "BACKEND", "MODEL", "SCENARIOS", "WHY"},
		{"8", "a", "gpu", "m", "text_short, prefill_1k and 2 more", rows[1][5]},
		{"8", "b", "gpu", "m", "text_short, prefill_1k and 2 more", rows[2][5]},
	}
	if diff := cmp.Diff(want, rows); diff != "" || n.Skip != 16 || len(p.Planned()) != 1+n.Run {
		t.Errorf("%d skipped, %d planned of %d: %s", n.Skip, len(p.Planned())-1, n.Run, diff)
	}
}
