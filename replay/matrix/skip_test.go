package matrix

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// skips are the cells of a plan as "kind", or "run", by their names without the model and scenario that all share.
func kinds(p *Plan) map[string]string {
	out := map[string]string{}
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			c := &p.Groups[i].Cells[j]
			out[c.Name] = string(c.Do)
			if c.Skip != nil {
				out[c.Name] = string(c.Skip.Kind)
			}
		}
	}
	return out
}

// TestMainConfig is the matrix of a config of the older tool, cell by cell.
func TestMainConfig(t *testing.T) {
	got := kinds(planOf(t, loadFile(t, "configs/main.json", nil)))
	want := map[string]string{}
	for _, engine := range []string{"tensorsharp", "llamacpp", "vllm"} {
		for _, backend := range []string{"ggml_cuda", "ggml_cpu"} {
			for _, model := range []string{"dense-12b", "moe-35b", "blocks"} {
				for _, s := range []string{"text_short", "json_mode", "image", "video"} {
					want[engine+"__"+backend+"__"+model+"__"+s] = "run"
				}
			}
		}
	}
	set := func(kind SkipKind, names ...string) {
		for _, pattern := range names {
			n := 0
			for name := range want {
				if ok := matches(pattern, name); ok {
					want[name] = string(kind)
					n++
				}
			}
			if n == 0 {
				t.Fatalf("nothing is like %s", pattern)
			}
		}
	}
	set(SkipModality, "*__moe-35b__image", "*__moe-35b__video", "*__blocks__image", "*__blocks__video", "llamacpp__*__dense-12b__video", "vllm__*__dense-12b__image", "vllm__*__dense-12b__video")
	set(SkipDiffusion, "llamacpp__*__blocks__*", "vllm__*__blocks__*", "tensorsharp__*__blocks__json_mode")
	set(SkipTooLarge, "*__ggml_cpu__moe-35b__*")
	set(SkipRestricted, "vllm__ggml_cpu__*")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, name := range []string{"tensorsharp__ggml_cuda__blocks__text_short", "tensorsharp__ggml_cuda__dense-12b__text_short"} {
		c := cellOf(t, planOf(t, loadFile(t, "configs/main.json", nil)), name)
		if c.Stream != (i == 1) {
			t.Errorf("%s: stream %t", name, c.Stream)
		}
	}
}

// matches compares a name with a pattern whose stars stand for anything.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(name, parts[0]) || !strings.HasSuffix(name, parts[len(parts)-1]) {
		return false
	}
	for _, p := range parts {
		_, rest, ok := strings.Cut(name, p)
		if !ok {
			return false
		}
		name = rest
	}
	return true
}

func cellOf(t *testing.T, p *Plan, name string) *Cell {
	t.Helper()
	for i := range p.Groups {
		for j := range p.Groups[i].Cells {
			if p.Groups[i].Cells[j].Name == name {
				return &p.Groups[i].Cells[j]
			}
		}
	}
	t.Fatalf("there is no cell %s", name)
	return nil
}

// skipCase is a config in which one rule decides.
type skipCase struct {
	config string
	flags  map[string]string
	want   SkipKind // "" = it runs
	says   string
}

// anyModel is a model of which no rule has anything to say.
const anyModel = `"models": {"m": {"gguf": "/m.gguf", "modalities": ["image"]}}`

