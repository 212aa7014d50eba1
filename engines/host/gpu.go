package host

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// The vendors' tools.
const (
	nvidiaTool = "nvidia-smi"
	rocmTool   = "rocm-smi"
)

// errNoTool says that no tool is installed that tells of GPUs.
var errNoTool = errors.New("neither " + nvidiaTool + " nor " + rocmTool + " is installed")

// gpus asks both tools: a machine may have processors of both makers.
func (l *look) gpus() {
	var gpus []exchange.GPU
	var users []exchange.GPUUser
	var failed []error
	told, usersTold := false, true
	for _, ask := range []func() ([]exchange.GPU, []exchange.GPUUser, error, error){l.nvidia, l.rocm} {
		g, u, err, usersErr := ask()
		switch {
		case errors.Is(err, exec.ErrNotFound):
			continue
		case err != nil:
			failed = append(failed, err)
			continue
		case usersErr != nil:
			usersTold = false
			l.absent("gpu_users", usersErr)
		}
		told = true
		gpus, users = append(gpus, g...), append(users, u...)
	}
	switch {
	case len(failed) > 0: // a part of them would look like all
		l.absent("gpus", errors.Join(failed...))
		l.absent("gpu_users", errors.Join(failed...))
	case !told:
		l.absent("gpus", errNoTool)
		l.absent("gpu_users", errNoTool)
	default:
		l.m.GPUs = append([]exchange.GPU{}, gpus...)
		if usersTold {
			l.m.GPUUsers = l.others(users)
		}
	}
}

// nvidiaFields are asked for in this order.
const nvidiaFields = "index,name,uuid,driver_version,memory.total,memory.used,utilization.gpu,power.limit,temperature.gpu"

func (l *look) nvidia() (gpus []exchange.GPU, users []exchange.GPUUser, err, usersErr error) {
	out, err := l.o.Tool(l.ctx, nvidiaTool, "--query-gpu="+nvidiaFields, "--format=csv,noheader,nounits")
	if err != nil {
		return nil, nil, toolError(nvidiaTool, err), nil
	}
	if gpus, err = parseNvidia(out); err != nil {
		return nil, nil, toolError(nvidiaTool, err), nil
	}
	out, usersErr = l.o.Tool(l.ctx, nvidiaTool, "--query-compute-apps=gpu_uuid,pid,process_name,used_memory", "--format=csv,noheader,nounits")
	if usersErr == nil {
		users, usersErr = parseNvidiaUsers(out)
	}
	if usersErr != nil {
		usersErr = toolError(nvidiaTool, usersErr)
	}
	return gpus, users, nil, usersErr
}

// toolError names the tool, with what it said itself.
func toolError(tool string, err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("run %s: %w: %s", tool, err, oneLine(string(exit.Stderr)))
	}
	return fmt.Errorf("run %s: %w", tool, err)
}

// noDevices is what nvidia-smi prints where the driver knows of no GPU.
const noDevices = "No devices were found"

func parseNvidia(out []byte) ([]exchange.GPU, error) {
	rows, err := csvRows(out, 9)
	if err != nil {
		return nil, err
	}
	var gpus []exchange.GPU
	for _, r := range rows {
		index, err := strconv.Atoi(r[0])
		if err != nil {
			return nil, fmt.Errorf("the index %q is no number", r[0])
		}
		g := exchange.GPU{Index: index, Name: r[1], UUID: r[2], Source: nvidiaTool, MemoryBytes: mebibytes(r[4]), MemoryUsed: mebibytes(r[5]),
			Use: percent(r[6]), PowerLimitW: number(r[7]), Celsius: number(r[8])}
		if v, ok := stated(r[3]); ok {
			g.Driver = &v
		}
		gpus = append(gpus, g)
	}
	return gpus, nil
}

func parseNvidiaUsers(out []byte) ([]exchange.GPUUser, error) {
	rows, err := csvRows(out, 4)
	if err != nil {
		return nil, err
	}
	var users []exchange.GPUUser
	for _, r := range rows {
		pid, err := strconv.Atoi(r[1])
		if err != nil {
			return nil, fmt.Errorf("the process %q is no number", r[1])
		}
		users = append(users, exchange.GPUUser{Process: exchange.Process{PID: pid, Name: r[2]}, GPU: r[0], MemoryBytes: mebibytes(r[3])})
	}
	return users, nil
}

// csvRows are the lines of nvidia-smi, n fields each.
func csvRows(out []byte, n int) ([][]string, error) {
	if strings.HasPrefix(string(bytes.TrimSpace(out)), noDevices) {
		return nil, nil
	}
	r := csv.NewReader(bytes.NewReader(out))
	r.TrimLeadingSpace, r.FieldsPerRecord, r.LazyQuotes = true, n, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read its output: %w", err)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
	}
	return rows, nil
}

