package launch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/benchproxy/benchproxy/internal/clock"
	"github.com/benchproxy/benchproxy/internal/exchange"
)

// ErrBusy is wrapped by the error of a start whose devices another engine has.
var ErrBusy = errors.New("the devices are in use")

// noteVersion is the schema version of notes.
const noteVersion = 1

// entry is the note of a running engine in the state directory.
type entry struct {
	Schema     int        `json:"schema"`
	Engine     string     `json:"engine"`
	Model      string     `json:"model,omitempty"`
	Command    string     `json:"command"` // secrets masked
	Group      string     `json:"group,omitempty"`
	PID        int        `json:"pid"`
	Start      string     `json:"start"` // with the pid it names one process
	Marker     string     `json:"marker"`
	Relatives  []relative `json:"relatives,omitempty"` // of it that do not carry the marker
	Owner      int        `json:"owner"`               // process that started it
	OwnerStart string     `json:"owner_start"`
	Port       int        `json:"port"`
	Log        string     `json:"log,omitempty"`
	Since      time.Time  `json:"since"`

	file string
}

// Leftover is an engine, or a part of one, whose starter has died.
type Leftover struct {
	Engine  string    `json:"engine"`
	Model   string    `json:"model,omitempty"`
	Command string    `json:"command"` // secrets masked
	PIDs    []int     `json:"pids"`    // that still run
	Port    int       `json:"port"`
	Log     string    `json:"log,omitempty"`
	Since   time.Time `json:"since"`

	entry   entry
	members []process
}

// String names it for a person.
func (l Leftover) String() string {
	return fmt.Sprintf("%s of a run that was killed, started %s, on port %d: %s", l.Engine, l.Since.Format(time.DateTime), l.Port, processList(l.members))
}

// alive are the processes of a noted engine that still run. Nothing but a start time that was noted, or our marker, proves one.
func (e *entry) alive() []process {
	var out []process
	if p, ok := readProcess(e.PID); ok && !p.dead && e.Start != "" && p.start == e.Start {
		out = append(out, p)
	}
	f := newFamily(noGroup, e.Marker, nil)
	for _, r := range e.Relatives {
		f.seen[r.PID] = r.Start
	}
	for _, p := range f.living(false) {
		if p.pid != e.PID {
			out = append(out, p)
		}
	}
	return out
}

// noGroup is the group of no process.
const noGroup = -1

// owned reports whether the process that started it lives.
func (e *entry) owned() bool {
	start, ok := startOf(e.Owner)
	return ok && start == e.OwnerStart
}

// remove takes the note away.
func (e *entry) remove() {
	if e != nil {
		_ = os.Remove(e.file) // what stays is found dead, and removed, at the next start
	}
}

// claim holds the state directory while an engine is started.
type claim struct {
	s    *Spec
	lock *os.File
}