func backendSkips() map[string]skipCase {
	return map[string]skipCase{
		"an engine without a mapping": {config: anyModel, flags: map[string]string{"engines": "llamacpp", "backends": "mlx"}, want: SkipNoMapping},
		"a mapping that is off": {config: anyModel + `,"backends": {"b": {"llamacpp": false}}`, flags: map[string]string{"engines": "llamacpp", "backends": "b"},
			want: SkipNoMapping},
		"a backend of its profile": {config: `"models": {"m": {"engines": {"ollama": "m:1b"}}}`, flags: map[string]string{"engines": "ollama"}},
		"an engine that chooses by itself": {config: `"models": {"m": {"engines": {"ollama": "m:1b"}}}`,
			flags: map[string]string{"engines": "ollama", "backends": "mlx"}},
		"no backend of its profile": {config: `"models": {"m": {"engines": {"sglang": "m"}}}`, flags: map[string]string{"engines": "sglang", "backends": "mlx"},
			want: SkipNoMapping},
		"an engine kept to a kind": {config: anyModel + `,"engines": {"llamacpp": {"backends": ["cpu"]}}`, flags: map[string]string{"backends": "ggml_cuda"},
			want: SkipRestricted},
		"a vLLM of another column": {config: anyModel, flags: map[string]string{"engines": "vllm", "backends": "ggml_cpu"}, want: SkipNotComparable},
		"a vLLM of its column":     {config: anyModel, flags: map[string]string{"engines": "vllm", "backends": "gpu"}},
		"a server of no column": {config: anyModel + `,"engines": {"lmstudio": {"url": "http://h:1"}}`,
			flags: map[string]string{"backends": "ggml_cuda,ggml_cpu"}, want: SkipNotComparable},
		"a server of one column": {config: anyModel + `,"engines": {"lmstudio": {"url": "http://h:1"}},"backends": {"a": {"lmstudio": true}}`,
			flags: map[string]string{"backends": "a"}},
		"a server without an address": {config: anyModel, flags: map[string]string{"engines": "lmstudio"}, want: SkipNoURL},
		"a server of many models": {config: anyModel + `,"engines": {"litellm": {"url": "http://h:1"}}`, want: SkipNoName,
			says: "litellm is asked for a model by name"},
	}
}

func mtpSkips() map[string]skipCase {
	return map[string]skipCase{
		"MTP on another engine":    {config: anyModel, flags: map[string]string{"engines": "llamacpp", "mtp": "on"}, want: SkipMTP},
		"MTP without a draft head": {config: anyModel, flags: map[string]string{"engines": "tensorsharp", "mtp": "on"}, want: SkipMTP},
		"MTP":                      {config: `"models": {"m": {"gguf": "/m.gguf", "mtp_supported": true}}`, flags: map[string]string{"engines": "tensorsharp", "mtp": "on"}},
		"MTP of blocks": {config: `"models": {"m": {"gguf": "/m.gguf", "mtp_supported": true, "is_diffusion": true}}`,
			flags: map[string]string{"engines": "tensorsharp", "mtp": "on"}, want: SkipMTP},
		"MTP without its file": {config: `"models": {"m": {"gguf": "/m.gguf", "mtp_supported": true, "mtp_draft": "/gone.gguf"}}`,
			flags: map[string]string{"engines": "tensorsharp", "mtp": "on"}, want: SkipMTPDraft},
		"MTP and a method": {config: `"models": {"m": {"gguf": "/m.gguf", "mtp_supported": true}}`,
			flags: map[string]string{"engines": "tensorsharp", "mtp": "on", "speculative": "draft-mtp"}, want: SkipDisagreeing},
	}
}

