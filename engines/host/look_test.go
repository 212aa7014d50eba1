package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for file, text := range files {
		path := filepath.Join(root, filepath.FromSlash(file))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func recorded(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tools plays the vendors' tools: what the beginning of a command line gives.
type tools map[string]any

func (f tools) run(_ context.Context, name string, args ...string) ([]byte, error) {
	line := name + " " + strings.Join(args, " ")
	for start, out := range f {
		if strings.HasPrefix(line, start) {
			if err, failed := out.(error); failed {
				return nil, err
			}
			return out.([]byte), nil
		}
	}
	return nil, &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// proc are the files of a process.
func proc(pid, parent int, rss string, argv ...string) map[string]string {
	dir := fmt.Sprintf("proc/%d/", pid)
	return map[string]string{dir + "cmdline": strings.Join(argv, "\x00") + "\x00", dir + "stat": fmt.Sprintf("%d (a (b) c) S %d 1 1", pid, parent),
		dir + "status": "Name:\tx\nVmRSS:\t  " + rss + " kB\n"}
}

func of[T any](v T) *T { return &v }

// machine is one with engines, of which two are ours, and three GPUs.
func machine(t *testing.T) exchange.Machine {
	t.Helper()
	root := t.TempDir()
	put(t, root, map[string]string{
		cpuFile:    "processor : 0\nmodel name : X\nphysical id : 0\ncore id : 0\n\nprocessor : 1\nphysical id : 0\ncore id : 0\n\nprocessor : 2\nphysical id : 0\ncore id : 1\n",
		memoryFile: "MemTotal:       65536000 kB\nMemFree: 1 kB\nMemAvailable:   32768000 kB\nSwapTotal: 2000 kB\nSwapFree: 500 kB\nHugePages_Total: 3\n",
		statFile:   "cpu  100 0 50 1000 20 5 5 0 40 0\ncpu0 1 2 3\n",
	})
	for _, p := range []map[string]string{
		proc(1, 0, "9000", "/sbin/init"), proc(4711, 1, "20000000", "/opt/llama.cpp/llama-server", "-m", "m.gguf", "--api-key", "s3cret"),
		proc(50, 1, "50000", "/usr/bin/python3.11", "-m", "vllm.entrypoints.openai.api_server"), proc(60, 1, "1", "vim", "llama-server.c"),
		proc(100, 1, "30000", "benchproxy", "bench"), proc(101, 100, "9000000", "llama-server"), proc(102, 101, "1", "/bin/ollama", "runner"),
		{"proc/7/cmdline": "", "proc/self/cmdline": "x\x00"}, {"proc/70/cmdline": "vLLM::EngineCore_0\x00"},
	} {
		put(t, root, p)
	}
	return Look(context.Background(), Options{Root: root, Sample: time.Millisecond, Own: []int{100}, Tool: tools{
		"nvidia-smi --query-gpu": recorded(t, "nvidia-gpus.csv"), "nvidia-smi --query-compute": recorded(t, "nvidia-users.csv")}.run})
}

func TestLookFindsEngines(t *testing.T) {
	m := machine(t)
	want := []exchange.Process{
		{PID: 50, Name: "python3.11", Engine: "vllm", Command: []string{"/usr/bin/python3.11", "-m", "vllm.entrypoints.openai.api_server"}, Resident: of(int64(50000 << 10))},
		{PID: 70, Name: "vLLM::EngineCore_0", Engine: "vllm"},
		{PID: 4711, Name: "llama-server", Engine: "llamacpp", Command: []string{"/opt/llama.cpp/llama-server", "-m", "m.gguf", "--api-key", "[REDACTED]"}, Resident: of(int64(20000000 << 10))},
	}
	if diff := cmp.Diff(want, m.Engines, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Command" }, cmp.Ignore())); diff != "" {
		t.Errorf("engines (-want +got)\n%s", diff)
	}
	if strings.Contains(fmt.Sprint(m.Engines), "s3cret") {
		t.Error("a credential stands in a command line")
	}
}

func TestLook(t *testing.T) {
	m := machine(t)
	if *m.PhysicalCores != 2 || *m.MemoryBytes != 65536000<<10 || *m.MemoryAvailable != 32768000<<10 || *m.SwapUsed != 1500<<10 || m.Schema != 1 || m.Taken.IsZero() {
		t.Errorf("%+v", m)
	}
	if m.CPUBusy != nil || m.Absent["cpu_busy"] != "the clock of the processors did not move" || len(m.Absent) != 1 {
		t.Errorf("absent %v", m.Absent)
	}
	if len(m.GPUs) != 3 || len(m.GPUUsers) != 3 || m.GPUUsers[0].Engine != "llamacpp" || *m.GPUUsers[0].MemoryBytes != 18000<<20 || m.GPUUsers[2].MemoryBytes != nil {
		t.Errorf("%+v, %+v", m.GPUs, m.GPUUsers)
	}
	busy := strings.Join(m.Busy, "\n")
	if busy != "GPU 0 (NVIDIA GeForce RTX 4090) is in use for 97 % of its time\nllama-server (pid 4711) holds 18000 MiB of a GPU" {
		t.Errorf("busy: %s", busy)
	}
	if err := Refusal(&m); err == nil || !strings.Contains(err.Error(), "pid 4711") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("%v", err)
	}
}

// TestLookOfABareMachine holds that what nobody tells is null, with its reason.
func TestLookOfABareMachine(t *testing.T) {
	m := Look(context.Background(), Options{Root: t.TempDir(), Tool: tools{}.run})
	if m.PhysicalCores != nil || m.MemoryBytes != nil || m.MemoryAvailable != nil || m.SwapUsed != nil || m.CPUBusy != nil || m.GPUs != nil || m.GPUUsers != nil || m.Engines != nil {
		t.Errorf("%+v", m)
	}
	for _, field := range []string{"physical_cores", "memory_bytes", "memory_available_bytes", "swap_used_bytes", "cpu_busy", "gpus", "gpu_users", "engines"} {
		if m.Absent[field] == "" {
			t.Errorf("%s is null without a reason", field)
		}
	}
	if len(m.Busy) != 0 || Refusal(&m) != nil || m.Busy == nil {
		t.Errorf("busy %v", m.Busy)
	}
}

// TestCPUIsWatched changes the ticks while they are watched.
func TestCPUIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		put(t, root, map[string]string{statFile: "cpu  100 0 50 1000 20 5 5 0 40 0\n"})
		time.AfterFunc(200*time.Millisecond, func() { put(t, root, map[string]string{statFile: "cpu  130 0 60 1140 40 5 5 0 90 0\n"}) })
		m := Look(context.Background(), Options{Root: root, Tool: tools{}.run})
		if m.CPUBusy == nil || *m.CPUBusy != 0.2 {
			t.Errorf("%v", m.CPUBusy)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if m = Look(ctx, Options{Root: root, Sample: time.Minute, Tool: tools{}.run}); m.CPUBusy != nil || m.Absent["cpu_busy"] != "context deadline exceeded" {
			t.Errorf("%v, %v", m.CPUBusy, m.Absent)
		}
	})
	for _, text := range []string{"", "cpu", "cpu a b c d e", "intr 1 2 3 4 5"} {
		if _, _, ok := cpuTimes(text); ok {
			t.Errorf("%q is read", text)
		}
	}
}

