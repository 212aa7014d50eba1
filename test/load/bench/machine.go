package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machine is where it ran. Load averages and stolen time tell how much else did.
type machine struct {
	CPUs       int      `json:"cpus"`
	Processor  string   `json:"processor"`
	Governor   string   `json:"governor"` // of the processor's clock, "" when the system shows none
	Virtual    bool     `json:"virtual"`
	MemoryMB   int64    `json:"memory_mb"`
	System     string   `json:"system"` // name and version
	Kernel     string   `json:"kernel"`
	LoadBefore string   `json:"load_before"`
	LoadAfter  string   `json:"load_after"`
	Stolen     *float64 `json:"stolen_percent"` // of processor time, by other guests of the host; null when the system does not tell

	began ticks
}

// version is what a target says of itself.
type version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// here is this machine, as it is before the run.
func here() machine {
	cpu := readFile("/proc/cpuinfo")
	kb, _ := strconv.ParseInt(strings.TrimSuffix(field(readFile("/proc/meminfo"), "MemTotal"), " kB"), 10, 64) // 0: not told
	return machine{
		CPUs: runtime.NumCPU(), Processor: field(cpu, "model name"), Virtual: strings.Contains(field(cpu, "flags"), "hypervisor"),
		Governor: firstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), MemoryMB: kb >> 10,
		System:     strings.Trim(field(strings.ReplaceAll(readFile("/etc/os-release"), "=", ":"), "PRETTY_NAME"), `"`),
		Kernel:     firstLine("/proc/sys/kernel/ostype") + " " + firstLine("/proc/sys/kernel/osrelease"),
		LoadBefore: loadAverage(), began: ticksOf(firstLine("/proc/stat")),
	}
}

// ended enters how it is after the run.
func (m *machine) ended() {
	m.LoadAfter = loadAverage()
	m.Stolen = m.began.stolen(ticksOf(firstLine("/proc/stat")))
}

// String is one line for people.
func (m machine) String() string {
	kind := ""
	if m.Virtual {
		kind = " (virtual)"
	}
	stolen := "unknown"
	if m.Stolen != nil {
		stolen = fmt.Sprintf("%.1f %%", *m.Stolen)
	}
	return fmt.Sprintf("%d x %s%s, %d MB, %s, %s, governor %s; load %s before and %s after, stolen %s",
		m.CPUs, dash(m.Processor), kind, m.MemoryMB, dash(m.System), m.Kernel, dash(m.Governor), m.LoadBefore, m.LoadAfter, stolen)
}

// ticks are counters of processor time since boot.
type ticks struct{ all, steal int64 }

// ticksOf reads the first line of /proc/stat: user nice system idle iowait irq softirq steal, and guests, whose time is
// in user's already.
func ticksOf(line string) ticks {
	var t ticks
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || i > 8 {
			continue
		}
		t.all += n
		if i == 8 {
			t.steal = n
		}
	}
	return t
}

func (t ticks) stolen(now ticks) *float64 {
	if now.all <= t.all {
		return nil
	}
	v := 100 * float64(now.steal-t.steal) / float64(now.all-t.all)
	return &v
}

// readFile is a file of the system; one that is not there says nothing.
func readFile(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

func firstLine(path string) string {
	line, _, _ := bytes.Cut([]byte(readFile(path)), []byte("\n"))
	return string(line)
}

// field is the value of the first line "name: value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func loadAverage() string {
	f := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(f[:min(1, len(f))], "")
}

// name enters the versions of what is measured.
func (r *report) name(ctx context.Context, cfg config) error {
	r.Versions = []version{{"Go (benchproxy, reverseproxy)", strings.TrimPrefix(runtime.Version(), "go")}}
	for _, p := range peerList {
		path, ok := cfg.peers[p.name]
		if !ok {
			continue
		}
		v, err := versionOf(ctx, p, path)
		if err != nil {
			return err
		}
		r.Versions = append(r.Versions, version{p.name, v})
	}
	return nil
}