func tpSkips() map[string]skipCase {
	return map[string]skipCase{
		"several devices of a processor": {config: anyModel, flags: map[string]string{"engines": "llamacpp", "backends": "ggml_cpu", "tp": "2", "tp-devices": "0,1"}, want: SkipTP},
		"several devices on metal": {config: anyModel, flags: map[string]string{"engines": "tensorsharp", "backends": "ggml_metal", "tp": "2", "tp-devices": "0,1"},
			want: SkipTP},
		"several devices on vulkan": {config: anyModel, flags: map[string]string{"engines": "tensorsharp", "backends": "ggml_vulkan", "tp": "2", "tp-devices": "0,1"}},
		"several devices of layers on no device": {config: anyModel + `,"backends": {"b": {"llamacpp": 0}}`,
			flags: map[string]string{"engines": "llamacpp", "backends": "b", "tp": "2", "tp-devices": "0,1"}, want: SkipTP},
		"several devices said to be none": {config: anyModel + `,"backends": {"b": {"llamacpp": {"ngl": 99, "tp": false}}}`,
			flags: map[string]string{"engines": "llamacpp", "backends": "b", "tp": "2", "tp-devices": "0,1"}, want: SkipTP},
		"several devices on vLLM":    {config: anyModel, flags: map[string]string{"engines": "vllm", "tp": "2", "tp-devices": "0,1"}, want: SkipTP},
		"fewer devices":              {config: anyModel, flags: map[string]string{"engines": "llamacpp", "tp": "4", "tp-devices": "0,1"}, want: SkipTPDevices},
		"no devices":                 {config: anyModel, flags: map[string]string{"engines": "llamacpp", "tp": "2"}, want: SkipTPDevices},
		"a model that does not fit":  {config: `"models": {"m": {"gguf": "/m.gguf", "min_tp": 4}}`, flags: map[string]string{"engines": "llamacpp"}, want: SkipMinTP, says: "needs --tp 4"},
		"a model that cannot be cut": {config: `"models": {"m": {"gguf": "/m.gguf", "max_tp": 2}}`, flags: map[string]string{"engines": "tensorsharp", "tp": "4", "tp-devices": "0,1,2,3"}, want: SkipMaxTP},
		"a model that llama.cpp cuts": {config: `"models": {"m": {"gguf": "/m.gguf", "max_tp": 2}}`,
			flags: map[string]string{"engines": "llamacpp", "tp": "4", "tp-devices": "0,1,2,3"}},
	}
}

func offloadSkips() map[string]skipCase {
	return map[string]skipCase{
		"offload of a processor": {config: anyModel, flags: map[string]string{"engines": "llamacpp", "backends": "cpu", "n-cpu-moe": "all"}, want: SkipOffload},
		"offload on vLLM":        {config: anyModel, flags: map[string]string{"engines": "vllm", "n-cpu-moe": "8"}, want: SkipOffload},
		"offload said to be none": {config: anyModel + `,"backends": {"b": {"llamacpp": {"cpu_moe": false}}}`,
			flags: map[string]string{"engines": "llamacpp", "backends": "b", "n-cpu-moe": "8"}, want: SkipOffload},
		"offload": {config: anyModel, flags: map[string]string{"engines": "llamacpp", "n-cpu-moe": "8"}},
		"offload of a dense model": {config: `"models": {"m": {"gguf": "/m.gguf", "is_moe": false}}`,
			flags: map[string]string{"engines": "llamacpp", "n-cpu-moe": "8"}, want: SkipDense},
		"offload that is pinned": {config: anyModel + `,"backends": {"b": {"llamacpp": {"extra_args": ["-ncmoe", "4"]}}}`,
			flags: map[string]string{"engines": "llamacpp", "backends": "b", "n-cpu-moe": "8"}, want: SkipPinned, says: "-ncmoe"},
		"offload pinned with an equals sign": {config: anyModel + `,"backends": {"b": {"tensorsharp": {"extra_args": ["--n-cpu-moe=4"]}}}`,
			flags: map[string]string{"engines": "tensorsharp", "backends": "b", "n-cpu-moe": "8"}, want: SkipPinned},
		"offload pinned by a variable": {config: anyModel + `,"backends": {"b": {"llamacpp": {"env": {"LLAMA_ARG_N_CPU_MOE": "4"}}}}`,
			flags: map[string]string{"engines": "llamacpp", "backends": "b", "n-cpu-moe": "8"}, want: SkipPinned},
		"offload pinned by a spelling of its own": {config: anyModel + `,"backends": {"b": {"tensorsharp": {"cpu_moe_arg": "--experts", "extra_args": ["--experts", "4"]}}}`,
			flags: map[string]string{"engines": "tensorsharp", "backends": "b", "n-cpu-moe": "8"}, want: SkipPinned},
		"threads that a variable sets": {config: anyModel + `,"backends": {"b": {"tensorsharp": {"env": {"TS_CPU_MOE_THREADS": "4"}}}}`,
			flags: map[string]string{"engines": "tensorsharp", "backends": "b", "n-cpu-moe": "8"}},
		"threads that a variable sets, and the axis": {config: anyModel + `,"backends": {"b": {"tensorsharp": {"env": {"TS_CPU_MOE_THREADS": "4"}}}}`,
			flags: map[string]string{"engines": "tensorsharp", "backends": "b", "n-cpu-moe": "8", "cpu-moe-threads": "2"}, want: SkipPinned},
	}
}

