package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/benchproxy/benchproxy/engines"
	"github.com/benchproxy/benchproxy/engines/models"
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/replay/matrix"
)

// fit refuses engines that are to be up together and evidently do not fit beside each other, or marks what is measured of
// them. Only the sizes of weights are known before a start, so that what passes may still be too large.
func (b *benching) fit() error {
	for i := range b.plan.Steps {
		groups := b.plan.Steps[i].Groups
		if len(groups) < 2 {
			continue
		}
		why := evidently(b.plan, groups, &b.machine)
		if why == "" {
			continue
		}
		if !b.c.Bool("force") {
			return &exchange.Error{Op: "start engines together", Object: b.plan.Groups[groups[0]].Name, Side: exchange.SideClient, Cause: fmt.Errorf("%s", why),
				Hint: "--order alternate has one of them up at a time; --force measures all the same, and the records say so"}
		}
		note(b.Stderr, "warning: %s", why)
		for _, g := range groups {
			b.crowded = append(b.crowded, b.plan.Groups[g].Name)
		}
	}
	return nil
}

// evidently is why the weights of groups are more than the memory they are to be in, "" where that is not known.
func evidently(p *matrix.Plan, groups []int, m *exchange.Machine) string {
	var onHost, onGPU int64
	devices, mapped := map[string]bool{}, map[string]bool{}
	for _, i := range groups {
		g := &p.Groups[i]
		if g.Launch.Transport != matrix.TransportServer {
			continue
		}
		gpu := g.Launch.Registry.Kind == engines.KindGPU
		for _, path := range []string{g.Launch.Model.Weights, g.Launch.Model.Projector, g.Launch.Drafter} {
			size := sizeOf(path)
			switch {
			case gpu && g.Launch.CPUMoE == "":
				onGPU += size
			case gpu: // how much of it stays on the host is not known
			case !mapped[path]: // a file that two engines map is in memory once
				mapped[path] = true
				onHost += size
			}
		}
		if gpu {
			if len(g.Launch.Devices) == 0 {
				devices[""] = true
			}
			for _, d := range g.Launch.Devices {
				devices[d] = true
			}
		}
	}
	if have := gpuMemory(m, devices); have > 0 && onGPU > have {
		return fmt.Sprintf("their weights are %s, and the GPUs they are to be on have %s", bytesText(onGPU), bytesText(have))
	}
	if m.MemoryBytes != nil && onHost > *m.MemoryBytes {
		return fmt.Sprintf("their weights are %s, and the machine has %s", bytesText(onHost), bytesText(*m.MemoryBytes))
	}
	return ""
}

// gpuMemory is what the GPUs of some devices have together, all of them for ""; 0 when that is not known.
func gpuMemory(m *exchange.Machine, devices map[string]bool) (sum int64) {
	for i := range m.GPUs {
		if !devices[""] && !devices[strconv.Itoa(m.GPUs[i].Index)] {
			continue
		}
		if m.GPUs[i].MemoryBytes == nil {
			return 0
		}
		sum += *m.GPUs[i].MemoryBytes
	}
	return sum
}

// sizeOf is the size of a model file with all its parts; 0 for one that is not there.
func sizeOf(path string) (sum int64) {
	parts, err := models.Shards(filepath.Base(path))
	if path == "" || err != nil {
		return 0
	}
	for _, name := range slices.Compact(parts) {
		if st, err := os.Stat(filepath.Join(filepath.Dir(path), name)); err == nil && st.Mode().IsRegular() {
			sum += st.Size()
		}
	}
	return sum
}
