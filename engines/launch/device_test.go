package launch

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/engines"
)

// TestDeviceOfOutput holds what the output of engines shows of where they run. Nothing shows a GPU but a line that names it.
func TestDeviceOfOutput(t *testing.T) {
	for _, c := range []struct{ engine, output, want string }{
		{"llamacpp", "build: 1 (abc)\nllama_model_load_from_file_impl: using device CUDA0 (NVIDIA A40) - 45000 MiB free\nload_tensors: offloaded 33/33 layers to GPU", "cuda"},
		{"llamacpp", "llama_model_load: using device ROCm0 (gfx1151)\n", "rocm"},
		{"llamacpp", "llama_model_load: using device Vulkan0 (llvmpipe)\n", "vulkan"},
		{"llamacpp", "llama_model_load: using device MTL0 (Apple M3)\n", "metal"},
		{"llamacpp", "using device CUDA0 (A40)\nload_tensors: offloaded 0/33 layers to GPU\n", "cpu"},
		{"llamacpp", "load_tensors: offloaded 0/33 layers to GPU\nusing device CUDA0 (A40)\n", "cpu"},
		{"llamacpp", "warning: no usable GPU found, --gpu-layers option will be ignored\n", "cpu"},
		{"llamacpp", "main: CUDA support is compiled in\nload_tensors: CPU_Mapped model buffer size = 5 MiB\n", ""},
		{"llamacpp", "", ""},
		{"ollama", `time=x level=INFO msg="inference compute" id=GPU-1 library=cuda variant=v12 name="A40"`, "cuda"},
		{"ollama", `time=x level=INFO msg="inference compute" id=0 library=cpu variant=""`, "cpu"},
		{"vllm", "INFO Automatically detected platform cuda.", "cuda"},
		{"vllm", "INFO device_config=cpu, more", "cpu"},
		{"sglang", "server_args=ServerArgs(model='x', device='cuda', tp=1)", "cuda"},
		{"tensorsharp", "ggml_cuda_init: found 1 CUDA devices:", "cuda"},
		{"tensorsharp", "ggml_cuda_init: found 0 CUDA devices", ""},
		{"prism", "using CUDA", ""},
	} {
		d := newDeviceScan(profile(t, c.engine).Launch)
		for line := range strings.Lines(c.output) {
			d.see(strings.TrimSuffix(line, "\n"))
		}
		got, evidence := d.seen()
		if c.want == "" && got != nil || c.want != "" && (got == nil || *got != c.want || evidence == "") {
			t.Errorf("%s, %q: %v by %q, want %q", c.engine, c.output, text(got), evidence, c.want)
		}
	}
}

func text(s *string) string {
	if s == nil {
		return "unknown"
	}
	return *s
}

func TestDeviceList(t *testing.T) {
	for name, c := range map[string]struct {
		devices, say, kind, want, evidence string
	}{
		"listed":            {"CUDA0: NVIDIA A40 (45000 MiB)", "", engines.KindGPU, "cuda", "CUDA0: NVIDIA A40 (45000 MiB)"},
		"none listed":       {"", "", engines.KindGPU, "cpu", "-list-devices shows no device"},
		"the start knows":   {"CUDA0: NVIDIA A40", "offloaded 0/9 layers", engines.KindGPU, "cpu", "offloaded 0/9 layers"},
		"the start knows 2": {"", "using device ROCm", engines.KindGPU, "rocm", "using device ROCm"},
		"not asked":         {"CUDA0: NVIDIA A40", "", engines.KindCPU, "unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakeSpec(t, "-say", c.say)
			s.Engine.Launch.Devices.List = []string{"-list-devices"}
			s.Backend = engines.Backend{ID: "x", Kind: c.kind}
			s.Env = []string{"FAKE_DEVICES=" + c.devices}
			p := startFake(t, s)
			waitReady(t, p)
			eventually(t, "the device "+c.want, func() bool { return text(p.Status().Device) == c.want })
			if got := p.Status().Evidence; got != c.evidence {
				t.Errorf("evidence %q", got)
			}
		})
	}
}

func TestNotesOfAStart(t *testing.T) {
	p := startFake(t, fakeSpec(t, "-say", "warning: No draft head in weights, drafting is off"))
	waitReady(t, p)
	eventually(t, "a note", func() bool { n := p.Status().Notes; return len(n) == 1 && n[0] == "drafting is off" })
}

func TestExitMeanings(t *testing.T) {
	code := func(n int) exit { return exit{code: &n} }
	for _, c := range []struct {
		x             exit
		text, meaning string
	}{
		{code(0), "ended with exit code 0", ""},
		{code(1), "ended with exit code 1", ""},
		{code(137), "ended with exit code 137", "memory"},
		{code(139), "ended with exit code 139", "crashed"},
		{code(134), "ended with exit code 134", "aborted"},
		{code(0xC0000135), "ended with exit code 0xC0000135", "a DLL that it needs was not found"},
		{code(0xC0000999), "ended with exit code 0xC0000999", "Windows could not load"},
		{exit{signal: "SIGSEGV", number: 11}, "ended by signal SIGSEGV", "crashed"},
		{exit{signal: "SIGILL", number: 4}, "ended by signal SIGILL", "instruction"},
		{exit{}, "ended", ""},
	} {
		if c.x.String() != c.text || !strings.Contains(c.x.meaning(), c.meaning) || c.meaning == "" && c.x.meaning() != "" {
			t.Errorf("%q means %q; want %q, %q", c.x, c.x.meaning(), c.text, c.meaning)
		}
	}
	if got := exitOf(nil); got.String() != "ended" {
		t.Errorf("%q", got)
	}
}

// TestShellLine holds that a shell reads the words again.
func TestShellLine(t *testing.T) {
	words := []string{"a", "", "b c", "it's", `"x"`, "$HOME", "*", "--x=1", "a\nb", "é"}
	out, err := exec.Command("sh", "-c", "printf '%s\\0' "+shellLine(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSuffix(string(out), "\x00"); got != strings.Join(words, "\x00") {
		t.Errorf("%q", got)
	}
}

func TestEnvironmentOfAnEngine(t *testing.T) {
	s := fakeSpec(t)
	s.Environ = append(os.Environ(), "BENCHPROXY_UPSTREAM_KEY=secret", "KEPT=yes")
	p := startFake(t, s)
	waitReady(t, p)
	for name, want := range map[string]string{"BENCHPROXY_UPSTREAM_KEY": "", "KEPT": "yes", markerName: p.marker} {
		if got := get(t, p.URL()+"/env?name="+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