func methodSkips() map[string]skipCase {
	return map[string]skipCase{
		"a method": {config: anyModel, flags: map[string]string{"engines": "llamacpp", "speculative": "ngram-mod", "draft-depth": "4"}},
		"a method that it does not have": {config: anyModel, flags: map[string]string{"engines": "tensorsharp", "speculative": "ngram-mod"}, want: SkipMethod,
			says: "it has draft-mtp"},
		"a method of a running server":  {config: anyModel, flags: map[string]string{"engines": "vllm", "speculative": "ngram-simple"}, want: SkipMethod},
		"a method without a draft head": {config: anyModel, flags: map[string]string{"engines": "llamacpp", "speculative": "draft-mtp"}, want: SkipMethod},
		"a method without a drafter":    {config: anyModel, flags: map[string]string{"engines": "llamacpp", "speculative": "draft-dflash"}, want: SkipDrafter},
		"a method whose drafter is gone": {config: `"models": {"m": {"gguf": "/m.gguf", "drafter": "/gone.gguf"}}`,
			flags: map[string]string{"engines": "llamacpp", "speculative": "draft-dflash"}, want: SkipDrafter},
		"a method with a drafter": {config: `"models": {"m": {"gguf": "/m.gguf", "drafter": "/d.gguf"}}`,
			flags: map[string]string{"engines": "llamacpp", "speculative": "draft-dflash"}},
		"a depth that it does not take": {config: `"models": {"m": {"gguf": "/m.gguf", "mtp_supported": true}}`,
			flags: map[string]string{"engines": "tensorsharp", "speculative": "draft-mtp", "draft-depth": "4"}, want: SkipMethod},
		"no method": {config: anyModel, flags: map[string]string{"engines": "vllm", "speculative": "none"}},
	}
}

func deviceSkips() map[string]skipCase {
	return map[string]skipCase{
		"a device it cannot choose":    {config: anyModel, flags: map[string]string{"engines": "tensorsharp", "devices": "cuda"}, want: SkipDevice},
		"a device of a running server": {config: anyModel, flags: map[string]string{"engines": "vllm", "devices": "cuda"}, want: SkipDevice},
		"a device":                     {config: `"models": {"m": {"engines": {"prism": "phi"}}}`, flags: map[string]string{"engines": "prism", "devices": "cpu"}},
	}
}

