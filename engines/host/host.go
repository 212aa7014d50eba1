package host

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// Where Linux tells about the machine. Elsewhere these files are not there, and the facts are null.
const (
	kernelFile      = "proc/sys/kernel/osrelease"
	cpuFile         = "proc/cpuinfo"
	loadFile        = "proc/loadavg"
	governorFile    = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
	clocksourceFile = "sys/devices/system/clocksource/clocksource0/current_clocksource"
	productFile     = "sys/class/dmi/id/sys_vendor"
)

// Read tells what the machine is whose files stand below root, "/" for the one we run on.
func Read(root string) exchange.Host {
	h := exchange.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), MaxProcs: runtime.GOMAXPROCS(0)}
	if name, err := os.Hostname(); err == nil && name != "" {
		h.Name = &name
	}
	h.Kernel, h.Governor, h.Clocksource = lineOf(root, kernelFile), lineOf(root, governorFile), lineOf(root, clocksourceFile)
	cpu := textOf(root, cpuFile)
	if model, ok := cpuField(cpu, "model name"); ok {
		h.CPU = &model
	}
	h.Virtual = virtual(cpu, textOf(root, productFile))
	if fields := strings.Fields(textOf(root, loadFile)); len(fields) > 0 {
		if load, err := strconv.ParseFloat(fields[0], 64); err == nil {
			h.Load1 = &load
		}
	}
	return h
}

// textOf is the content of a small file, "" when it cannot be read.
func textOf(root, file string) string {
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return ""
	}
	return string(b)
}

// lineOf is the one line of a file; nil when it is not there or empty.
func lineOf(root, file string) *string {
	line := strings.TrimSpace(textOf(root, file))
	if line == "" {
		return nil
	}
	return &line
}

// cpuField is a field of the first processor in the text of /proc/cpuinfo.
func cpuField(text, name string) (value string, ok bool) {
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// hypervisors are makers of machines that are none.
var hypervisors = []string{"qemu", "vmware", "xen", "amazon ec2", "google", "innotek", "parallels", "openstack", "alibaba cloud"}

// virtual tells a virtual machine from a real one: by the processor's hypervisor bit, which x86 shows, else by the maker's
// name. It is nil where neither is told.
func virtual(cpu, maker string) *bool {
	is := false
	flags, ok := cpuField(cpu, "flags")
	if ok {
		is = strings.Contains(" "+flags+" ", " hypervisor ")
		return &is
	}
	maker = strings.ToLower(strings.TrimSpace(maker))
	if maker == "" {
		return nil
	}
	for _, h := range hypervisors {
		is = is || strings.HasPrefix(maker, h)
	}
	return &is
}
