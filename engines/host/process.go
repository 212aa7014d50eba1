package host

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/redact"
)

func selfPID() int { return os.Getpid() }

// programs are names of inference engines' programs, of the modules that interpreters run, and which engine they are.
var programs = map[string]string{
	"llama-server": "llamacpp", "llama-cli": "llamacpp", "llama-bench": "llamacpp", "llama-swap": "llamacpp", "llamafile": "llamacpp", "ollama": "ollama",
	"vllm": "vllm", "vllm.entrypoints.openai.api_server": "vllm", "sglang": "sglang", "sglang.launch_server": "sglang",
	"loom-serve": "loom", "tensorsharp.server.host": "tensorsharp", "litellm": "litellm", "prism": "prism", "prism-local": "prism",
	"tabbyapi": "tabbyapi", "lms": "lmstudio", "lm-studio": "lmstudio", "lm studio": "lmstudio", "llmster": "lmstudio", "foundry": "foundry", "foundrylocal": "foundry",
	"strata": "strata", "halogen": "halogen", "ninfer": "ninfer", "tensorfold": "tensorfold", "koboldcpp": "koboldcpp", "text-generation-launcher": "tgi",
	"text-generation-server": "tgi", "mlx_lm.server": "mlx", "mlx_lm": "mlx", "trtllm-serve": "tensorrt-llm", "tritonserver": "triton", "lmdeploy": "lmdeploy",
	"aphrodite": "aphrodite", "local-ai": "localai",
}

// interpreters run programs that stand among their arguments.
var interpreters = []string{"python", "python3", "dotnet", "node", "uv", "sh", "bash", "env"}

// engineOf is the engine that a command line looks like; "" for none.
func engineOf(argv []string) string {
	for i, arg := range argv {
		name := programName(arg)
		if e := programs[name]; e != "" {
			return e
		}
		if i == 0 && !slices.ContainsFunc(interpreters, func(s string) bool {
			return name == s || strings.HasPrefix(name, s+".") || strings.HasPrefix(name, s+"3.")
		}) {
			return ""
		}
		if i > 0 && !strings.HasPrefix(arg, "-") {
			return "" // the program that the interpreter runs
		}
	}
	return ""
}

// programName is the name of a program without its directory and its kind. A title that a program gave itself has further
// words behind its name.
func programName(arg string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(arg, `\`, "/")))
	if title, _, more := strings.Cut(name, " "); more && programs[name] == "" {
		name = strings.TrimSuffix(title, ":")
	}
	name, _, _ = strings.Cut(name, "::") // a part of an engine: VLLM::EngineCore
	for _, kind := range []string{".exe", ".dll", ".py"} {
		name = strings.TrimSuffix(name, kind)
	}
	return name
}

// running is a process as /proc tells.
type running struct {
	exchange.Process
	parent int
}

// processes are all that run; an error where the system does not tell.
func (l *look) processes() (map[int]running, error) {
	entries, err := os.ReadDir(l.below("proc"))
	if err != nil {
		return nil, errNoFile
	}
	out := map[int]running{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := l.process(pid); ok {
			out[pid] = p
		}
	}
	if len(out) == 0 {
		return nil, errNoFile
	}
	return out, nil
}

// process reads one; ok is false for one that has ended, and for threads of the kernel.
func (l *look) process(pid int) (p running, ok bool) {
	dir := l.below("proc", strconv.Itoa(pid))
	argv := strings.Split(strings.TrimRight(textOf(dir, "cmdline"), "\x00"), "\x00")
	if argv[0] == "" {
		return p, false
	}
	p.PID, p.Name, p.Engine, p.Command = pid, filepath.Base(argv[0]), engineOf(argv), redact.Args(argv)
	// "PID (NAME) STATE PARENT ...": a name may hold blanks and brackets
	stat := textOf(dir, "stat")
	if fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(fields) > 1 {
		p.parent, _ = strconv.Atoi(fields[1]) // 0, the parent of none, where it is no number
	}
	for line := range strings.Lines(textOf(dir, "status")) {
		if value, is := strings.CutPrefix(line, "VmRSS:"); is {
			if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64); err == nil {
				n <<= 10
				p.Resident = &n
			}
		}
	}
	return p, true
}

// engines lists the inference engines that run and are not ours.
func (l *look) engines() {
	all, err := l.processes()
	if err != nil {
		l.absent("engines", err)
		return
	}
	l.m.Engines = []exchange.Process{}
	for _, p := range all {
		if p.Engine != "" && !l.own(p.PID, all) {
			l.m.Engines = append(l.m.Engines, p.Process)
		}
	}
	slices.SortFunc(l.m.Engines, func(a, b exchange.Process) int { return a.PID - b.PID })
}

// own says whether a process is one of ours, or was started by one.
func (l *look) own(pid int, all map[int]running) bool {
	for range len(all) + 1 {
		if slices.Contains(l.o.Own, pid) {
			return true
		}
		p, known := all[pid]
		if !known || p.parent == pid {
			return false
		}
		pid = p.parent
	}
	return false
}

// others leaves out our own users of GPUs, and adds what the system knows of the rest.
func (l *look) others(users []exchange.GPUUser) []exchange.GPUUser {
	all, err := l.processes()
	if err != nil && !errors.Is(err, errNoFile) {
		all = nil
	}
	out := []exchange.GPUUser{}
	for _, u := range users {
		if l.own(u.PID, all) {
			continue
		}
		if p, known := all[u.PID]; known {
			u.Process = p.Process
		}
		out = append(out, u)
	}
	return out
}
