package launch

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/benchproxy/benchproxy/engines"
)

// deviceScan looks at the output of an engine for what shows its device, and for the texts of its hints.
type deviceScan struct {
	lines []deviceLine
	texts []string // of hints, in lower case

	mu       sync.Mutex
	rank     int // of the line that was seen: a lower one is stronger
	device   *string
	evidence string
	listed   bool // it comes from a list of devices, which a line of the start overrules
	found    map[string]bool
}

type deviceLine struct {
	match  *regexp.Regexp
	device string
}

func newDeviceScan(l *engines.Launch) *deviceScan {
	d := &deviceScan{found: map[string]bool{}}
	if l == nil {
		return d
	}
	if l.Devices != nil {
		for _, s := range l.Devices.Seen {
			if re, err := regexp.Compile(s.Match); err == nil { // profiles are checked when they are read
				d.lines = append(d.lines, deviceLine{re, s.Device})
			}
		}
	}
	for _, h := range l.Hints {
		for _, t := range h.Log {
			d.texts = append(d.texts, strings.ToLower(t))
		}
	}
	return d
}

// longestScanned is how much of a line is looked at.
const longestScanned = 4 << 10

// see looks at a line of the output.
func (d *deviceScan) see(line string) { d.look(line, false) }

func (d *deviceScan) look(line string, listed bool) {
	line = line[:min(len(line), longestScanned)]
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lookForTexts(line)
	for i, l := range d.lines {
		if d.device != nil && !d.listed && i >= d.rank {
			return // nothing weaker counts
		}
		m := l.match.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		device := normalDevice(string(l.match.ExpandString(nil, l.device, line, m)))
		d.device, d.evidence, d.rank, d.listed = &device, strings.TrimSpace(line), i, listed
		return
	}
}

func (d *deviceScan) lookForTexts(line string) {
	if len(d.found) == len(d.texts) {
		return
	}
	low := strings.ToLower(line)
	for _, t := range d.texts {
		if !d.found[t] && strings.Contains(low, t) {
			d.found[t] = true
		}
	}
}

// normalDevice is a device as records name it.
func normalDevice(s string) string {
	s = strings.ToLower(s)
	if s == "mtl" {
		return "metal"
	}
	return s
}

// seen is the device that the output showed, with the line that did.
func (d *deviceScan) seen() (device *string, evidence string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.device, d.evidence
}

// printed reports whether one of the texts was in the output.
func (d *deviceScan) printed(texts []string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(texts, func(t string) bool { return d.found[strings.ToLower(t)] })
}

// listDevices runs the program once for its list of devices, where it has one. A list shows what there is, not what is
// used: a backend of the CPU takes nothing from it, nor does one whose devices are not in it.
func (p *Process) listDevices(ctx context.Context) {
	l := p.spec.Engine.Launch
	if l == nil || l.Devices == nil || len(l.Devices.List) == 0 || p.spec.Backend.Kind != engines.KindGPU {
		return
	}
	out, err := tool{path: p.spec.Program, args: l.Devices.List, env: p.environ(), dir: p.spec.Dir, time: p.spec.Times.Grace}.run(ctx)
	if err != nil {
		return // an older build does not know the flag
	}
	for line := range strings.Lines(out) {
		p.devs.look(strings.TrimRight(line, "\r\n"), true)
	}
	p.devs.listEnded(strings.Join(l.Devices.List, " "))
}

// listEnded notes a list that shows no device: what it would run on is the CPU.
func (d *deviceScan) listEnded(command string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.device == nil {
		cpu := engines.KindCPU
		d.device, d.evidence, d.listed = &cpu, command+" shows no device", true
	}
}