func TestNvidia(t *testing.T) {
	got, err := parseNvidia(recorded(t, "nvidia-gpus.csv"))
	driver := of("550.54.14")
	want := []exchange.GPU{
		{Index: 0, Name: "NVIDIA GeForce RTX 4090", UUID: "GPU-6e1b8f0a-2c4d-4f5e-9a77-0c9f3a1b2d3e", Driver: driver, MemoryBytes: of(int64(24564 << 20)),
			MemoryUsed: of(int64(18211 << 20)), Use: of(0.97), PowerLimitW: of(450.0), Celsius: of(61.0), Source: "nvidia-smi"},
		{Index: 1, Name: "NVIDIA A40", UUID: "GPU-aaaa8f0a-2c4d-4f5e-9a77-0c9f3a1b2d3e", Driver: driver, MemoryBytes: of(int64(46068 << 20)), MemoryUsed: of(int64(4 << 20)),
			Use: of(0.0), Celsius: of(33.0), Source: "nvidia-smi"},
		{Index: 2, Name: "NVIDIA GH200 480GB", UUID: "GPU-bbbb8f0a-2c4d-4f5e-9a77-0c9f3a1b2d3e", Source: "nvidia-smi"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, text := range []string{"0, X\n", "zero, a, b, c, d, e, f, g, h\n", "Failed to initialize NVML: Driver/library version mismatch\n"} {
		if _, err := parseNvidia([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	if got, err := parseNvidia([]byte("No devices were found\n")); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseNvidiaUsers([]byte("GPU-1, x, y, z\n")); err == nil {
		t.Error("a process without a number is read")
	}
}

func TestROCm(t *testing.T) {
	got, err := parseROCm(recorded(t, "rocm.txt"))
	driver := of("6.8.5")
	want := []exchange.GPU{
		{Index: 0, Name: "AMD Radeon 8060S Graphics", Driver: driver, MemoryBytes: of(int64(536870912)), MemoryUsed: of(int64(154337280)), Use: of(0.0), Architecture: "gfx1151", Source: "rocm-smi"},
		{Index: 1, Name: "0x744c", UUID: "0x8a1b2c3d4e5f6071", Driver: driver, MemoryBytes: of(int64(25753026560)), MemoryUsed: of(int64(27045888)), Use: of(0.12),
			PowerLimitW: of(303.0), Celsius: of(45.0), Architecture: "gfx1100", Source: "rocm-smi"},
	}
	want[1].Name = "Radeon RX 7900 XTX"
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	users, err := parseROCmUsers(recorded(t, "rocm-users.txt"))
	wantUsers := []exchange.GPUUser{{Process: exchange.Process{PID: 4711, Name: "llama-server"}, MemoryBytes: of(int64(21474836480))},
		{Process: exchange.Process{PID: 77, Name: "gnome-shell"}, MemoryBytes: of(int64(90000000))}}
	if diff := cmp.Diff(wantUsers, users); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, text := range []string{"ERROR", "{", `{"card0": 7}`, `{"cardX": {}}`} {
		if _, err := parseROCm([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	if users, err := parseROCmUsers([]byte(`{"system": {"PIDx": "a", "other": "b"}}`)); err != nil || len(users) != 0 {
		t.Errorf("%v, %v", users, err)
	}
}

// TestTools holds what the two tools come to together, and where one of them fails.
func TestTools(t *testing.T) {
	nvidia, users := recorded(t, "nvidia-gpus.csv"), recorded(t, "nvidia-users.csv")
	exit := &exec.ExitError{Stderr: []byte("NVIDIA-SMI has failed because it\ncouldn't communicate with the driver")}
	for name, c := range map[string]struct {
		tools    tools
		gpus     int
		absent   string // why gpus are null
		usersWhy string
	}{
		"both":           {tools: tools{"nvidia-smi --query-gpu": nvidia, "nvidia-smi --query-c": users, "rocm-smi --showproduct": recorded(t, "rocm.txt"), "rocm-smi --showpids": recorded(t, "rocm-users.txt")}, gpus: 5},
		"no AMD":         {tools: tools{"nvidia-smi --query-gpu": nvidia, "nvidia-smi --query-c": users, "rocm-smi": []byte("WARNING: No AMD GPUs specified\n")}, gpus: 3},
		"no AMD driver":  {tools: tools{"rocm-smi": &exec.ExitError{Stderr: []byte("ERROR:root:Driver not initialized (amdgpu not found in modules)")}}},
		"a driver fails": {tools: tools{"nvidia-smi": exit, "rocm-smi": recorded(t, "rocm.txt")}, gpus: -1, absent: "because it couldn't communicate", usersWhy: "nvidia-smi"},
		"users fail":     {tools: tools{"nvidia-smi --query-gpu": nvidia, "nvidia-smi --query-c": exit}, gpus: 3, usersWhy: "run nvidia-smi"},
		"AMD users fail": {tools: tools{"rocm-smi --showproduct": recorded(t, "rocm.txt"), "rocm-smi --showpids": []byte("oops")}, gpus: 2, usersWhy: "there is no JSON"},
		"nonsense":       {tools: tools{"nvidia-smi": []byte("a,b\n")}, gpus: -1, absent: "read its output", usersWhy: "read its output"},
		"AMD nonsense":   {tools: tools{"rocm-smi": []byte("{")}, gpus: -1, absent: "read its output", usersWhy: "rocm-smi"},
		"AMD fails":      {tools: tools{"rocm-smi": errors.New("killed")}, gpus: -1, absent: "run rocm-smi: killed", usersWhy: "killed"},
		"none":           {tools: tools{}, gpus: -1, absent: "neither nvidia-smi nor rocm-smi", usersWhy: "neither"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Look(context.Background(), Options{Root: t.TempDir(), Tool: c.tools.run})
			switch {
			case (m.GPUs == nil) != (c.gpus < 0) || c.gpus >= 0 && len(m.GPUs) != c.gpus || !strings.Contains(m.Absent["gpus"], c.absent):
				t.Errorf("%d GPUs, absent %v", len(m.GPUs), m.Absent)
			case (m.GPUUsers == nil) != (c.usersWhy != "") || !strings.Contains(m.Absent["gpu_users"], c.usersWhy):
				t.Errorf("users %+v, absent %v", m.GPUUsers, m.Absent)
			}
		})
	}
}

func TestEngineOf(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/llama-server -m x": "llamacpp", "ollama serve": "ollama", "/opt/ollama runner --model x": "ollama", "vllm serve m": "vllm",
		"python3 -m sglang.launch_server": "sglang", "/v/bin/python3.12 /v/bin/vllm serve m": "vllm", "VLLM::EngineCore_0": "vllm", "sglang::scheduler": "sglang",
		"dotnet /x/TensorSharp.Server.Host.dll --port 1": "tensorsharp", `C:\x\llama-server.exe -m y`: "llamacpp", "python train.py --engine vllm": "",
		"vim llama-server": "", "grep -r ollama": "", "python": "", "": "", "bash -c sleep": "", "uv run litellm": "", "/x/loom-serve": "loom", "python3 -u /v/bin/litellm": "litellm",
	} {
		if got := engineOf(strings.Fields(line)); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

func TestBusy(t *testing.T) {
	quiet := exchange.Machine{CPUBusy: of(0.2), Host: exchange.Host{Cores: 4, Load1: of(9.0)}, GPUs: []exchange.GPU{{Use: of(0.1)}, {}},
		GPUUsers: []exchange.GPUUser{{MemoryBytes: of(int64(512 << 20))}, {}}, Engines: []exchange.Process{{Resident: of(int64(1 << 30))}, {}}}
	if got := busy(&quiet, Limits{}.orDefaults()); len(got) != 0 {
		t.Errorf("%v", got)
	}
	for want, m := range map[string]exchange.Machine{
		"21 % of the processors' time is in use":              {CPUBusy: of(0.21)},
		"the load of the last minute is 0.9 on 4 processors":  {Host: exchange.Host{Cores: 4, Load1: of(0.9)}},
		"GPU 3 (G) is in use for 11 % of its time":            {GPUs: []exchange.GPU{{Index: 3, Name: "G", Use: of(0.11)}}},
		"x (pid 5) holds 513 MiB of a GPU":                    {GPUUsers: []exchange.GPUUser{{Process: exchange.Process{PID: 5, Name: "x"}, MemoryBytes: of(int64(513 << 20))}}},
		"e (pid 6), another engine, holds 1025 MiB of memory": {Engines: []exchange.Process{{PID: 6, Name: "e", Resident: of(int64(1025 << 20))}}},
	} {
		if diff := cmp.Diff([]string{want}, busy(&m, Limits{}.orDefaults())); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
	if got := busy(&exchange.Machine{CPUBusy: of(0.4)}, Limits{CPU: 0.5}.orDefaults()); len(got) != 0 {
		t.Errorf("a limit of the user's: %v", got)
	}
}

// TestLookAtThisMachine holds that the real thing comes to an end and sees no engine in this test.
func TestLookAtThisMachine(t *testing.T) {
	m := Look(context.Background(), Options{Sample: 10 * time.Millisecond})
	again := Look(context.Background(), Options{Sample: 10 * time.Millisecond})
	if diff := cmp.Diff(m.Host, again.Host, cmpopts.IgnoreFields(exchange.Host{}, "Load1")); diff != "" {
		t.Errorf("the machine changed (-first +second)\n%s", diff)
	}
}
