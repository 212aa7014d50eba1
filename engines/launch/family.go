package launch

import (
	"os"
	"slices"
	"sync"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
)

// family are the processes of an engine: what it started, and what those started, wherever they went. Each is told by what
// it cannot shed all of: the engine's group, the marker in its environment, its descent while that is to be seen, and the
// engine's output that it holds open. What gave up all of them before it was looked at is not found.
type family struct {
	leader int    // the engine, whose id is that of the group; noGroup for none
	marker string // "" for none
	output string // how the system names the pipe of the output; "" for none

	mu    sync.Mutex
	seen  map[int]string // found once: id -> start
	plain map[int]string // looked at and without the marker, which nobody gets later
}

func newFamily(leader int, marker string, output *os.File) *family {
	return &family{leader: leader, marker: marker, output: pipeName(output), seen: map[int]string{}, plain: map[int]string{}}
}

// has reports whether a process is one of the family.
func (f *family) has(pid int) bool {
	is := func(p process) bool { return p.pid == pid }
	return slices.ContainsFunc(f.living(false), is) || slices.ContainsFunc(f.living(true), is)
}

// kill kills all that live.
func (f *family) kill(leader *os.Process) {
	killGroup(leader)
	for _, p := range f.living(true) {
		killSame(p)
	}
}

// strangers are those of a list that only their descent or the output tells: of nobody else's making once this process
// has ended.
func (f *family) strangers(list []process) []relative {
	var out []relative
	for _, p := range list {
		if p.pid != f.leader && !carries(p.pid, f.marker) {
			out = append(out, relative{PID: p.pid, Start: p.start})
		}
	}
	return out
}

// relative is a process of a family, as notes keep it.
type relative struct {
	PID   int    `json:"pid"`
	Start string `json:"start"`
}

// Pauses between two looks at the family of an engine that runs. A look may take a hundredth of the time.
const (
	lookEvery = 2 * time.Second
	lookShare = 100
)

// watch looks at the family, notes those that only their descent tells, and says when to look again.
func (p *Process) watch() (next time.Duration) {
	began := clock.Now()
	list := p.family.living(false)
	select {
	case <-p.noted:
		p.entry.keep(p.family.strangers(list))
	default: // the start is not noted yet
	}
	return max(lookEvery, lookShare*clock.Since(began))
}
