package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Options say how a machine is looked at. The zero value of a field is its default.
type Options struct {
	Root   string        // below which /proc and /sys stand; "" = "/"
	Sample time.Duration // how long the use of the processors is watched; 0 = 500 ms
	// Tool runs a vendor's program and gives its output; nil runs the installed ones. Its error wraps exec.ErrNotFound
	// where the program is not installed.
	Tool func(ctx context.Context, name string, args ...string) ([]byte, error)
	// Own are processes whose children are ours, too; nil = this one.
	Own    []int
	Limits Limits
}

// toolTime is how long a vendor's program may take.
const toolTime = 10 * time.Second

// runTool runs an installed program.
func runTool(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	return cmd.Output()
}

// look is one look at a machine.
type look struct {
	o   Options
	ctx context.Context
	m   exchange.Machine
}

// Look reads the state of the machine, and judges whether it is busy. It takes as long as the sample and the vendors'
// tools do; ctx ends it early, and what was not read by then is absent.
func Look(ctx context.Context, o Options) exchange.Machine {
	if o.Root == "" {
		o.Root = "/"
	}
	if o.Sample == 0 {
		o.Sample = 500 * time.Millisecond
	}
	if o.Tool == nil {
		o.Tool = runTool
	}
	if o.Own == nil {
		o.Own = []int{selfPID()}
	}
	o.Limits = o.Limits.orDefaults()
	l := &look{o: o, ctx: ctx, m: exchange.Machine{Schema: 1, Taken: clock.Now().UTC(), Host: Read(o.Root), Absent: map[string]string{}}}
	l.cores()
	l.memory()
	l.processors()
	l.gpus()
	l.engines()
	l.m.Busy = busy(&l.m, o.Limits)
	return l.m
}

// absent notes why a field is null.
func (l *look) absent(field string, why error) { l.m.Absent[field] = oneLine(why.Error()) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// errNoFile says that the system keeps no such file.
var errNoFile = errors.New("the system does not tell")

// cores counts processors without their threads.
func (l *look) cores() {
	text := textOf(l.o.Root, cpuFile)
	seen := map[string]bool{}
	physical := ""
	for line := range strings.Lines(text) {
		switch key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) {
		case "physical id":
			physical = strings.TrimSpace(value)
		case "core id":
			seen[physical+"/"+strings.TrimSpace(value)] = true
		}
	}
	if n := len(seen); n > 0 {
		l.m.PhysicalCores = &n
		return
	}
	if runtime.GOOS == "darwin" {
		if n, err := l.sysctl("hw.physicalcpu"); err == nil {
			count := int(n)
			l.m.PhysicalCores = &count
			return
		}
	}
	l.absent("physical_cores", errNoFile)
}

// sysctl is a number that macOS tells.
func (l *look) sysctl(name string) (int64, error) {
	b, err := l.o.Tool(l.ctx, "sysctl", "-n", name)
	if err != nil {
		return 0, fmt.Errorf("run sysctl: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

const (
	memoryFile = "proc/meminfo"
	statFile   = "proc/stat"
)

func (l *look) memory() {
	values := map[string]int64{}
	for line := range strings.Lines(textOf(l.o.Root, memoryFile)) {
		key, value, _ := strings.Cut(line, ":")
		number, unit, _ := strings.Cut(strings.TrimSpace(value), " ")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && strings.TrimSpace(unit) == "kB" {
			values[key] = n << 10
		}
	}
	take := func(field, key string, into **int64) {
		if n, ok := values[key]; ok {
			*into = &n
			return
		}
		l.absent(field, errNoFile)
	}
	take("memory_bytes", "MemTotal", &l.m.MemoryBytes)
	take("memory_available_bytes", "MemAvailable", &l.m.MemoryAvailable)
	take("swap_used_bytes", "SwapTotal", &l.m.SwapUsed)
	if l.m.SwapUsed != nil {
		used := *l.m.SwapUsed - values["SwapFree"]
		l.m.SwapUsed = &used
	}
	if l.m.MemoryBytes == nil && runtime.GOOS == "darwin" {
		if n, err := l.sysctl("hw.memsize"); err == nil {
			l.m.MemoryBytes = &n
			delete(l.m.Absent, "memory_bytes")
		}
	}
}

// processors watches for a moment how much of the cores' time is used.
func (l *look) processors() {
	used, all, ok := cpuTimes(textOf(l.o.Root, statFile))
	if !ok {
		l.absent("cpu_busy", errNoFile)
		return
	}
	wait := time.NewTimer(l.o.Sample)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-l.ctx.Done():
		l.absent("cpu_busy", context.Cause(l.ctx))
		return
	}
	used2, all2, ok := cpuTimes(textOf(l.o.Root, statFile))
	if !ok || all2 <= all {
		l.absent("cpu_busy", errors.New("the clock of the processors did not move"))
		return
	}
	part := min(1, max(0, float64(used2-used)/float64(all2-all)))
	l.m.CPUBusy = &part
}

// cpuTimes are the first line of /proc/stat: time in use and all time, in ticks. Waiting for a disk is not use.
func cpuTimes(text string) (used, all int64, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[0] != "cpu" {
		return 0, 0, false
	}
	for i, f := range fields[1:] {
		if i >= 8 {
			break // time of guests is in the time of users
		}
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		all += n
		if i != 3 && i != 4 { // idle, iowait
			used += n
		}
	}
	return used, all, true
}

// below is a path below the root.
func (l *look) below(parts ...string) string {
	return filepath.Join(append([]string{l.o.Root}, parts...)...)
}
