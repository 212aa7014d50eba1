package host

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Limits are the bounds below which a machine is quiet enough to measure on. The zero value of a field is its default.
type Limits struct {
	CPU          float64 // part of all cores' time in use; 0 = 0.2
	GPU          float64 // part of a GPU's time in use; 0 = 0.1
	GPUMemory    int64   // bytes that one other program holds of a GPU; 0 = 512 MiB: a desktop stays below it
	EngineMemory int64   // bytes that another engine holds; 0 = 1 GiB: one without a model stays below it
}

func (l Limits) orDefaults() Limits {
	l.CPU, l.GPU = cmp.Or(l.CPU, 0.2), cmp.Or(l.GPU, 0.1)
	l.GPUMemory, l.EngineMemory = cmp.Or(l.GPUMemory, 512<<20), cmp.Or(l.EngineMemory, 1<<30)
	return l
}

// busy are the reasons why a measurement would be disturbed. What is not known is no reason.
func busy(m *exchange.Machine, l Limits) []string {
	out := []string{}
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case m.CPUBusy != nil && *m.CPUBusy > l.CPU:
		add("%.0f %% of the processors' time is in use", 100**m.CPUBusy)
	case m.CPUBusy == nil && m.Host.Load1 != nil && m.Host.Cores > 0 && *m.Host.Load1 > l.CPU*float64(m.Host.Cores):
		add("the load of the last minute is %.1f on %d processors", *m.Host.Load1, m.Host.Cores)
	}
	for _, g := range m.GPUs {
		if g.Use != nil && *g.Use > l.GPU {
			add("GPU %d (%s) is in use for %.0f %% of its time", g.Index, g.Name, 100**g.Use)
		}
	}
	named := map[int]bool{}
	for _, u := range m.GPUUsers {
		if u.MemoryBytes != nil && *u.MemoryBytes > l.GPUMemory {
			named[u.PID] = true
			add("%s (pid %d) holds %d MiB of a GPU", u.Name, u.PID, *u.MemoryBytes>>20)
		}
	}
	for _, p := range m.Engines {
		if p.Resident != nil && *p.Resident > l.EngineMemory && !named[p.PID] {
			add("%s (pid %d), another engine, holds %d MiB of memory", p.Name, p.PID, *p.Resident>>20)
		}
	}
	return out
}

// Refusal is why a run should not begin on a machine, nil when nothing disturbs it.
func Refusal(m *exchange.Machine) error {
	if len(m.Busy) == 0 {
		return nil
	}
	return &exchange.Error{Op: "begin run", Object: "on this machine", Side: exchange.SideClient,
		Cause: fmt.Errorf("it is busy: %s", strings.Join(m.Busy, "; ")), Hint: "stop what disturbs it, or measure all the same with --force"}
}