func fileSkips() map[string]skipCase {
	return map[string]skipCase{
		"a model without weights":     {config: `"models": {"m": {}}`, flags: map[string]string{"engines": "llamacpp"}, want: SkipModelFile},
		"a model that is gone":        {config: `"models": {"m": {"gguf": "/gone.gguf"}}`, flags: map[string]string{"engines": "llamacpp"}, want: SkipModelFile, says: "/gone.gguf"},
		"a model that can be fetched": {config: `"models": {"m": {"gguf": "/gone.gguf", "source": "a/b"}}`, flags: map[string]string{"engines": "llamacpp"}},
		"a model that may not be fetched": {config: `"models": {"m": {"gguf": "/gone.gguf", "source": "a/b"}}`,
			flags: map[string]string{"engines": "llamacpp", "download": "never"}, want: SkipModelFile},
		"a projector that is gone": {config: `"models": {"m": {"gguf": "/m.gguf", "mmproj": "/gone.gguf"}}`, flags: map[string]string{"engines": "llamacpp"}, want: SkipModelFile},
		"a program that is gone":   {config: anyModel + `,"paths": {"llama_server_exe": "/gone/llama-server"}`, flags: map[string]string{"engines": "llamacpp"}, want: SkipBinary},
		"a build that is gone": {config: anyModel + `,"backends": {"b": {"llamacpp": {"server_exe": "/gone/llama-server"}}}`,
			flags: map[string]string{"engines": "llamacpp", "backends": "b"}, want: SkipBinary},
		"an assembly that is gone": {config: anyModel + `,"paths": {"tensorsharp_server_dll": "/gone/Host.dll"}`, flags: map[string]string{"engines": "tensorsharp"}, want: SkipBinary},
	}
}

func assetSkips() map[string]skipCase {
	return map[string]skipCase{
		"an image without a projector": {config: anyModel, flags: map[string]string{"engines": "llamacpp", "scenarios": "image"}, want: SkipModality},
		"an image that is gone": {config: anyModel + `,"paths": {"media": {"image": "/gone.jpg"}}`,
			flags: map[string]string{"engines": "tensorsharp", "scenarios": "image"}, want: SkipAsset},
		"an image": {config: anyModel, flags: map[string]string{"engines": "tensorsharp", "scenarios": "image"}},
		"a sound":  {config: anyModel, flags: map[string]string{"engines": "tensorsharp", "scenarios": "audio"}, want: SkipModality},
		"a scenario of nobody": {config: anyModel + `,"scenarios": {"odd": {"kind": "odd"}}`, flags: map[string]string{"engines": "tensorsharp", "scenarios": "odd"},
			want: SkipNoMessages},
		"tools for blocks": {config: `"models": {"m": {"gguf": "/m.gguf", "is_diffusion": true}}`,
			flags: map[string]string{"engines": "tensorsharp", "scenarios": "agentic"}, want: SkipDiffusion},
		"code for blocks": {config: `"models": {"m": {"gguf": "/m.gguf", "is_diffusion": true}}`, flags: map[string]string{"engines": "tensorsharp", "scenarios": "code_edit"}},
		"a prefill for blocks": {config: `"models": {"m": {"gguf": "/m.gguf", "is_diffusion": true}}`,
			flags: map[string]string{"engines": "tensorsharp", "scenarios": "prefill_1k"}, want: SkipDiffusion},
	}
}

// TestSkips holds each rule by a config in which it alone decides.
func TestSkips(t *testing.T) {
	for _, group := range []func() map[string]skipCase{
		backendSkips, mtpSkips, tpSkips, offloadSkips, methodSkips, deviceSkips, fileSkips, assetSkips,
	} {
		for name, c := range group() {
			t.Run(name, c.test)
		}
	}
}

func (c skipCase) test(t *testing.T) {
	flags := map[string]string{"scenarios": "text_short", "backends": "ggml_cuda"}
	for k, v := range c.flags {
		flags[k] = v
	}
	config, err := Load(input(t, "{"+c.config+"}", nil, flags))
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	here := func(f string) bool { return !strings.Contains(f, "gone") }
	p, err := NewPlan(config, PlanOptions{Exists: here, Program: here})
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	cell := &p.Groups[0].Cells[0]
	switch {
	case c.want == "" && cell.Skip != nil:
		t.Errorf("it is skipped: %+v", cell.Skip)
	case c.want != "" && (cell.Skip == nil || cell.Skip.Kind != c.want):
		t.Errorf("%+v, want %s", cell.Skip, c.want)
	case c.want != "" && (cell.Skip.Reason == "" || !strings.Contains(cell.Skip.Reason, c.says)):
		t.Errorf("%q does not say %q", cell.Skip.Reason, c.says)
	}
}