// claimGroup looks what runs, tells what a killed run left, and refuses a group that is taken.
func claimGroup(s *Spec) (*claim, error) {
	c := &claim{s: s}
	if s.StateDir == "" {
		return c, nil
	}
	var err error
	if c.lock, err = lockDir(s.StateDir); err != nil {
		return nil, err
	}
	entries, err := readEntries(s.StateDir)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, e := range entries {
		if err := c.meet(e); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// meet draws the consequences of an engine that is noted.
func (c *claim) meet(e entry) error {
	running := e.alive()
	if len(running) == 0 {
		e.remove()
		return nil
	}
	same := c.s.Group != "" && e.Group == c.s.Group
	busy := func(cause error, hint string) error {
		return &exchange.Error{Op: "launch " + c.s.Engine.ID, Object: "on " + e.Group, Side: exchange.SideClient, Cause: fmt.Errorf("%w: %w", ErrBusy, cause), Hint: hint}
	}
	if e.owned() {
		if same {
			return busy(fmt.Errorf("%s runs there, started by pid %d: %s", e.Engine, e.Owner, processList(running)), "wait for its end, or stop it")
		}
		return nil
	}
	left := e.leftover(running)
	if same {
		return busy(errors.New(left.String()), "end it with --reap")
	}
	c.s.warn("left over: " + left.String() + "; --reap ends it")
	return nil
}

func (e *entry) leftover(running []process) Leftover {
	l := Leftover{Engine: e.Engine, Model: e.Model, Command: e.Command, Port: e.Port, Log: e.Log, Since: e.Since, entry: *e, members: running}
	for _, p := range running {
		l.PIDs = append(l.PIDs, p.pid)
	}
	return l
}

// note writes the note of a process that is about to be started, which tells it by its marker. It is nil without a state
// directory.
func (c *claim) note(p *Process) (*entry, error) {
	if c.s.StateDir == "" {
		return nil, nil
	}
	e := &entry{Schema: noteVersion, Engine: p.spec.Engine.ID, Model: p.spec.Model, Command: p.Command(), Group: p.spec.Group, Marker: p.marker,
		Owner: os.Getpid(), Port: p.port, Log: p.spec.LogFile, Since: clock.Now().UTC().Round(0)}
	e.OwnerStart, _ = startOf(e.Owner)
	e.file = filepath.Join(c.s.StateDir, "engine-"+p.marker+".json")
	return e, e.write()
}

// started adds the process.
func (e *entry) started(pid int, start string) error {
	if e == nil {
		return nil
	}
	e.PID, e.Start = pid, start
	return e.write()
}

// write puts the note into its place, whole.
func (e *entry) write() error {
	raw, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	temp := e.file + ".part"
	if err := os.WriteFile(temp, raw, 0o600); err != nil {
		return fmt.Errorf("note engine: %w", err)
	}
	if err := os.Rename(temp, e.file); err != nil {
		return fmt.Errorf("note engine: %w", err)
	}
	return nil
}

// keep notes the processes that only their descent tells, when they are others than before. What cannot be written is
// written the next time.
func (e *entry) keep(list []relative) {
	if e == nil {
		return
	}
	slices.SortFunc(list, func(a, b relative) int { return cmp.Compare(a.PID, b.PID) })
	if slices.Equal(list, e.Relatives) {
		return
	}
	was := e.Relatives
	if e.Relatives = list; e.write() != nil {
		e.Relatives = was
	}
}

// Close lets others start.
func (c *claim) Close() error {
	if c.lock == nil {
		return nil
	}
	return c.lock.Close() // which unlocks it
}

// lockDir makes the state directory and locks it against other starts.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(filepath.Clean(dir), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock state directory: %w", err), f.Close())
	}
	return f, nil
}

// readEntries reads all notes, the oldest first. One that a newer program wrote, or that is damaged, is an error: what it
// names may run.
func readEntries(dir string) ([]entry, error) {
	names, err := filepath.Glob(filepath.Join(dir, "engine-*.json"))
	if err != nil { // the pattern is right
		return nil, err
	}
	var out []entry
	for _, name := range names {
		raw, err := os.ReadFile(filepath.Clean(name))
		if errors.Is(err, os.ErrNotExist) {
			continue // its engine ended
		}
		e := entry{}
		if err == nil {
			err = json.Unmarshal(raw, &e)
		}
		if err == nil && e.Schema != noteVersion {
			err = fmt.Errorf("its schema %d is not %d", e.Schema, noteVersion)
		}
		if err != nil {
			return nil, &exchange.Error{Op: "read note of engine", Object: name, Side: exchange.SideStore, Cause: err, Hint: "see whether that engine runs, then remove the file"}
		}
		e.file = name
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.file, b.file)) })
	return out, nil
}

// Leftovers are the engines, or parts of them, that still run although the process that started them has died. Notes of
// engines that have ended are removed.
func Leftovers(stateDir string) ([]Leftover, error) {
	if _, err := os.Stat(stateDir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	lock, err := lockDir(stateDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Close() }() // it only unlocks
	entries, err := readEntries(stateDir)
	if err != nil {
		return nil, err
	}
	var out []Leftover
	for _, e := range entries {
		running := e.alive()
		switch {
		case len(running) == 0:
			e.remove()
		case !e.owned():
			out = append(out, e.leftover(running))
		}
	}
	return out, nil
}

// Limits say in one line what of an engine cannot be told or done on this system, "" for nothing. On Linux it is nothing.
func Limits() string { return limits }

// Reap kills what Leftovers finds, waits for its end, and returns it. What does not end is an error.
func Reap(ctx context.Context, stateDir string) ([]Leftover, error) {
	list, err := Leftovers(stateDir)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, l := range list {
		gone := poll(Times{}.withDefaults().Kill, func() bool {
			running := l.entry.alive()
			for _, m := range running {
				killSame(m)
			}
			return len(running) == 0 || ctx.Err() != nil
		})
		if !gone || ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("end %s: %s", l.Engine, processList(l.entry.alive())))
			continue
		}
		l.entry.remove()
	}
	return list, errors.Join(append(errs, ctx.Err())...)
}