// stated tells a value from the words that stand in the place of one: [N/A], [Not Supported], N/A ...
func stated(text string) (string, bool) {
	plain := strings.ToLower(strings.Trim(text, "[] "))
	return text, plain != "" && plain != "n/a" && !strings.HasPrefix(plain, "not ") && !strings.HasPrefix(plain, "unknown") && !strings.HasPrefix(plain, "insufficient")
}

func number(text string) *float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	return &v
}

func percent(text string) *float64 {
	v := number(strings.TrimSuffix(text, "%"))
	if v != nil {
		*v /= 100
	}
	return v
}

func mebibytes(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	n <<= 20
	return &n
}

func wholeBytes(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

func (l *look) rocm() (gpus []exchange.GPU, users []exchange.GPUUser, err, usersErr error) {
	out, err := l.o.Tool(l.ctx, rocmTool, "--showproductname", "--showuniqueid", "--showdriverversion", "--showmeminfo", "vram", "--showuse", "--showtemp", "--showmaxpower", "--json")
	if noAMD(out, err) {
		return nil, nil, nil, nil
	}
	if err != nil {
		return nil, nil, toolError(rocmTool, err), nil
	}
	if gpus, err = parseROCm(out); err != nil {
		return nil, nil, toolError(rocmTool, err), nil
	}
	out, usersErr = l.o.Tool(l.ctx, rocmTool, "--showpids", "--json")
	if usersErr == nil {
		users, usersErr = parseROCmUsers(out)
	}
	if usersErr != nil {
		usersErr = toolError(rocmTool, usersErr)
	}
	return gpus, users, nil, usersErr
}

// noAMD says whether the tool told that there is no processor of its maker, which it does with a warning or a failure.
func noAMD(out []byte, err error) bool {
	said := string(out)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		said += string(exit.Stderr)
	}
	return strings.Contains(said, "No AMD GPUs") || strings.Contains(said, "amdgpu not found in modules")
}

// rocmObject is the document in rocm-smi's output; warnings may stand before it.
func rocmObject(out []byte) (map[string]map[string]string, error) {
	at := bytes.IndexByte(out, '{')
	if at < 0 {
		if len(bytes.TrimSpace(out)) == 0 {
			return nil, nil
		}
		return nil, fmt.Errorf("read its output: there is no JSON in %q", oneLine(string(out[:min(len(out), 200)])))
	}
	var raw map[string]map[string]any
	if err := json.Unmarshal(out[at:], &raw); err != nil {
		return nil, fmt.Errorf("read its output: %w", err)
	}
	doc := map[string]map[string]string{}
	for name, fields := range raw {
		doc[name] = map[string]string{}
		for key, v := range fields {
			doc[name][strings.ToLower(key)] = strings.TrimSpace(fmt.Sprint(v)) // versions of it differ in the case of keys
		}
	}
	return doc, nil
}

func parseROCm(out []byte) ([]exchange.GPU, error) {
	doc, err := rocmObject(out)
	if err != nil {
		return nil, err
	}
	var gpus []exchange.GPU
	for name, f := range doc {
		digits, card := strings.CutPrefix(name, "card")
		if !card {
			continue
		}
		index, err := strconv.Atoi(digits)
		if err != nil {
			return nil, fmt.Errorf("the card %q has no number", name)
		}
		g := exchange.GPU{Index: index, UUID: f["unique id"], Source: rocmTool, Architecture: f["gfx version"],
			MemoryBytes: wholeBytes(f["vram total memory (b)"]), MemoryUsed: wholeBytes(f["vram total used memory (b)"]), Use: percent(f["gpu use (%)"]),
			Celsius: number(f["temperature (sensor edge) (c)"]), PowerLimitW: number(f["max graphics package power (w)"])}
		for _, key := range []string{"card series", "device name", "card model", "card sku"} {
			if v, ok := stated(f[key]); ok {
				g.Name = v
				break
			}
		}
		if _, ok := stated(g.UUID); !ok {
			g.UUID = ""
		}
		if v, ok := stated(cmp.Or(doc["system"]["driver version"], f["driver version"])); ok {
			g.Driver = &v
		}
		gpus = append(gpus, g)
	}
	slices.SortFunc(gpus, func(a, b exchange.GPU) int { return a.Index - b.Index })
	return gpus, nil
}

// parseROCmUsers reads "PID123": "name, GPUs, VRAM bytes, SDMA, CUs".
func parseROCmUsers(out []byte) ([]exchange.GPUUser, error) {
	doc, err := rocmObject(out)
	if err != nil {
		return nil, err
	}
	var users []exchange.GPUUser
	for _, key := range slices.Sorted(maps.Keys(doc["system"])) {
		digits, is := strings.CutPrefix(key, "pid")
		pid, err := strconv.Atoi(digits)
		if !is || err != nil {
			continue
		}
		u := exchange.GPUUser{Process: exchange.Process{PID: pid}}
		fields := strings.Split(doc["system"][key], ",")
		u.Name = strings.TrimSpace(fields[0])
		if len(fields) > 2 {
			u.MemoryBytes = wholeBytes(strings.TrimSpace(fields[2]))
		}
		users = append(users, u)
	}
	return users, nil
}
